"""How much a crash counts against the turns that it cut off, and when they go on by themselves."""

from datetime import timedelta

import pytest

from segue.core.crash_recovery import MAX_BLAME, blame_for_crash, is_given_up, resume_time

MINUTE = timedelta(seconds=60)


@pytest.mark.parametrize(
    ("open_turns", "crashes_before", "blame"),
    [
        (1, 0, 1.0),  # nothing else ran
        (1, 1, 1.0),
        (1, 2, 0.0),  # the third within a minute: whatever kills the process is hardly a turn
        (1, 150, 0.0),
        (2, 0, 0.5),  # at most one of them was the cause
        (12, 1, 1 / 12),
        (12, 2, 0.0),
        (0, 0, 0.0),
    ],
)
def test_the_turns_that_were_open_share_the_blame(open_turns: int, crashes_before: int, blame: float) -> None:
    assert blame_for_crash(open_turns, crashes_before) == pytest.approx(blame)


def test_a_turn_is_given_up_after_three_crashes_of_its_own_however_they_were_shared() -> None:
    assert not is_given_up(MAX_BLAME - 1)
    assert is_given_up(MAX_BLAME)
    assert is_given_up(sum([1 / 3] * 9))
    assert not is_given_up(sum([1 / 3] * 8))


@pytest.mark.parametrize(
    ("crashed_at", "expected"),
    [
        ([], None),
        ([1.0, 2.0], None),
        ([1.0, 2.0, 3.0], 63.0),
        ([3.0, 1.0, 30.0, 2.0], 90.0),
    ],
)
def test_after_three_crashes_within_a_minute_cut_off_turns_go_on_after_a_minute_without_one(
    crashed_at: list[float], expected: float | None
) -> None:
    assert resume_time(crashed_at, MINUTE) == expected


@pytest.mark.parametrize("beside", [0, 1, 3])
def test_a_turn_that_crashes_every_process_at_once_is_given_up_also_out_of_a_crash_loop(beside: int) -> None:
    """After 150 kills from outside, and with so many turns beside it each time that it goes on."""
    now, blame = 1000.0, 0.0
    crashes = [now - number / 2 for number in range(150)]
    own = 0
    while not is_given_up(blame):
        recent = [at for at in crashes if at >= now - 60]
        now = max(now, resume_time(recent, MINUTE) or now) + 1
        blame += blame_for_crash(1 + beside, len([at for at in crashes if at >= now - 60]))
        crashes.append(now)
        own += 1
        assert own <= 5 * (1 + beside)
    assert now - 1000.0 <= 60 * own
