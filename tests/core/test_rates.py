"""How often somebody may fail."""

from segue.core.rates import Failures


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
