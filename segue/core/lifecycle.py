"""What a new message does to its lane.

Every lifecycle rule lives in this file. Nothing here reads a clock, a database or a config file: they are arguments.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from segue.core.ids import LaneKey, SessionId
from segue.core.policy import FRESHNESS, ResetPolicy, ResetReason
from segue.core.sources import SessionSource


class Phase(StrEnum):
    """How a lane stands between two messages."""

    ACTIVE = "active"
    INTERRUPTED = "interrupted"
    SUSPENDED = "suspended"


class Interruption(StrEnum):
    """Why a turn did not end by itself."""

    RESTART = "restart_interrupted"
    RESTART_DRAIN = "restart_timeout"
    SHUTDOWN_DRAIN = "shutdown_timeout"


class Suspension(StrEnum):
    """Why a lane is suspended."""

    STOPPED = "stopped"
    CRASHED = "crashed"
    """Its last turn crashed the process too often."""


class Lane(NamedTuple):
    """The durable place of a conversation: which session it is in, and how that one stands."""

    key: LaneKey
    session_id: SessionId | None
    last_person_at: datetime
    phase: Phase = Phase.ACTIVE
    phase_since: datetime | None = None
    phase_reason: str | None = None
    principal: str = "owner"
    audience: str = ""
    origin: SessionSource | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    finalised_at: datetime | None = None
    version: int = 0
    """How often the row was written; 0 while there is none."""


@dataclass(frozen=True, slots=True)
class Start:
    """There is nothing to continue: a first session."""


@dataclass(frozen=True, slots=True)
class Continue:
    """The same session, as ever."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The same session, whose last turn was cut off."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A new session in place of the old one."""

    reason: ResetReason


Decision = Start | Continue | Resume | Reset


def decide(
    lane: Lane | None, policy: ResetPolicy, now: datetime, *, busy: bool = False, freshness: timedelta = FRESHNESS
) -> Decision:
    """What happens to the session of a lane when a message is admitted at `now`; `busy` while background work runs."""
    if lane is None or lane.session_id is None:
        return Start()
    if lane.phase is Phase.SUSPENDED:
        return Reset(reason_after(lane.phase_reason))
    if lane.phase is Phase.INTERRUPTED and _is_fresh(lane, now, freshness):
        return Resume()
    if busy:  # background processes still belong to this session
        return Continue()
    if reason := policy.expiry(lane.last_person_at, now):
        return Reset(reason)
    return Continue()


def reason_after(suspension: str | None) -> ResetReason:
    """Return why a lane that was suspended for a reason gets a new session."""
    return ResetReason.CRASHED if suspension == Suspension.CRASHED else ResetReason.SUSPENDED


def has_expired(
    lane: Lane, policy: ResetPolicy, now: datetime, *, busy: bool = False, freshness: timedelta = FRESHNESS
) -> bool:
    """Whether the time of a lane's session is over, so that the next message begins another."""
    if lane.phase is Phase.SUSPENDED:  # which by itself is no matter of time
        lane = lane._replace(phase=Phase.ACTIVE)
    return isinstance(decide(lane, policy, now, busy=busy, freshness=freshness), Reset)


def interrupt(phase: Phase) -> Phase:
    """The phase after a turn was cut off. A suspended lane stays suspended."""
    return phase if phase is Phase.SUSPENDED else Phase.INTERRUPTED


def _is_fresh(lane: Lane, now: datetime, freshness: timedelta) -> bool:
    return lane.phase_since is not None and now - lane.phase_since <= freshness
