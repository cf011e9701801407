"""Every method that there is."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from segue.web.rpc import chat, lanes, sessions, standing
from segue.web.rpc.method import Method

METHODS: Mapping[str, Method[Any]] = MappingProxyType(
    {one.name: one for one in (*sessions.METHODS, *chat.METHODS, *lanes.METHODS, *standing.METHODS)}
)
