"""Moments as people say them."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from segue.core.moments import ago, instant

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
