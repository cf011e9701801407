"""Moments as people say them."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from segue.core.errors import Invalid
from segue.core.moments import ago, instant, parse_moment

NOON = datetime(2025, 3, 5, 12, 0, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (0, "just now"),
        (59.9, "just now"),
        (-5, "just now"),
        (-10 * DAY, "just now"),
        (MINUTE, "1m ago"),
        (2 * MINUTE - 0.1, "1m ago"),
        (59 * MINUTE + 59, "59m ago"),
        (HOUR, "1h ago"),
        (23 * HOUR + 59 * MINUTE, "23h ago"),
        (DAY, "yesterday"),
        (2 * DAY - 1, "yesterday"),
        (2 * DAY, "2d ago"),
        (7 * DAY - 1, "6d ago"),
        (7 * DAY, "2025-02-26"),
        (400 * DAY, "2024-01-30"),
    ],
)
def test_how_long_ago(passed: float, words: str) -> None:
    assert ago(NOON - passed, NOON, UTC) == words


@pytest.mark.parametrize(
    ("zone", "date"),
    [
        (UTC, "2025-02-01"),
        (timezone(timedelta(hours=14)), "2025-02-02"),
        (timezone(timedelta(hours=-11)), "2025-02-01"),
        (timezone(timedelta(hours=-13)), "2025-01-31"),
    ],
)
def test_a_date_belongs_to_a_time_zone(zone: tzinfo, date: str) -> None:
    assert ago(datetime(2025, 2, 1, 12, 0, tzinfo=UTC).timestamp(), NOON, zone) == date


def test_an_instant_is_aware_and_keeps_its_fraction() -> None:
    moment = instant(1741176000.25)
    assert moment == datetime(2025, 3, 5, 12, 0, 0, 250_000, tzinfo=UTC)
    assert moment.tzinfo is UTC


BERLIN = ZoneInfo("Europe/Berlin")
SUMMER_TIME = datetime(2025, 3, 30, 12, 0, tzinfo=BERLIN).timestamp()  # the clocks went forward that morning


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2025-03-05", "2025-03-05T00:00+01:00"),
        ("2025-03-31", "2025-03-31T00:00+02:00"),
        (" 2025-03-05 ", "2025-03-05T00:00+01:00"),
        ("2025-03-05T09:15", "2025-03-05T09:15+01:00"),
        ("2025-03-05 09:15", "2025-03-05T09:15+01:00"),
        ("2025-03-05T09:15:30Z", "2025-03-05T09:15:30+00:00"),
        ("2025-03-05T09:15-05:00", "2025-03-05T09:15-05:00"),
        ("today", "2025-03-30T00:00+01:00"),
        ("Yesterday", "2025-03-29T00:00+01:00"),
        ("90m", "2025-03-30T10:30+02:00"),
        ("12h", "2025-03-29T23:00+01:00"),
        ("1d", "2025-03-29T11:00+01:00"),
        ("7D", "2025-03-23T11:00+01:00"),
        ("2w", "2025-03-16T11:00+01:00"),
    ],
)
def test_a_moment_can_be_named_in_many_ways(said: str, meant: str) -> None:
    assert parse_moment(said, SUMMER_TIME, BERLIN) == datetime.fromisoformat(meant).timestamp()


@pytest.mark.parametrize("said", ["0001-01-01", "9999-12-31", "999999w"])
def test_no_date_is_too_far_away(said: str) -> None:
    assert abs(parse_moment(said, SUMMER_TIME, UTC)) < 300_000_000_000


@pytest.mark.parametrize(
    "said",
    [
        *("", "7", "d", "-7d", "7 d", "7.5d", "9999999d", "7y", "٧d", "tomorrow", "last week", "\x00", "10000-01-01"),
        *("20250305", "2025-W10-3", "2025-13-01", "2025-02-30", "2025-03-05T", "2025-03-05T25:00", "2025-03-05x"),
    ],
)
def test_what_is_no_moment_is_refused_with_examples(said: str) -> None:
    with pytest.raises(Invalid, match="is no date; write it like 2025-03-05, 2025-03-05T09:15, yesterday, 12h or 7d"):
        parse_moment(said, SUMMER_TIME, BERLIN)
