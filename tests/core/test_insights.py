"""Sums keep what is unknown apart, and activity belongs to a time zone."""

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core import insights
from segue.core.insights import (
    Activity,
    Day,
    Group,
    Insights,
    Period,
    PriceTable,
    Slot,
    Spending,
    Talk,
    Tools,
    activity_of,
    as_data,
    cost_words,
    count_tools,
    days_of,
    joined,
    period_of,
    spans_of,
    talk_of,
)
from segue.core.moments import SLOT

BERLIN = ZoneInfo("Europe/Berlin")
KATHMANDU = ZoneInfo("Asia/Kathmandu")


def slot(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) // SLOT  # type: ignore[misc,arg-type]


def called(*names: str) -> str:
    return json.dumps([{"function": {"name": name}} for name in names])


def days(*numbers: int) -> Activity:
    return Activity({date(2025, 3, number): 1 for number in numbers}, ())


@pytest.mark.parametrize(
    ("cost", "is_partly_unknown", "words"),
    [
        (None, True, "unknown"),
        (None, False, "none"),
        (0.0, False, "$0.00"),
        (0.0, True, "$0.00 + unknown"),
        (0.0031, False, "$0.0031"),
        (1234.5, True, "$1,234.50 + unknown"),
    ],
)
def test_an_unknown_cost_is_no_zero(cost: float | None, is_partly_unknown: bool, words: str) -> None:
    assert cost_words(cost, is_partly_unknown=is_partly_unknown) == words


def test_what_was_said_and_what_it_used_come_together_by_name() -> None:
    said = [Group("a", Talk(1, 2, 3)), Group(None, Talk(4, 5, 6)), Group("b", Talk(7))]
    used = [Group("c", spending=Spending(1, 10, 20)), Group("a", spending=Spending(2, 1, 1))]
    assert [(one.name, one.talk, one.spending.tokens) for one in joined(said, used)] == [
        ("c", Talk(), 30),
        ("a", Talk(1, 2, 3), 2),
        ("b", Talk(7), 0),
        (None, Talk(4, 5, 6), 0),
    ]
    assert talk_of(said) == Talk(12, 7, 9)
    assert talk_of([]) == Talk()


def test_days_of_use_are_those_of_the_clock_on_the_wall() -> None:
    slots = [Slot(slot(2025, 3, 9, 22, 30), 5, None, 5), Slot(slot(2025, 3, 9, 23, 30), 7, 0.5, 0)]
    assert days_of(slots, UTC) == {date(2025, 3, 9): Day(12, 0.5, 5)}
    assert days_of(slots, BERLIN) == {date(2025, 3, 9): Day(5, None, 5), date(2025, 3, 10): Day(7, 0.5, 0)}


@given(
    st.dictionaries(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.builds(Day, st.integers(0, 9)), max_size=9),
    st.tuples(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.dates(date(1, 1, 1), date(9999, 12, 31))).map(sorted),
    st.integers(1, 100),
)
def test_a_chart_has_every_day_once_and_never_too_many_columns(
    used: dict[date, Day], period: list[date], most: int
) -> None:
    spans = spans_of(used, Period(period[0], period[1], 0.0), most)
    assert len(spans) <= most
    assert sum(span.used.tokens for span in spans) == sum(day.tokens for day in used.values())
    for one, other in pairwise(spans):
        assert (other.first - one.last).days == 1
    if used:
        assert spans[0].first == min(period[0], *used)
        assert spans[-1].last == max(period[1], *used)


@pytest.mark.parametrize("days", [1, 7, 30])
def test_a_chart_draws_as_many_days_as_the_period_has(days: int) -> None:
    period = period_of(days, datetime(2025, 3, 9, 13, tzinfo=BERLIN).timestamp(), BERLIN)
    spans = spans_of({date(2025, 3, 9): Day(5)}, period, 92)
    assert (len(spans), spans[-1].first) == (days, date(2025, 3, 9))


@pytest.mark.parametrize(
    ("days", "zone", "first", "begins"),
    [
        (1, UTC, date(2025, 3, 31), datetime(2025, 3, 31, tzinfo=UTC)),
        (2, BERLIN, date(2025, 3, 31), datetime(2025, 3, 30, 22, tzinfo=UTC)),
        (3, BERLIN, date(2025, 3, 30), datetime(2025, 3, 29, 23, tzinfo=UTC)),  # before the clocks changed
        (100_000, KATHMANDU, date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_period_begins_at_midnight_of_its_first_day(days: int, zone: tzinfo, first: date, begins: datetime) -> None:
    period = period_of(days, datetime(2025, 3, 31, 23, 30, tzinfo=UTC).timestamp(), zone)
    assert (period.first, period.since) == (first, begins.timestamp())


def test_prices_say_whose_and_of_when() -> None:
    assert PriceTable("genai-prices", "0.2.1 (2026-09-28)", 1).label == "genai-prices 0.2.1 (2026-09-28)"
    assert PriceTable("config", None, 1).label == "your own prices"
    assert PriceTable(None, None, 1).label == "unknown prices"


@pytest.mark.parametrize(
    ("zone", "day", "weekday", "hour"),
    [(UTC, date(2025, 3, 9), 6, 23), (BERLIN, date(2025, 3, 10), 0, 0), (KATHMANDU, date(2025, 3, 10), 0, 5)],
)
def test_a_message_counts_where_the_clock_on_the_wall_says(zone: ZoneInfo, day: date, weekday: int, hour: int) -> None:
    activity = activity_of([(slot(2025, 3, 9, 23, 30), 4)], zone)
    assert activity.days == {day: 4}
    assert [at for at, number in enumerate(activity.weekdays) if number] == [weekday]
    assert [at for at, number in enumerate(activity.hours) if number] == [hour]


def test_an_hour_that_the_clocks_repeat_holds_both() -> None:
    slots = [(slot(2025, 10, 26, 0, 0), 1), (slot(2025, 10, 26, 1, 0), 2)]
    assert activity_of(slots, BERLIN).hours[2] == 3


@given(st.lists(st.tuples(st.integers(-(10**6), 10**7), st.integers(1, 100)), max_size=30))
def test_every_way_to_count_activity_comes_to_the_same(slots: list[tuple[int, int]]) -> None:
    activity = activity_of(slots, BERLIN)
    total = sum(number for _, number in slots)
    assert (activity.total, sum(activity.weekdays), sum(activity.days.values())) == (total, total, total)


@pytest.mark.parametrize(
    ("spoken", "today", "streak", "longest"),
    [
        ((), 10, 0, 0),
        ((10,), 10, 1, 1),
        ((9,), 10, 1, 1),
        ((8,), 10, 0, 1),
        ((8, 9, 10), 10, 3, 3),
        ((1, 2, 3, 4, 7, 9, 10), 10, 2, 4),
        ((1, 3, 5), 10, 0, 1),
    ],
)
def test_a_streak_is_days_in_a_row_up_to_today_or_yesterday(
    spoken: Iterable[int], today: int, streak: int, longest: int
) -> None:
    activity = days(*spoken)
    assert (activity.streak(date(2025, 3, today)), activity.longest_streak) == (streak, longest)


def test_of_two_busiest_days_the_later_is_named() -> None:
    assert days(3, 5).busiest_day == (date(2025, 3, 5), 1)
    assert days().busiest_day is None


def test_tools_are_counted_by_name_whatever_was_stored() -> None:
    stored = [
        called("a", "b"),
        called("a"),
        '[{"name": "c"}, {}, 5]',
        "no JSON",
        '{"name": "a"}',
        '"a"',
        called("x\x1b[31m\ny"),
    ]
    tools = count_tools(stored)
    assert tools.calls == {"a": 2, "b": 1, "c": 1, "?": 2, "x y": 1}
    assert tools.total == 7
    assert tools.top(2) == [("?", 2), ("a", 2)]


def test_names_without_end_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insights, "_MOST_NAMES", 3)
    tools = count_tools(called(f"tool {number}", "tool 0") for number in range(10))
    assert (len(tools.calls), tools.calls["tool 0"], tools.others, tools.total) == (3, 11, 7, 20)
    assert count_tools([called("x" * 10_000)]).calls == {"x" * 100: 1}


def test_data_for_programs_can_be_written_as_json() -> None:
    whole = Insights(
        Group(None),
        [Group(None)],
        [],
        [Group("title", spending=Spending(1, 2, 3))],
        [PriceTable("prices", "1 (2025-01-01)", 1)],
        {date(2025, 3, 9): Day(5, None, 5)},
        Tools({"a": 1}),
        activity_of([(slot(2025, 3, 9), 4)], UTC),
        None,
    )
    data = json.loads(json.dumps(as_data(whole, date(2025, 3, 10))))
    assert data["models"][0]["model"] is None
    assert data["activity"]["busiest_day"] == {"day": "2025-03-09", "messages": 4}
    assert data["activity"]["weekdays"]["sunday"] == 4
    assert data["activity"]["weekdays_by_hour"]["sunday"][0] == 4
    assert data["days"] == {"2025-03-09": {"tokens": 5, "cost_usd": None, "tokens_without_cost": 5}}
    assert (data["purposes"][0]["purpose"], data["prices"][0]["pricing_version"]) == ("title", "1 (2025-01-01)")
    assert (data["activity"]["streak_days"], data["tools"]["total"], data["longest_conversation"]) == (1, 1, None)
