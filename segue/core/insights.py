"""What a store says about the use of it: sums, and when people were there.

Usage is kept per session, so its sums are those of whole sessions that were active in a period. When something was said
is kept per message, so activity is that of the period alone. Unknown costs stay unknown: they are counted, not guessed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta, tzinfo
from typing import Any, NamedTuple

from segue.core.messages import called, decode
from segue.core.moments import SLOT, instant
from segue.core.text import cut, one_line

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST_NAMES = 10_000
_LONGEST_NAME = 100


class Sums(NamedTuple):
    """What the sessions of one kind add up to. A cost is None when it is known of no session."""

    sessions: int = 0
    messages: int = 0
    tool_calls: int = 0
    api_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_usd: float | None = None
    """The actual cost of each session, or the estimated one where that is not known."""
    without_cost: int = 0
    """Sessions of which neither cost is known."""

    def plus(self, other: "Sums") -> "Sums":
        return Sums._make(_added(one, another) for one, another in zip(self, other, strict=True))


class Group(NamedTuple):
    """The sessions that have a model, or a platform, in common."""

    name: str | None
    sums: Sums


class Conversation(NamedTuple):
    """A conversation, all its parts together."""

    session_id: str
    title: str | None
    first_line: str
    messages: int


class Tools(NamedTuple):
    """How often each tool was called; past ten thousand different names the rest is counted as one."""

    calls: Mapping[str, int]
    others: int = 0

    @property
    def total(self) -> int:
        return sum(self.calls.values()) + self.others

    def top(self, most: int) -> list[tuple[str, int]]:
        return sorted(self.calls.items(), key=lambda one: (-one[1], one[0]))[:most]


class Activity(NamedTuple):
    """How many messages there were on each day, weekday and hour of the day, in a time zone."""

    days: Mapping[date, int]
    weekdays: tuple[int, ...]
    hours: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.hours)

    @property
    def busiest_day(self) -> tuple[date, int] | None:
        return max(self.days.items(), key=lambda one: (one[1], one[0]), default=None)

    def streak(self, today: date) -> int:
        """Days in a row with something said, up to today; a today that is still silent does not end it."""
        day = today if today in self.days else today - timedelta(days=1)
        length = 0
        while day - timedelta(days=length) in self.days:
            length += 1
        return length

    @property
    def longest_streak(self) -> int:
        longest = current = 0
        before: date | None = None
        for day in sorted(self.days):
            current = current + 1 if before is not None and day - before == timedelta(days=1) else 1
            longest, before = max(longest, current), day
        return longest


class Insights(NamedTuple):
    total: Sums
    models: Sequence[Group]
    sources: Sequence[Group]
    tools: Tools
    activity: Activity
    longest: Conversation | None


def total_of(groups: Iterable[Group]) -> Sums:
    """All groups together."""
    total = Sums()
    for group in groups:
        total = total.plus(group.sums)
    return total


def count_tools(calls: Iterable[str]) -> Tools:
    """How often each tool was called, from the stored calls of messages."""
    found: Counter[str] = Counter()
    others = 0
    for name in _names(calls):
        if name in found or len(found) < _MOST_NAMES:
            found[name] += 1
        else:
            others += 1
    return Tools(found, others)


def activity_of(slots: Iterable[tuple[int, int]], zone: tzinfo | None = None) -> Activity:
    """Activity from the messages of each slot of time; without a zone, in that of the host."""
    days: Counter[date] = Counter()
    weekdays, hours = [0] * 7, [0] * 24
    for slot, messages in slots:
        local = instant(slot * SLOT).astimezone(zone)
        days[local.date()] += messages
        weekdays[local.weekday()] += messages
        hours[local.hour] += messages
    return Activity(days, tuple(weekdays), tuple(hours))


def as_data(insights: Insights, today: date) -> dict[str, Any]:
    """The same for programs."""
    activity, busiest = insights.activity, insights.activity.busiest_day
    return {
        **insights.total._asdict(),
        "models": [{"model": group.name, **group.sums._asdict()} for group in insights.models],
        "sources": [{"source": group.name, **group.sums._asdict()} for group in insights.sources],
        "tools": {"total": insights.tools.total, "calls": dict(insights.tools.top(_MOST_NAMES))},
        "activity": {
            "messages": activity.total,
            "weekdays": dict(zip(map(str.lower, WEEKDAYS), activity.weekdays, strict=True)),
            "hours": list(activity.hours),
            "days": {str(day): activity.days[day] for day in sorted(activity.days)},
            "busiest_day": None if busiest is None else {"day": str(busiest[0]), "messages": busiest[1]},
            "streak_days": activity.streak(today),
            "longest_streak_days": activity.longest_streak,
        },
        "longest_conversation": None if insights.longest is None else insights.longest._asdict(),
    }


def _names(calls: Iterable[str]) -> Iterator[str]:
    for stored in calls:
        decoded = decode(stored)
        for call in decoded if isinstance(decoded, list) else ():
            yield cut(one_line(called(call)), _LONGEST_NAME) if isinstance(call, Mapping) else "?"


def _added(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else one + other
