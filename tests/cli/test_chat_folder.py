"""Where a conversation works that is carried on from somewhere else, and what its folder tells it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from zygote import Zygote

from segue import SessionDB

pytestmark = [pytest.mark.on_file, pytest.mark.process]

Run = Callable[..., subprocess.CompletedProcess[str]]
LAUNCHER = Path(__file__).parents[1] / "support" / "chat_launcher.py"


Ask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def ask(zygote: Zygote) -> Ask:
    """Say something once in a folder."""

    def run(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        done = zygote.run(
            [json.dumps({"scripted": True}), "--yes", *arguments, "-q", "Look and act."],
            None,
            environment | {"SEGUE_HOME": str(home), "OPENAI_API_KEY": "x"},
            program=LAUNCHER,
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_tools_work_where_the_conversation_began(ask: Ask, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "notes.txt").write_text(f"notes of {folder.name}\n")
    ask(here, tmp_path / "home")
    ask(there, tmp_path / "home", "-c")
    assert (here / "marker").read_text() == "ran\nran\n"
    assert not (there / "marker").exists()
    shutil.rmtree(here)
    done = ask(there, tmp_path / "home", "-c")
    assert f"The folder of this conversation, {here}, is not there any more" in done.stderr
    assert (there / "marker").read_text() == "ran\n"


@pytest.mark.parametrize("words", [(), ("chat",)])
def test_with_or_without_its_name_it_is_a_chat(run: Run, home: Path, words: tuple[str, ...]) -> None:
    told = run(*words, stdin="Where are the leeks?\n", OPENAI_API_KEY="", ANTHROPIC_API_KEY="")
    assert (told.returncode, bool(told.stdout)) == (0, True), told.stderr
    with SessionDB(home / "state.db") as db:
        (session,) = db.list_sessions_rich()
        said = [(one["role"], one["content"]) for one in db.get_messages(session["id"])]
    assert [role for role, _ in said] == ["user", "assistant"]
    assert said[0][1] == "Where are the leeks?"


def test_what_the_folder_wants_is_told_once_and_listed(ask: Ask, tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    (here / "notes.txt").write_text("notes\n")
    (here / "AGENTS.md").write_text("Always use leeks.\n")
    ask(here, home)
    (here / "AGENTS.md").write_text("Never use leeks.\n")
    ask(here, home, "-c")
    with SessionDB(home / "state.db") as db:
        (session,) = db.list_sessions_rich()
        found = db.get_session(session["id"])
    assert found is not None
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", found["id"])
    prompt = found["system_prompt"]
    assert "Always use leeks." in prompt
    assert "Never" not in prompt, "what was told first stays as it was"


def test_exactly_the_part_that_was_named_is_branched(ask: Ask, tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    (here / "notes.txt").write_text("notes\n")
    said = [{"role": "user", "content": "first part"}, {"role": "assistant", "content": "yes"}]
    summary = [{"seq": 0, "role": "user", "content": "a summary"}, {"role": "user", "content": "second part", "seq": 1}]
    with SessionDB(home / "state.db") as db:
        db.import_sessions([{"id": "one", "source": "cli", "messages": said, "end_reason": "compression"}])
        db.import_sessions([{"id": "two", "source": "cli", "parent_session_id": "one", "messages": summary}])
    for options, expected in ((("--exact",), "first part"), (("--branch",), "a summary")):
        ask(here, home, "-r", "one", *options)
        with SessionDB(home / "state.db") as db:
            newest = db.list_sessions_rich(limit=1)[0]
            session = db.get_session(newest["id"])
            assert session is not None
            assert session["branched_from"] == ("one" if expected == "first part" else "two")
            assert db.get_messages_as_conversation(newest["id"])[0]["content"] == expected
