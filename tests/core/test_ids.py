"""Ids read like a diary."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.ids import LONGEST_ID, session_id

BERLIN_IN_SUMMER = timezone(timedelta(hours=2))
moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31))  # noqa: DTZ001 - local time


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        (datetime(2025, 3, 5, 9, 15, 23, tzinfo=UTC), "20250305_091523_a1b2c3d4"),
        (datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "20251231_235959_a1b2c3d4"),
        (datetime(2025, 7, 1, 0, 0, tzinfo=BERLIN_IN_SUMMER), "20250701_000000_a1b2c3d4"),
    ],
)
def test_an_id_is_the_local_time_and_a_token(now: datetime, wanted: str) -> None:
    assert session_id(now, "a1b2c3d4") == wanted


@given(moments, moments)
@settings(max_examples=50)
def test_ids_sort_like_their_moments(one: datetime, other: datetime) -> None:
    earlier, later = sorted((one.replace(microsecond=0), other.replace(microsecond=0)))
    assert session_id(earlier, "0" * 8) <= session_id(later, "0" * 8)
    assert len(session_id(later, "0" * 8)) == 24 < LONGEST_ID
