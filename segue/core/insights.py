"""What a store says about the use of it: sums, and when people were there.

What model calls used is kept call by call, and what was said message by message, so both are of the period alone. How
many sessions, messages and tool calls there are is kept with sessions: those numbers are of whole sessions that were
active in the period. Unknown costs stay unknown: they are counted, not guessed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from segue.core.messages import called, decode
from segue.core.moments import SLOT, instant
from segue.core.text import cut, one_line
from segue.core.usage import OWN_PRICES

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST_NAMES = 10_000
_LONGEST_NAME = 100
_FIRST_DAY = date(1970, 1, 1)


class Talk(NamedTuple):
    """How much was said in the sessions of one kind."""

    sessions: int = 0
    messages: int = 0
    tool_calls: int = 0


class Spending(NamedTuple):
    """What the model calls of one kind add up to. A cost is None when it is known of no call."""

    api_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_usd: float | None = None
    """The actual cost of each call, or the estimated one where that is not known."""
    calls_without_cost: int = 0
    """Calls of which neither cost is known."""
    tokens_without_cost: int = 0
    """What went into and came out of them."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def is_partly_unknown(self) -> bool:
        return bool(self.calls_without_cost or self.tokens_without_cost)

    @property
    def is_none(self) -> bool:
        """True if no model was called."""
        return not (self.api_calls or self.tokens) and self.cost_usd is None


class Group(NamedTuple):
    """What has a model, a platform or a purpose in common."""

    name: str | None
    talk: Talk = Talk()
    spending: Spending = Spending()

    @property
    def label(self) -> str:
        """Its name. Without one it is unknown what was called, or nothing was."""
        return one_line(self.name or ("none" if self.spending.is_none else "unknown"))


class Slot(NamedTuple):
    """What was used in one `SLOT` of time, counted from 1970 on."""

    number: int
    tokens: int
    cost_usd: float | None
    tokens_without_cost: int


class Day(NamedTuple):
    """What was used on one day of a time zone."""

    tokens: int = 0
    cost_usd: float | None = None
    tokens_without_cost: int = 0


class PriceTable(NamedTuple):
    """Where the prices of estimates come from, and how many calls have such an estimate and no actual cost."""

    cost_source: str | None
    pricing_version: str | None
    api_calls: int

    @property
    def label(self) -> str:
        if self.cost_source == OWN_PRICES:
            return "your own prices"
        return one_line(f"{self.cost_source or 'unknown prices'} {self.pricing_version or ''}")


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
    """How many messages there were on each day, and in each hour of each weekday, in a time zone."""

    days: Mapping[date, int]
    grid: tuple[tuple[int, ...], ...]
    """Seven weekdays of twenty-four hours."""

    @property
    def weekdays(self) -> tuple[int, ...]:
        return tuple(map(sum, self.grid))

    @property
    def hours(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*self.grid, strict=True)))

    @property
    def total(self) -> int:
        return sum(self.weekdays)

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


class Period(NamedTuple):
    """Whole days in a row, up to today."""

    first: date
    last: date
    since: float
    """When the first day begins."""


class Span(NamedTuple):
    """Some days in a row, together."""

    first: date
    last: date
    used: Day


class Insights(NamedTuple):
    total: Group
    models: Sequence[Group]
    sources: Sequence[Group]
    purposes: Sequence[Group]
    prices: Sequence[PriceTable]
    days: Mapping[date, Day]
    tools: Tools
    activity: Activity
    longest: Conversation | None


def joined(talks: Iterable[Group], spendings: Iterable[Group]) -> list[Group]:
    """What was said and what it used, by name; the most tokens first."""
    said, used = {one.name: one.talk for one in talks}, {one.name: one.spending for one in spendings}
    names = dict.fromkeys([*used, *said])
    groups = [Group(name, said.get(name, Talk()), used.get(name, Spending())) for name in names]
    return sorted(groups, key=lambda one: (-one.spending.tokens, -one.talk.sessions, one.name or ""))


def talk_of(groups: Iterable[Group]) -> Talk:
    """All groups together."""
    return Talk._make(map(sum, zip(Talk(), *(group.talk for group in groups), strict=True)))


def days_of(slots: Iterable[Slot], zone: tzinfo | None = None) -> dict[date, Day]:
    """What was used on each day; without a zone, in that of the host."""
    days: dict[date, Day] = {}
    for slot in slots:
        day = instant(slot.number * SLOT).astimezone(zone).date()
        days[day] = _both(days.get(day, Day()), Day._make(slot[1:]))
    return days


def period_of(days: int, now: float, zone: tzinfo) -> Period:
    """Return the last `days` days of a time zone: today, and those before it back to 1970."""
    today = datetime.fromtimestamp(now, zone).date()
    first = date.fromordinal(max(today.toordinal() - days + 1, _FIRST_DAY.toordinal()))
    return Period(first, today, max(datetime.combine(first, datetime.min.time(), zone).timestamp(), 0.0))


def spans_of(days: Mapping[date, Day], period: Period, most: int) -> list[Span]:
    """Return every day of a period, alone or, when they are too many, some together; none if nothing was used."""
    if not days:
        return []
    first, last = min(period.first, *days).toordinal(), max(period.last, *days).toordinal()
    length = -(-(last - first + 1) // most)
    used: dict[int, Day] = {}
    for day, one in days.items():
        at = (day.toordinal() - first) // length
        used[at] = _both(used.get(at, Day()), one)
    beginnings = enumerate(range(first, last + 1, length))
    return [
        Span(date.fromordinal(at), date.fromordinal(min(at + length - 1, last)), used.get(number, Day()))
        for number, at in beginnings
    ]


def cost_words(cost: float | None, *, is_partly_unknown: bool) -> str:
    """Format a cost: "unknown" if no call has one, "none" if nothing was called."""
    if cost is None:
        return "unknown" if is_partly_unknown else "none"
    return f"{dollars(cost)} + unknown" if is_partly_unknown else dollars(cost)


def dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.4f}"


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
    grid = [[0] * 24 for _ in WEEKDAYS]
    for slot, messages in slots:
        local = instant(slot * SLOT).astimezone(zone)
        days[local.date()] += messages
        grid[local.weekday()][local.hour] += messages
    return Activity(days, tuple(map(tuple, grid)))


def as_data(insights: Insights, today: date) -> dict[str, Any]:
    """The same for programs."""
    activity, busiest = insights.activity, insights.activity.busiest_day
    return {
        **_figures(insights.total),
        "models": [{"model": group.name, **_figures(group)} for group in insights.models],
        "sources": [{"source": group.name, **_figures(group)} for group in insights.sources],
        "purposes": [{"purpose": group.name, **group.spending._asdict()} for group in insights.purposes],
        "prices": [table._asdict() for table in insights.prices],
        "days": {str(day): insights.days[day]._asdict() for day in sorted(insights.days)},
        "tools": {"total": insights.tools.total, "calls": dict(insights.tools.top(_MOST_NAMES))},
        "activity": {
            "messages": activity.total,
            "weekdays": dict(zip(map(str.lower, WEEKDAYS), activity.weekdays, strict=True)),
            "hours": list(activity.hours),
            "weekdays_by_hour": dict(zip(map(str.lower, WEEKDAYS), map(list, activity.grid), strict=True)),
            "days": {str(day): activity.days[day] for day in sorted(activity.days)},
            "busiest_day": None if busiest is None else {"day": str(busiest[0]), "messages": busiest[1]},
            "streak_days": activity.streak(today),
            "longest_streak_days": activity.longest_streak,
        },
        "longest_conversation": None if insights.longest is None else insights.longest._asdict(),
    }


def from_data(data: Mapping[str, Any]) -> Insights:
    """The inverse of `as_data`, for whoever was told it by another machine."""
    activity, longest = data["activity"], data["longest_conversation"]
    return Insights(
        total=_group(data, None),
        models=[_group(one, one["model"]) for one in data["models"]],
        sources=[_group(one, one["source"]) for one in data["sources"]],
        purposes=[_group(one, one["purpose"]) for one in data["purposes"]],
        prices=[PriceTable(**one) for one in data["prices"]],
        days={date.fromisoformat(day): Day(**used) for day, used in data["days"].items()},
        tools=Tools(data["tools"]["calls"], data["tools"]["total"] - sum(data["tools"]["calls"].values())),
        activity=Activity(
            {date.fromisoformat(day): messages for day, messages in activity["days"].items()},
            tuple(tuple(activity["weekdays_by_hour"][day.lower()]) for day in WEEKDAYS),
        ),
        longest=None if longest is None else Conversation(**longest),
    )


def _group(data: Mapping[str, Any], name: str | None) -> Group:
    talk = Talk(**{field: data[field] for field in Talk._fields if field in data})
    return Group(name, talk, Spending(**{field: data[field] for field in Spending._fields}))


def _figures(group: Group) -> dict[str, Any]:
    return group.talk._asdict() | group.spending._asdict()


def _names(calls: Iterable[str]) -> Iterator[str]:
    for stored in calls:
        decoded = decode(stored)
        for call in decoded if isinstance(decoded, list) else ():
            yield cut(one_line(called(call)), _LONGEST_NAME) if isinstance(call, Mapping) else "?"


def _both(one: Day, other: Day) -> Day:
    return Day._make(_added(first, second) for first, second in zip(one, other, strict=True))


def _added(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else one + other
