"""Which platforms a gateway connects to: those that the settings name, ours and those of others."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from segue.config import Settings
from segue.core.errors import Invalid
from segue.ports.platform import Platform

GROUP = "segue.platforms"
_OURS: Mapping[str, str] = {}
"""The module of each platform of ours; it has a function `connect` that takes the settings of the platform."""

Connect = Callable[[Mapping[str, Any]], Platform]


def platforms_of(settings: Settings) -> list[Platform]:
    """Every platform that is enabled, ready to be connected."""
    return [_connect(name)(said.own) for name, said in settings.platforms.items() if said.enabled]


def _connect(name: str) -> Connect:
    if name in _OURS:
        connect: Connect = import_module(_OURS[name]).connect
        return connect
    for found in entry_points(group=GROUP, name=name):
        made: Connect = found.load()
        return made
    known = ", ".join(sorted({*_OURS, *(one.name for one in entry_points(group=GROUP))})) or "none"
    raise Invalid(f"platforms.{name} in config.yaml is no platform that is installed here; there are: {known}.")
