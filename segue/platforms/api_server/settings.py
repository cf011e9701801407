"""The settings of the API server: there are none. The gateway's door is its door, and tokens are its secrets."""

from collections.abc import Mapping
from typing import NamedTuple

from segue.core.errors import InvalidSettings


class ApiSettings(NamedTuple):
    """Nothing to choose."""


def read_settings(own: Mapping[str, object]) -> ApiSettings:
    """The settings as they were written; whatever is there means something that the API server does not know."""
    if own:
        raise InvalidSettings(
            f"platforms.api_server has the unknown key {sorted(own)[0]!r}: it knows none, and `gateway` says where"
            " programs call."
        )
    return ApiSettings()
