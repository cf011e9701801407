"""What may go, and when: as a table, and as a promise over any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.moments import DAY
from segue.core.retention import Announce, Announcement, Decision, Remove, Wait, decide

NOW = 1_000 * DAY


@pytest.mark.parametrize(
    ("oldest", "announced", "decision"),
    [
        (None, None, Wait()),
        (NOW, None, Wait()),
        (NOW - 5.9 * DAY, None, Wait()),
        (NOW - 6.1 * DAY, None, Announce(Announcement(NOW, NOW - 6 * DAY))),
        (NOW - 400 * DAY, None, Announce(Announcement(NOW, NOW - 6 * DAY))),
        (NOW - 7 * DAY, Announcement(NOW - 0.9 * DAY, NOW - 6.9 * DAY), Wait()),
        (NOW - 7 * DAY, Announcement(NOW - DAY, NOW - 7 * DAY), Remove(NOW - 7 * DAY)),
        (NOW - 50 * DAY, Announcement(NOW - 40 * DAY, NOW - 46 * DAY), Remove(NOW - 46 * DAY)),
        (None, Announcement(NOW - DAY, NOW - 7 * DAY), Remove(NOW - 7 * DAY)),
    ],
)
def test_a_week_is_kept_and_a_day_is_given(
    oldest: float | None, announced: Announcement | None, decision: Decision
) -> None:
    assert decide(oldest, 7, NOW, announced) == decision


@given(
    days=st.integers(0, 40),
    trashed=st.lists(st.floats(0, 100), max_size=8),
    looks=st.lists(st.floats(0, 200), max_size=40),
)
def test_nothing_goes_before_its_days_are_over_and_a_day_after_it_was_announced(
    days: int, trashed: list[float], looks: list[float]
) -> None:
    here = [day * DAY for day in trashed]
    announced: Announcement | None = None
    told: dict[float, float] = {}
    for now in sorted(day * DAY for day in looks):
        present = [moment for moment in here if moment <= now]
        match decide(min(present, default=None), days, now, announced):
            case Announce(announcement):
                announced = announcement
                told |= {moment: now for moment in present if moment < announcement.before and moment not in told}
            case Remove(before):
                announced = None
                for moment in [moment for moment in present if moment < before]:
                    assert now - moment >= days * DAY
                    assert now - told[moment] >= DAY
                    here.remove(moment)
