"""How a platform is connected, so that every process of the home can tell."""

from enum import StrEnum
from typing import NamedTuple

from segue.core.text import one_line


class LinkState(StrEnum):
    CONNECTING = "connecting"
    """It was begun, and the platform has not answered yet."""
    CONNECTED = "connected"
    FAILED = "failed"
    """Something went wrong; it is tried again."""
    RESTING = "resting"
    """It went wrong again and again, so it is left alone for a while, and another gateway may try."""
    STANDBY = "standby"
    """Another gateway, which is alive, holds the connection; this one takes over when that one is gone."""


class LinkRow(NamedTuple):
    """One platform and account, as whoever holds its lease has found it."""

    platform: str
    account: str
    run_id: str
    state: str
    since: float
    """When it came into this state; of one that fails again and again, when it was last connected or begun."""
    failures: int = 0
    """In a row."""
    trouble: str | None = None
    retry_at: float | None = None
    """When it is tried again."""

    @property
    def is_up(self) -> bool:
        return self.state == LinkState.CONNECTED


def called(platform: str, account: str) -> str:
    """A platform as people are told of it, with the account if it is not the only one."""
    return one_line(f"{platform}:{account}" if account else platform)
