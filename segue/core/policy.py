"""When a conversation grows old.

A policy knows the moments at which a lane expires: after a time without a word from a person (idle), and at an hour
of the day (daily). Moments are instants in UTC; the hour of the day belongs to a time zone and its clock changes.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

FRESHNESS = timedelta(seconds=3600)
"""For how long a turn that was cut off is worth continuing."""

UNRESETTABLE = frozenset({"acp", "api", "api_server", "batch", "cli", "cron", "hook", "node", "subagent", "webhook"})
"""Origins that keep their session until somebody says otherwise."""


class ResetMode(StrEnum):
    NONE = "none"
    IDLE = "idle"
    DAILY = "daily"
    BOTH = "both"


class ResetReason(StrEnum):
    """Why a lane got a new session; also the old session's end reason."""

    IDLE = "idle"
    DAILY = "daily"
    SUSPENDED = "suspended"
    CRASHED = "crashed"
    """A turn of the old session crashed its process too often."""
    ASKED = "session_reset"


class ResetPolicy(NamedTuple):
    mode: ResetMode = ResetMode.BOTH
    at_hour: int = 4
    idle: timedelta = timedelta(minutes=1440)
    notify: bool = True
    zone: tzinfo = UTC

    def expiry(self, last: datetime, now: datetime) -> ResetReason | None:
        """Why a lane that heard its last person at `last` has expired by `now`; the earlier moment names the reason."""
        due = [
            (moment, reason)
            for moment, reason in self._moments(last)
            if (now > moment if reason is ResetReason.IDLE else now >= moment)
        ]
        return min(due, key=lambda one: one[0])[1] if due else None

    def expires_at(self, last: datetime) -> datetime | None:
        """The moment at which the lane will expire if nobody speaks again."""
        return min((moment for moment, _ in self._moments(last)), default=None)

    def _moments(self, last: datetime) -> list[tuple[datetime, ResetReason]]:
        moments = []
        if self.mode in (ResetMode.IDLE, ResetMode.BOTH):  # first, so that a tie is called idle
            moments.append((last + self.idle, ResetReason.IDLE))
        if self.mode in (ResetMode.DAILY, ResetMode.BOTH):
            moments.append((next_boundary(last, self.at_hour, self.zone), ResetReason.DAILY))
        return moments


NEVER = ResetPolicy(mode=ResetMode.NONE)


class ResetRule(NamedTuple):
    """A policy as it is written down: what is not said is taken from the rule below it."""

    mode: ResetMode | None = None
    at_hour: int | None = None
    idle_minutes: int | None = None
    notify: bool | None = None
    zone: tzinfo | None = None

    def over(self, base: ResetPolicy) -> ResetPolicy:
        mode = base.mode if self.mode is None else self.mode
        if mode is ResetMode.DAILY and self.idle_minutes is not None:
            mode = ResetMode.BOTH
        return ResetPolicy(
            mode=mode,
            at_hour=base.at_hour if self.at_hour is None else self.at_hour,
            idle=base.idle if self.idle_minutes is None else timedelta(minutes=self.idle_minutes),
            notify=base.notify if self.notify is None else self.notify,
            zone=base.zone if self.zone is None else self.zone,
        )


class ResetPolicies(NamedTuple):
    """All rules together: a platform's rule replaces the rest, a type's rule refines the default."""

    default: ResetPolicy = ResetPolicy()
    by_type: Mapping[str, ResetRule] = MappingProxyType({})
    by_platform: Mapping[str, ResetRule] = MappingProxyType({})

    def choose(self, platform: str, chat_type: str, thread: str = "") -> ResetPolicy:
        """The policy of a lane. Channels count as groups, and any lane in a thread as a thread."""
        if platform in UNRESETTABLE:
            return NEVER
        if rule := self.by_platform.get(platform):
            return rule.over(ResetPolicy(zone=self.default.zone))
        kind = "thread" if thread else "group" if chat_type == "channel" else chat_type
        rule = self.by_type.get(kind)
        return rule.over(self.default) if rule else self.default


def next_boundary(last: datetime, at_hour: int, zone: tzinfo) -> datetime:
    """The first daily boundary after `last`."""
    day = last.astimezone(zone).date() - timedelta(days=1)
    while True:
        boundary = first_instant(datetime(day.year, day.month, day.day, at_hour), zone)  # noqa: DTZ001 - wall clock
        if boundary > last:
            return boundary
        day += timedelta(days=1)


def first_instant(wall: datetime, zone: tzinfo) -> datetime:
    """When the clock on the wall first shows `wall` or, where it jumps over that time, the instant of the jump."""
    early = wall.replace(tzinfo=zone, fold=0)
    instant = early.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == wall:
        return instant
    before, after = early.utcoffset(), wall.replace(tzinfo=zone, fold=1).utcoffset()
    assert before is not None
    assert after is not None
    low, high = (wall - max(before, after)).replace(tzinfo=UTC), (wall - min(before, after)).replace(tzinfo=UTC)
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
