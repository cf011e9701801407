"""The settings of jobs: there are none. Jobs themselves are rows, which commands change."""

from collections.abc import Mapping
from typing import NamedTuple

from segue.core.errors import InvalidSettings


class CronSettings(NamedTuple):
    """Nothing to choose."""


def read_settings(own: Mapping[str, object]) -> CronSettings:
    """The settings as they were written; whatever is there means something that jobs do not know."""
    if own:
        raise InvalidSettings(
            f"platforms.cron has the unknown key {sorted(own)[0]!r}: it knows none, and `segue cron add` adds jobs."
        )
    return CronSettings()
