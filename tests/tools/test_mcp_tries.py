"""When a server that is gone is tried again, without a clock."""

import pytest

from segue.tools.mcp_tries import MOST_IN_A_ROW, REST, Tries


def waits(tries: Tries, now: float) -> list[float]:
    """The pauses of a row of tries in vain."""
    seen: list[float] = []
    while (pause := tries.wait(now)) is not None:
        seen.append(pause)
        tries.begun()
        tries.lost(now)
        assert len(seen) < 100
    return seen


def came() -> Tries:
    tries = Tries()
    tries.begun()
    tries.came(0)
    return tries


def test_a_server_that_never_came_is_tried_once_and_then_after_rests_that_double() -> None:
    tries = Tries()
    now = 0.0
    for rest in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        assert waits(tries, now) == [0]
        assert tries.wait(now + rest - 1) is None
        now += rest


def test_a_server_that_was_there_is_tried_a_few_times_in_a_row() -> None:
    tries = came()
    tries.lost(1)
    assert waits(tries, 1) == [0, 0.5, 1.0]
    assert tries.wait(1 + REST - 1) is None
    assert waits(tries, 1 + REST) == [0, 0.5, 1.0]


@pytest.mark.parametrize(("lasted", "is_tried"), [(1, False), (59, False), (60, True)])
def test_a_server_that_lasts_is_not_one_that_ends_at_once(lasted: float, is_tried: bool) -> None:
    tries, now = came(), 0.0
    for _ in range(MOST_IN_A_ROW + 1):
        now += lasted
        tries.lost(now)
        if tries.wait(now) is None:
            break
        tries.begun()
        tries.came(now)
    assert (tries.wait(now) is not None) is is_tried


def test_a_server_that_was_of_use_is_tried_at_once() -> None:
    tries = came()
    for _ in range(10):
        tries.lost(1)
        assert tries.wait(1) == 0
        tries.begun()
        tries.came(1)
        tries.proved()
