"""Sums keep what is unknown apart, and activity belongs to a time zone."""

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core import insights
from segue.core.insights import (
    Activity,
    Group,
    Insights,
    Sums,
    Tools,
    activity_of,
    as_data,
    count_tools,
    total_of,
)
from segue.core.moments import SLOT

BERLIN = ZoneInfo("Europe/Berlin")
KATHMANDU = ZoneInfo("Asia/Kathmandu")


def slot(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) // SLOT  # type: ignore[misc,arg-type]


def called(*names: str) -> str:
    return json.dumps([{"function": {"name": name}} for name in names])


def days(*numbers: int) -> Activity:
    return Activity({date(2025, 3, number): 1 for number in numbers}, (), ())


def test_an_unknown_cost_is_no_zero() -> None:
    unknown, known = Sums(sessions=1, without_cost=1), Sums(sessions=1, estimated_cost_usd=0.5, cost_usd=0.5)
    assert total_of([Group(None, unknown), Group("m", unknown)]).cost_usd is None
    total = total_of([Group(None, unknown), Group("m", known), Group("n", known)])
    assert (total.sessions, total.estimated_cost_usd, total.actual_cost_usd, total.without_cost) == (3, 1.0, None, 1)
    assert total_of([]) == Sums()


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
        Sums(), [Group(None, Sums())], [], Tools({"a": 1}), activity_of([(slot(2025, 3, 9), 4)], UTC), None
    )
    data = json.loads(json.dumps(as_data(whole, date(2025, 3, 10))))
    assert data["models"][0]["model"] is None
    assert data["activity"]["busiest_day"] == {"day": "2025-03-09", "messages": 4}
    assert data["activity"]["weekdays"]["sunday"] == 4
    assert (data["activity"]["streak_days"], data["tools"]["total"], data["longest_conversation"]) == (1, 1, None)
