"""A gateway that is killed at any moment loses nothing, answers nothing twice, and keeps every order."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_nursery import Nursery
from kill_loop import ACKNOWLEDGED_FIRST, ENOUGH, PLACES, SHOWN, KillLoop, Report
from torture_rounds import rounds

from segue.ports.failpoints import COMPRESSING, REMEMBERING, SHOWING, Point

NOT_IN_A_LANE = {Point.BEFORE_TURN_OPENS, Point.AFTER_TURN_OPENS}
POINTS = [point for point in Point if point not in COMPRESSING | REMEMBERING | NOT_IN_A_LANE]

pytestmark = [pytest.mark.torture, pytest.mark.timeout(rounds(900, in_torture=3600))]


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_nothing_is_lost_or_answered_twice(place: str | Path, nursery: Nursery, has_key: bool) -> None:
    report = asyncio.run(KillLoop(place, nursery, has_key=has_key).run(rounds(8, in_torture=1000), PLACES))
    print(report)
    assert report.violations == {}
    assert all(report.places[place] >= ENOUGH for place in PLACES), f"the run is void: {report}"


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_an_answer_that_is_being_shown_is_one_message_in_the_end(
    place: str | Path, nursery: Nursery, has_key: bool
) -> None:
    loop = KillLoop(place, nursery, has_key=has_key, is_streaming=True)
    report = asyncio.run(loop.run(rounds(5, in_torture=1000), [SHOWN]))
    print(report)
    assert report.violations == {}
    assert report.places[SHOWN] >= ENOUGH, f"the run is void: {report}"


@pytest.mark.parametrize("point", sorted(SHOWING))
def test_killed_while_it_is_shown_where_nothing_has_a_key_a_possible_repeat_is_marked(
    place: str | Path, nursery: Nursery, point: Point
) -> None:
    loop = KillLoop(place, nursery, seed=5, has_key=False, is_streaming=True)
    report = asyncio.run(loop.die_at(point, 2))
    assert report.kills == 1
    assert report.violations == {}


def test_without_the_row_of_what_is_shown_it_would_not_be(tmp_path: Path, nursery: Nursery) -> None:
    assert any(
        report.unfinished for report in unguarded(tmp_path, nursery, [SHOWN], "forget drafts", is_streaming=True)
    )


@pytest.mark.parametrize(
    ("control", "aim"),
    [("acknowledge first", ACKNOWLEDGED_FIRST), ("forget names", "committed, not acknowledged")],
    ids=["acknowledge first", "forget names"],
)
def test_without_its_guards_it_would(tmp_path: Path, nursery: Nursery, control: str, aim: str) -> None:
    """The same people, the same kills, and one promise taken out: the checks must notice."""
    reports = unguarded(tmp_path, nursery, [aim], control)
    assert any(report.lost if control == "acknowledge first" else report.twice for report in reports)


def unguarded(folder: Path, nursery: Nursery, aims: list[str], control: str, **more: Any) -> Iterator[Report]:
    """A run after another without a guard, for the checks to notice one of them."""
    for seed in range(1, 21):
        loop = KillLoop(folder / f"{seed}.db", nursery, seed=seed, control=control, **more)
        report = asyncio.run(loop.run(rounds(2, in_torture=10), aims))
        print(report)
        yield report


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_commit_it_goes_on_as_if_nothing_had_been(
    place: str | Path, nursery: Nursery, point: Point
) -> None:
    """So many lives end there, at the first, the second and the third time that it is passed."""
    times = rounds(1 if isinstance(place, str) else 2, in_torture=3)
    loop = KillLoop(place, nursery, seed=times, is_streaming=point in SHOWING)
    report = asyncio.run(loop.die_at(point, *range(1, times + 1)))
    assert report.kills == times
    assert report.violations == {}
