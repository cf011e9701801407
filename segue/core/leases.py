"""Who works on what. A lease is held by one run at a time; its epoch rises whenever it changes hands."""

from typing import NamedTuple

LEASE_SECONDS = 15.0
RENEWAL_SECONDS = 5.0


class Lease(NamedTuple):
    """The right to work on something, as its holder knows it."""

    name: str
    owner: str
    """The id of a run."""
    epoch: int


class HeldLease(NamedTuple):
    """A lease as the store knows it."""

    name: str
    owner: str
    epoch: int
    expires_at: float
    taken_at: float


class Run(NamedTuple):
    """One life of a process, told so that any other process can find out whether it is still there."""

    id: str
    program: str
    """What it is to people: `segue chat`."""
    host: str
    boot: str
    """Changes when the machine starts anew."""
    pid: int
    process_started: str
    """Tells a process from a later one with the same number."""
    began_at: float
    beat_at: float
    ended_at: float | None = None
    how: str | None = None
    """How it ended, when it was not by itself."""


CRASHED = "crashed"
SILENT = "silent"
"""What `how` says of a run that has not ended as far as anybody knows, and is presumed to have crashed."""
GATEWAY = "segue gateway"
"""What a gateway is called among the runs."""


def lane_lease(key: str) -> str:
    return f"lane:{key}"


def platform_lease(name: str, account: str) -> str:
    return f"platform:{name}:{account}"


def session_lease(session_id: str) -> str:
    return f"session:{session_id}"
