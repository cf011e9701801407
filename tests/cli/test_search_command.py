"""`segue sessions search` as people use it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def told(home: Path) -> None:
    with SessionDB() as db:
        db.create_session("trip", "cli", title="Spring \x1b[31mred")
        db.append_message("trip", "user", "Which week is best for \x1b[2JLisbon >>>now<<<?")
        db.append_message("trip", "assistant", "In Lisbon, the third.")
        db.create_session("other", "telegram", title="天气")
        db.append_message("other", "user", "明天天气如何")


@pytest.mark.usefixtures("told")
def test_matches_are_grouped_by_conversation_and_lead_back_to_it(run: Run) -> None:
    done = run("sessions", "search", "lisbon")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "Spring [31mred  trip", "its escape character is gone"
    assert sum(line.startswith(("●", "◆")) for line in lines) == 2
    assert "\x1b" not in done.stdout
    assert run(*lines[-1].removeprefix("segue ").split()).returncode == 0


@pytest.mark.usefixtures("told")
def test_it_answers_programs_and_says_when_there_is_nothing(run: Run) -> None:
    [hit] = json.loads(run("sessions", "search", "天", "--json").stdout)
    assert (hit["session_id"], hit["snippet"]) == ("other", "明>>>天<<<>>>天<<<气如何")
    none = run("sessions", "search", "elephant")
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "Nothing was found.\n")
    assert run("sessions", "search").returncode == 2


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("query", ["(", "--json", '"', "*", "NOT", "\x00", "a" * 5000, "~", "--"])
def test_no_query_is_an_error(run: Run, query: str) -> None:
    done = run("sessions", "search", "--", query.replace("\x00", ""))
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("told")
def test_the_index_is_examined_and_made_anew(run: Run, home: Path) -> None:
    done = run("doctor", "--reindex")
    assert done.returncode == 0, done.stdout
    assert "made anew" in done.stderr
    assert "✓ search" in done.stdout
