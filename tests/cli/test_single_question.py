"""One question on the command line: what stdin adds to it, and its answer as JSON."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import Beside
from waiting import DEADLINE, wait_until

from segue import SessionDB
from segue.cli.chatting.stdin import MAX_BYTES

pytestmark = [pytest.mark.on_file, pytest.mark.process]

Run = Callable[..., subprocess.CompletedProcess[str]]
RUNNING = "SELECT 1 FROM turns WHERE state = 'running'"
AGENT = """
import threading

def answer(conversation):
    said = conversation[-1]["content"]
    if "wait" in said:
        threading.Event().wait()
    if "break down" in said:
        raise ValueError("no answer")
    return "You said: " + said
"""


@pytest.fixture
def home(prepared_home: Path) -> Path:
    """A home whose agent repeats what it is told."""
    (prepared_home / "repeating.py").write_text(AGENT)
    (prepared_home / "config.yaml").write_text("agent: {entry: repeating:answer}\n")
    return prepared_home


def started(home: Path, *arguments: str, **streams: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "segue", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SEGUE_HOME": str(home), "TERM": "xterm"},
        **streams,
    )


def ask(home: Path, sql: str) -> list[tuple[Any, ...]]:
    if not (home / "state.db").exists():
        return []
    with Beside(home) as beside:
        return beside.ask(sql)


@pytest.mark.parametrize("option", ["-q", "-p", "--question"])
def test_piped_text_is_the_context_of_a_question(run: Run, option: str) -> None:
    asked = run(option, "What is this?", stdin="leeks\nand potatoes\n")
    assert asked.stdout == "You said: What is this?\n\n<stdin>\nleeks\nand potatoes\n</stdin>\n"
    assert (asked.returncode, asked.stderr) == (0, "")


@pytest.mark.parametrize("piped", ["", "\n  \n"])
def test_empty_stdin_adds_nothing(run: Run, piped: str) -> None:
    assert run("-q", "hello", stdin=piped).stdout == "You said: hello\n"


def test_a_dash_takes_the_whole_question_from_stdin(run: Run) -> None:
    assert run("-q", "-", stdin="from the pipe\n").stdout == "You said: from the pipe\n"
    assert run("-q", "-", stdin="").stderr == "segue: The question is empty.\n"


@pytest.mark.parametrize("question", ["hello", "-"])
def test_closed_stdin_is_an_empty_one(home: Path, question: str) -> None:
    told = subprocess.run(
        ["sh", "-c", 'exec "$0" -m segue -q "$1" <&-', sys.executable, question],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | {"SEGUE_HOME": str(home)},
    )
    if question == "hello":
        assert (told.returncode, told.stdout) == (0, "You said: hello\n"), told.stderr
    else:
        assert (told.returncode, told.stderr) == (2, "segue: The question is empty.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_session_of_a_question(home: Path, number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # the tests may have been started by nohup
    try:
        process = started(home, "-q", "please wait", stdin=subprocess.DEVNULL)
    finally:
        signal.signal(number, before)
    wait_until(lambda: ask(home, RUNNING), "the answer")
    process.send_signal(number)
    assert process.wait(DEADLINE) == -number
    process.communicate()
    assert ask(home, "SELECT s.end_reason, r.ended_at IS NOT NULL FROM sessions s, runs r") == [("user_exit", 1)]


def test_a_signal_that_is_ignored_stays_ignored(home: Path) -> None:
    command = ["sh", "-c", 'trap "" HUP; exec "$0" -m segue -q "please wait"', sys.executable]
    environment = os.environ | {"SEGUE_HOME": str(home), "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    wait_until(lambda: ask(home, RUNNING), "the answer")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE) == -signal.SIGTERM


def test_a_terminal_on_stdin_is_not_waited_for(home: Path) -> None:
    keyboard, terminal = os.openpty()
    try:
        asked = started(home, "-q", "hello", stdin=terminal)
        assert asked.communicate(timeout=DEADLINE) == ("You said: hello\n", "")
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_a_silent_pipe_is_named_and_waited_for(home: Path) -> None:
    asked = started(home, "-q", "hello", stdin=subprocess.PIPE)
    assert asked.stderr is not None
    assert asked.stderr.readline() == "Waiting for stdin to end; `< /dev/null` asks without it.\n"
    said, _ = asked.communicate("late", timeout=DEADLINE)
    assert said == "You said: hello\n\n<stdin>\nlate\n</stdin>\n"


def test_more_than_a_question_takes_is_refused(run: Run, home: Path) -> None:
    for question in ("hello", "-"):
        refused = run("-q", question, stdin="x" * (MAX_BYTES + 1))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "stdin holds more than 1.0 MB" in refused.stderr
    with SessionDB(home / "state.db") as db:
        assert db.list_sessions_rich() == []


def test_bytes_that_are_no_text_do_not_stop_a_question(home: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "segue", "-q", "hello"],
        input=b"a\x00b\xff\n",
        capture_output=True,
        timeout=DEADLINE,
        env=os.environ | {"SEGUE_HOME": str(home)},
    )
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.decode() == "You said: hello\n\n<stdin>\na\u2400b\ufffd\n</stdin>\n"


def test_an_answer_can_be_had_as_json(run: Run, home: Path) -> None:
    asked = run("-q", "What is left to do?", "--json", stdin="leeks\n")
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout)
    assert told["answer"] == "You said: What is left to do?\n\n<stdin>\nleeks\n</stdin>"
    assert told["error"] is None
    assert told["title"] == "What is left to do?"
    assert told["usage"]["input_tokens"] == 0  # a function uses none
    with SessionDB(home / "state.db") as db:
        (session,) = db.list_sessions_rich()
    assert (told["session_id"], told["title"]) == (session["id"], session["title"])
    again = json.loads(run("-r", told["session_id"], "-p", "more", "--json").stdout)
    assert (again["session_id"], again["answer"]) == (told["session_id"], "You said: more")


@pytest.mark.parametrize(
    ("arguments", "stdin", "part", "code"),
    [
        (["-q", "break down"], "", "ValueError", 1),
        (["-q", " "], "", "The question is empty.", 2),
        (["-q", "hello"], "x" * (MAX_BYTES + 1), "stdin holds more", 2),
        (["-r", "nobody", "-q", "hello"], "", "'nobody'", 1),
        (["-c", "-q", "hello"], "", "no conversation", 1),
        (["-m", "no-such-model", "-q", "hello"], "", "no-such-model", 1),
    ],
)
def test_a_failure_is_in_the_json(run: Run, arguments: list[str], stdin: str, part: str, code: int) -> None:
    failed = run(*arguments, "--json", stdin=stdin)
    told = json.loads(failed.stdout)
    assert failed.returncode == code
    assert failed.stderr == ""
    assert part in told["error"]
    assert set(told) == {"session_id", "title", "answer", "model", "usage", "error"}


def test_a_chat_has_no_json(run: Run) -> None:
    refused = run("--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--json needs -q" in refused.stderr
