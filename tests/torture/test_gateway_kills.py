"""A gateway that is killed at any moment loses nothing, answers nothing twice, and keeps every order."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_nursery import Nursery
from kill_loop import ENOUGH, PLACES, SHOWN, KillLoop
from postgres_server import Server
from torture_rounds import rounds

from segue.ports.failpoints import COMPRESSING, REMEMBERING, SHOWING, Point

NOT_IN_A_LANE = {Point.BEFORE_TURN_OPENS, Point.AFTER_TURN_OPENS}
POINTS = [point for point in Point if point not in COMPRESSING | REMEMBERING | NOT_IN_A_LANE]

pytestmark = [pytest.mark.torture, pytest.mark.timeout(rounds(600, in_torture=3600))]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Where conversations are kept."""
    if request.param == "sqlite":
        return tmp_path / "state.db"
    server: Server = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_nothing_is_lost_or_answered_twice(place: str | Path, nursery: Nursery, has_key: bool) -> None:
    kills = rounds(60 if has_key else 40, in_torture=1000)
    most = 6 * kills if has_key else 0
    report = asyncio.run(KillLoop(place, nursery, has_key=has_key).run(kills, most))
    print(report)
    assert report.violations == {}
    if has_key:
        assert all(report.places[place] >= ENOUGH for place in PLACES), f"the run is void: {report}"


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_an_answer_that_is_being_shown_is_one_message_in_the_end(
    place: str | Path, nursery: Nursery, has_key: bool
) -> None:
    kills = rounds(20, in_torture=1000)
    report = asyncio.run(KillLoop(place, nursery, has_key=has_key, is_streaming=True).run(kills))
    print(report)
    assert report.violations == {}
    assert report.places[SHOWN] >= 3, f"the run is void: {report}"


@pytest.mark.parametrize("point", sorted(SHOWING))
def test_killed_while_it_is_shown_where_nothing_has_a_key_a_possible_repeat_is_marked(
    place: str | Path, nursery: Nursery, point: Point
) -> None:
    loop = KillLoop(place, nursery, seed=5, has_key=False, is_streaming=True)
    report = asyncio.run(loop.die_at(point, 2))
    assert report.kills == 1, "it was never there"
    assert report.violations == {}


def test_without_the_row_of_what_is_shown_it_would_not_be(tmp_path: Path, nursery: Nursery) -> None:
    loop = KillLoop(tmp_path / "state.db", nursery, is_streaming=True, control="forget drafts")
    report = asyncio.run(loop.run(10))
    print(report)
    assert report.unfinished


@pytest.mark.parametrize("control", ["acknowledge first", "forget names"])
def test_without_its_guards_it_would(tmp_path: Path, nursery: Nursery, control: str) -> None:
    """The same people, the same kills, and one promise taken out: the checks must notice."""
    report = asyncio.run(KillLoop(tmp_path / "state.db", nursery, control=control).run(rounds(15, in_torture=40)))
    print(report)
    assert report.lost if control == "acknowledge first" else report.twice


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_commit_it_goes_on_as_if_nothing_had_been(tmp_path: Path, nursery: Nursery, point: Point) -> None:
    died_at(tmp_path / "state.db", nursery, point, 3)


@pytest.mark.parametrize("point", POINTS)
def test_the_same_on_a_server(postgres_server: Server, nursery: Nursery, point: Point) -> None:
    died_at(postgres_server.new_database(), nursery, point, rounds(1, in_torture=3))


def died_at(place: str | Path, nursery: Nursery, point: Point, times: int) -> None:
    """Three lives end there, at the first, the second and the third time that it is passed."""
    loop = KillLoop(place, nursery, seed=times, is_streaming=point in SHOWING)
    report = asyncio.run(loop.die_at(point, *range(1, times + 1)))
    assert report.kills == times, "it was never there"
    assert report.violations == {}
