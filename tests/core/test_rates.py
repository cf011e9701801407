"""A bucket that fills with time."""

from hypothesis import given
from hypothesis import strategies as st

from segue.core.rates import Bucket, Failures, Rate, is_full, take

RATE = Rate(burst=3, seconds=60.0)


def happenings(moments: list[float], rate: Rate = RATE) -> list[bool]:
    bucket, allowed = None, []
    for moment in moments:
        bucket, may = take(bucket, rate, moment)
        allowed.append(may)
    return allowed


def test_a_burst_may_happen_and_then_one_at_a_time() -> None:
    assert happenings([0, 0, 0, 0, 30, 60, 61, 120]) == [True, True, True, False, False, True, False, True]


def test_a_long_silence_fills_no_more_than_a_burst() -> None:
    assert happenings([0, 0, 0, 1e6, 1e6, 1e6, 1e6]) == [True, True, True, True, True, True, False]


def test_a_clock_that_steps_back_fills_nothing() -> None:
    assert happenings([1000, 1000, 1000, 0, 30]) == [True, True, True, False, False]


def test_a_full_bucket_can_be_forgotten() -> None:
    bucket, _ = take(None, RATE, 0.0)
    assert not is_full(bucket, RATE, 59.0)
    assert is_full(bucket, RATE, 60.0)
    assert is_full(Bucket(3.0, 0.0), RATE, 0.0)


@given(st.lists(st.floats(0, 3600), min_size=1, max_size=60))
def test_never_more_than_the_rate_allows(moments: list[float]) -> None:
    moments.sort()
    allowed = sum(happenings(moments))
    assert allowed <= RATE.burst + (moments[-1] - moments[0]) / RATE.seconds + 1e-6


def test_who_fails_too_often_waits_until_the_span_is_over() -> None:
    failures = Failures(most=2, seconds=60.0)
    assert failures.wait("eve", 100.0) == 0
    failures.add("eve", 100.0)
    failures.add("eve", 130.0)
    waits = [failures.wait(who, now) for who, now in (("eve", 130.0), ("alice", 130.0), ("eve", 159.5), ("eve", 160.0))]
    assert waits == [30, 0, 1, 0]


def test_a_clock_that_is_set_back_locks_nobody_out() -> None:
    failures = Failures(most=1)
    failures.add("eve", 1000.0)
    assert failures.wait("eve", 500.0) == 0


def test_only_so_many_who_failed_are_remembered() -> None:
    failures = Failures(most=1, remembered=2)
    for who in ("eve", "mallory", "trudy"):
        failures.add(who, 100.0)
    assert [bool(failures.wait(who, 100.0)) for who in ("eve", "mallory", "trudy")] == [False, True, True]
