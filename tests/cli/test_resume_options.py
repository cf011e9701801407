"""`-c` and `-r`: which conversation is gone on with, by a title without quotes, and what is said of an earlier part."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segue import SessionDB
from segue.cli.chatting.command import join_titles

Run = Callable[..., subprocess.CompletedProcess[str]]
NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "OPENROUTER_API_KEY": ""}
COMPRESSED = "“my project” was compressed; this is where it goes on.\n"


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        ("-c my project", ["-c", "my project"]),
        ("-r my project -q hello", ["-r", "my project", "-q", "hello"]),
        ("-q hello -c my project #2 --branch", ["-q", "hello", "-c", "my project #2", "--branch"]),
        ("--resume my project", ["--resume", "my project"]),
        ("--continue=my project -y", ["--continue=my project", "-y"]),
        ("-cmy project", ["-cmy project"]),
        ("-yc my project", ["-y", "-c", "my project"]),
        ("-c", ["-c"]),
        ("-c -q hello", ["-c", "-q", "hello"]),
        ("-r -7 and more", ["--resume=-7 and more"]),
        ("-q -c hello", ["-q", "-c", "hello"]),
        ("sessions show -r my project", ["sessions", "show", "-r", "my", "project"]),
        ("chat -c my project", ["chat", "-c", "my", "project"]),
        ("-- -c my project", ["--", "-c", "my", "project"]),
        ("-q", ["-q"]),
        ("", []),
    ],
)
def test_the_words_of_a_title_are_one_value(typed: str, joined: list[str]) -> None:
    assert join_titles(typed.split()) == joined


@pytest.fixture
def lineage(db: SessionDB) -> SessionDB:
    """`my project` in two parts, and another conversation that was active later."""
    at = {"timestamp": 1.0}
    said = [{"role": "user", "content": "first part", **at}, {"role": "assistant", "content": "yes", **at}]
    summary = [
        {"seq": 0, "role": "user", "content": "a summary", **at},
        {"seq": 1, "role": "user", "content": "second part", **at},
    ]
    first = {"id": "one", "title": "my project", "messages": said, "ended_at": 2.0, "end_reason": "compression"}
    second = {"id": "two", "title": "my project #2", "messages": summary, "parent_session_id": "one"}
    later = [{"role": "user", "content": "later", "timestamp": 9.0}]
    third = {"id": "three", "title": "42 leeks", "messages": later}
    assert db.import_sessions([one | {"source": "cli"} for one in (first, second, third)])["added"] == 3
    return db


def asked(run: Run, *arguments: str) -> tuple[dict[str, Any], str]:
    done = run(*arguments, "-q", "hello", "--json", stdin="", **NO_KEYS)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, done.stderr


@pytest.mark.usefixtures("lineage")
@pytest.mark.parametrize("option", ["-c", "-r"])
def test_both_options_take_titles_and_ids_and_say_where_an_earlier_part_goes_on(run: Run, option: str) -> None:
    for words, session, told in (
        (["my", "project", "#2"], "two", ""),
        (["MY", "Project"], "two", COMPRESSED),
        (["one"], "two", COMPRESSED),
        (["42", "leeks"], "three", ""),
    ):
        answer, notes = asked(run, option, *words)
        assert (answer["session_id"], notes) == (session, told), words


def test_both_options_take_a_branch(run: Run, lineage: SessionDB) -> None:
    for arguments, came_from, told in (
        (("-c", "--branch"), "three", ""),
        (("-c", "42", "leeks", "--branch"), "three", ""),
        (("-r", "my", "project", "--branch"), "two", COMPRESSED),
        (("-c", "my", "project", "--exact"), "one", ""),
        (("-r", "my", "project", "--exact"), "one", ""),
    ):
        answer, notes = asked(run, *arguments)
        branch = lineage.get_session(answer["session_id"])
        assert branch is not None
        assert (branch["branched_from"], notes) == (came_from, told), arguments
        assert lineage.delete_session(branch["id"])


def test_a_number_is_the_beginning_of_an_id(run: Run, lineage: SessionDB) -> None:
    lineage.import_sessions([{"id": "2025_leeks", "source": "cli", "messages": [{"role": "user", "content": "soup"}]}])
    assert asked(run, "-r", "202")[0]["session_id"] == "2025_leeks"


@pytest.mark.on_file
def test_a_list_to_choose_from_needs_a_terminal(run: Run, home: Path) -> None:
    done = run("-r")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("segue: -r opens a list to choose from, which needs a terminal;")
    assert not home.exists()
