"""A turn killed at every point that lasts, then carried on: nothing is lost, nothing finished happens again."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from homes import Beside, database_of, keep_in
from postgres_server import Emptied

from segue import SessionDB
from segue.core.turns import OUTCOME_UNKNOWN
from segue.ports.failpoints import COMPRESSING, ON_A_PLATFORM, REMEMBERING, Point

pytestmark = pytest.mark.torture

LAUNCHER = Path(__file__).parents[1] / "support" / "chat_launcher.py"
ASKED = "Please look and act."
TWICE = {
    *(Point.BEFORE_MODEL_BEGINS, Point.AFTER_MODEL_BEGINS),
    *(Point.BEFORE_TOOL_BEGINS, Point.AFTER_TOOL_BEGINS, Point.BEFORE_RESULT_IS_STORED, Point.AFTER_RESULT_IS_STORED),
}
POINTS = [point for point in Point if point not in COMPRESSING | ON_A_PLATFORM | REMEMBERING]
KILLS = [(point, nth) for point in POINTS for nth in ((1, 2) if point in TWICE else (1,))]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A working directory, with a home beside it."""
    if request.param == "postgres":
        emptied: Emptied = request.getfixturevalue("emptied")
        keep_in(tmp_path / "home", emptied.empty())
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("remember the milk\n")
    return folder


Chat = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def chat(fork_server: ForkServer) -> Chat:
    def run(place: Path, wanted: dict[str, Any], *arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environment |= {"SEGUE_HOME": str(place.parent / "home"), "OPENAI_API_KEY": "x"}
        told = json.dumps({"scripted": True, **wanted})
        return fork_server.run(LAUNCHER, told, "--yes", *arguments, env=environment, cwd=place)

    return run


def ran(place: Path) -> int:
    marker = place / "marker"
    return len(marker.read_text().splitlines()) if marker.exists() else 0


def test_every_point_is_on_the_way(place: Path, chat: Chat, tmp_path: Path) -> None:
    """The program says itself where it can be cut off; a turn with two tools passes all of it."""
    done = chat(place, {"trace": str(tmp_path / "trace")}, "-q", ASKED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["At", "once.", "All", "done."]
    passed = Counter((tmp_path / "trace").read_text().split())
    assert sorted(passed) == sorted(POINTS)
    assert {point for point, times in passed.items() if times == 2} == TWICE
    assert ran(place) == 1


@pytest.mark.parametrize(("point", "nth"), KILLS)
def test_killed_there_it_goes_on_as_if_nothing_had_been(place: Path, chat: Chat, point: Point, nth: int) -> None:
    killed = chat(place, {"kill": [point, nth]}, "-q", ASKED)
    assert killed.returncode == -9
    carried_on = chat(place, {}, "--continue")
    if point is Point.BEFORE_TURN_OPENS:
        assert "no conversation to go on with" in carried_on.stderr
        return
    assert carried_on.returncode == 0, carried_on.stderr
    check(place, is_unknown=point in (Point.AFTER_TOOL_BEGINS, Point.BEFORE_RESULT_IS_STORED) and nth == 2)
    assert ran(place) == (0 if (point, nth) == (Point.AFTER_TOOL_BEGINS, 2) else 1)


def check(place: Path, *, is_unknown: bool) -> None:
    home = place.parent / "home"
    with SessionDB(database_of(home)) as db:
        (session,) = db.list_sessions_rich(limit=5)
        said = db.get_messages(session["id"])
        chat_format = db.get_messages_as_conversation(session["id"])
    roles = [message["role"] for message in said]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert [message["role"] for message in chat_format] == roles, "nothing had to be made up for a provider"
    assert (said[0]["content"], said[-1]["content"]) == (ASKED, "All done.")
    assert [message["tool_call_id"] for message in said[2:4]] == ["call_look", "call_act"]
    assert "remember the milk" in said[2]["content"]
    assert (said[3]["content"] == OUTCOME_UNKNOWN) is is_unknown
    with Beside(home) as beside:
        assert beside.ask("SELECT state FROM turns") == [("done",)]
        finished = beside.ask("SELECT call_id, count(*) FROM steps WHERE state = 'done' GROUP BY call_id")
        assert all(count == 1 for call, count in finished if call is not None)
        assert beside.ask("SELECT count(*) FROM runs WHERE ended_at IS NULL")[0][0] == 1, "the one that was killed"


def test_who_runs_everything_again_acts_twice(place: Path, chat: Chat) -> None:
    """The control: without the rule about unknown outcomes, the command runs a second time."""
    assert chat(place, {"kill": [Point.BEFORE_RESULT_IS_STORED, 2]}, "-q", ASKED).returncode == -9
    assert chat(place, {"blind": True}, "--continue").returncode == 0
    assert ran(place) == 2


def test_what_is_cut_off_again_and_again_is_given_up(place: Path, chat: Chat) -> None:
    assert chat(place, {"kill": [Point.AFTER_MODEL_BEGINS, 1]}, "-q", ASKED).returncode == -9
    for _ in range(2):
        assert chat(place, {"kill": [Point.AFTER_MODEL_BEGINS, 1]}, "--continue").returncode == -9
    last = chat(place, {}, "--continue")
    assert last.returncode == 0
    assert "given up" in last.stdout + last.stderr
    assert "remember" not in chat(place, {}, "--continue").stdout, "and nothing is left to be carried on"


# Compressing


def grow(place: Path) -> list[str]:
    """A conversation that fills its model's window; what was said in it."""
    said = [f"Locker {number} has leeks in it. " * 10 for number in range(40)]
    messages = [
        one
        for words in said
        for one in ({"role": "user", "content": words}, {"role": "assistant", "content": "Noted."})
    ]
    with SessionDB(database_of(place.parent / "home")) as db:
        db.import_sessions(
            [{"id": "long", "source": "cli", "title": "Lockers", "context_window": 4_000, "messages": messages}]
        )
    return said


def compressed(place: Path, said: list[str]) -> None:
    """It is compressed once and wholly, everything is there once, and the turn has come to its end."""
    home = place.parent / "home"
    with Beside(home) as beside:
        parts = beside.ask("SELECT id, title, parent_session_id, end_reason FROM sessions ORDER BY started_at, title")
        assert [(row[1], row[3]) for row in parts] == [("Lockers", "compression"), ("Lockers #2", "user_exit")]
        assert parts[1][2] == "long"
        assert beside.ask("SELECT state FROM turns WHERE kind = 'answer'") == [("done",)]
        assert beside.ask("SELECT count(*) FROM turns WHERE kind = 'flush'") == [(1,)]
        assert beside.ask("SELECT count(*) FROM messages WHERE content = 'NO_REPLY'") == [(0,)]
    with SessionDB(database_of(home)) as db:
        every = [message for row in parts for message in db.get_messages(row[0])]
        view = db.get_messages_as_conversation(parts[1][0])
    assert [one["content"] for one in every if one["role"] == "user" and one["seq"]] == [*said, ASKED]
    assert "They talked about leeks" in view[0]["content"]
    assert view[-1]["content"] == "All done."


def test_a_compression_passes_every_point_of_it(place: Path, chat: Chat, tmp_path: Path) -> None:
    said = grow(place)
    done = chat(place, {"trace": str(tmp_path / "trace")}, "-c", "-q", ASKED)
    assert done.returncode == 0, done.stderr
    passed = Counter((tmp_path / "trace").read_text().split())
    assert {point: passed[point] for point in COMPRESSING} == dict.fromkeys(COMPRESSING, 1)
    compressed(place, said)
    assert ran(place) == 1


def test_a_compression_in_two_steps_could_be_half_done(place: Path, chat: Chat) -> None:
    """The control: when its turn is moved later, a kill in between leaves the one without the other."""
    said = grow(place)
    assert chat(place, {"halved": True, "kill": [Point.AFTER_COMPRESSION, 1]}, "-c", "-q", ASKED).returncode == -9
    chat(place, {}, "--continue")
    with pytest.raises(AssertionError):
        compressed(place, said)


@pytest.mark.parametrize("point", sorted(COMPRESSING))
def test_a_compression_that_is_killed_is_done_or_not_done(place: Path, chat: Chat, point: Point) -> None:
    said = grow(place)
    assert chat(place, {"kill": [point, 1]}, "-c", "-q", ASKED).returncode == -9
    with Beside(place.parent / "home") as beside:
        parts = beside.ask("SELECT id, ended_at IS NULL FROM sessions ORDER BY started_at, title")
        assert len(parts) == (2 if point is Point.AFTER_COMPRESSION else 1)
        assert [bool(row[1]) for row in parts] == [len(parts) == 1, True][: len(parts)]
    carried_on = chat(place, {}, "--continue")
    assert carried_on.returncode == 0, carried_on.stderr
    compressed(place, said)
    assert ran(place) == 1
