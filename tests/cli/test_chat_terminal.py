"""The chat in a real terminal, with a model that answers by script over each wire format."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from homes import Beside
from model_server import ModelServer
from terminal import Terminal
from waiting import DEADLINE, wait_until

from segue import SessionDB, __version__

pytestmark = [pytest.mark.on_file, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

SEGUE = shlex.join([sys.executable, "-m", "segue"])
LAUNCHER = Path(__file__).parents[1] / "support" / "chat_launcher.py"
COLD = shlex.join([sys.executable, str(LAUNCHER), '{"cold": true}'])
"""For somebody who comes back and asks nothing: a chat begins sooner, as it loads nothing that asking would need."""
LONG = "".join(f"This is sentence number {number} of a long story. " for number in range(2_000))
SENTENCE = re.compile("sentence number [0-9]+ ")
WITHOUT_KEYS = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 1000},
    "completion_tokens_details": {"reasoning_tokens": 7},
    "input_tokens": 200,
    "output_tokens": 30,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 50,
}
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "which files", "hasToolResult": False},
        "response": {
            "content": "I look.",
            "reasoning": "A command will tell.",
            "reasoningSignature": "c2lnbmVk",
            "toolCalls": [{"id": "call_1", "name": "terminal", "arguments": {"command": "ls; touch seen"}}],
            "usage": USAGE,
        },
    },
    {
        "match": {"userMessage": "which files", "hasToolResult": True},
        "response": {"content": "There is **one** file: `notes.txt`.", "usage": USAGE},
    },
    {"match": {"userMessage": "tell me a long story"}, "response": {"content": LONG}, "latency": 40, "chunkSize": 20},
    {"match": {"userMessage": "tell me a tale"}, "response": {"content": LONG[:800]}, "latency": 40, "chunkSize": 20},
    {  # the first time for minutes, so that it can be cut off
        "match": {"userMessage": "tell me a saga", "sequenceIndex": 0},
        "response": {"content": LONG},
        "latency": 40,
        "chunkSize": 20,
    },
    {"match": {"userMessage": "tell me a saga"}, "response": {"content": LONG[:800]}, "latency": 20, "chunkSize": 20},
    *(
        {
            "match": {"userMessage": f"tell me an epic of {hero}", "sequenceIndex": at},
            "response": {"content": LONG[: 800 if at else None]},
            "latency": 40,
            "chunkSize": 20,
        }
        for hero in ("Beowulf", "Roland")
        for at in (0, 1)
    ),
    {
        "match": {"userMessage": "tell me a ballad"},
        "response": {"content": LONG.replace(". ", ".\n\n")},
        "latency": 40,
        "chunkSize": 20,
    },
    {
        "match": {"userMessage": "fail"},
        "response": {"error": {"message": "no such model", "type": "not_found_error"}, "status": 404},
    },
    {"match": {"userMessage": "hello"}, "response": {"content": "Hello, friend.", "usage": USAGE}},
    {"match": {"userMessage": "begun a new conversation"}, "response": {"content": "Good morning.", "usage": USAGE}},
    {"match": {"userMessage": "and now"}, "response": {"content": "Now it is noon.", "usage": USAGE}},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    running = ModelServer(tmp_path_factory.mktemp("server"), FIXTURES)
    yield running
    running.close()


@pytest.fixture(params=["openai", "anthropic"])
def variables(request: pytest.FixtureRequest, server: ModelServer, home: Path) -> dict[str, str]:
    """An environment in which one provider is there."""
    wire = str(request.param)
    base = f"{server.url}/v1" if wire == "openai" else server.url
    return {
        "SEGUE_HOME": str(home),
        f"{wire.upper()}_API_KEY": "sk-nothing-to-hide",
        f"{wire.upper()}_BASE_URL": base,
        "SEGUE_TEST_WIRE": wire,
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("remember the milk\n")
    return folder


@pytest.fixture
def terminal(place: Path, variables: dict[str, str]) -> Iterator[Terminal]:
    hidden = [f"{name}=" for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL")) and name not in variables]
    opened = Terminal(place, *hidden, *(f"{name}={value}" for name, value in variables.items()), width=100, height=48)
    yield opened
    opened.close()


def begin(terminal: Terminal, *arguments: str, command: str = SEGUE) -> None:
    terminal.send(f"clear; {command} {shlex.join(arguments)}")
    terminal.wait(lambda screen: any(line.rstrip() == "●" for line in screen.splitlines()))


def leave(terminal: Terminal) -> str:
    """The id in the line that says how to come back."""
    say(terminal, "/quit")
    screen = terminal.until("Resume with: segue -r", "ready>")
    found = re.findall(r"segue -r (\S+)", screen)
    return str(found[-1])


def roles(home: Path, session_id: str) -> list[str]:
    with SessionDB(home / "state.db") as db:
        return [message["role"] for message in db.get_messages(session_id)]


def test_talking_leaving_and_coming_back(
    terminal: Terminal, home: Path, place: Path, server: ModelServer, variables: dict[str, str]
) -> None:
    wire = variables["SEGUE_TEST_WIRE"]
    before = len(server.journal())
    begin(terminal)
    terminal.until(f"Segue {__version__} · /help", f"new conversation · {wire}/")
    say(terminal, "/title My first talk")
    terminal.until("My first talk")
    say(terminal, "hello")
    terminal.until("Hello, friend.")
    say(terminal, "which files are here?")
    terminal.until("ls; touch seen", "[y]es")
    terminal.press("y")
    terminal.until("There is one file: notes.txt.")
    assert (place / "seen").exists()
    session = leave(terminal)
    assert roles(home, session) == ["user", "assistant", "user", "assistant", "tool", "assistant"]

    ways = (["-r", session], ["-r", "My first talk"], ["-c"], ["-c", "My first talk"])
    for arguments in ways if wire == "openai" else ways[:1]:
        begin(terminal, *arguments, command=COLD)
        screen = terminal.until("My first talk", "● hello", "◆ Hello, friend.", "[1 tool call: terminal]")
        assert "There is one file: notes.txt." in screen
        terminal.until(f"My first talk · {wire}/")
        assert leave(terminal) == session

    filled = filled_columns(home)
    begin(terminal, "-c")
    say(terminal, "/undo")
    terminal.until("Undone: 1 turn")
    say(terminal, "/redo")
    terminal.until("Back again: 4 messages")
    say(terminal, "/undo")
    terminal.wait(lambda screen: screen.count("Undone: 1 turn") == 2)
    say(terminal, "and now")
    terminal.until("Now it is noon.")
    say(terminal, "/retry")
    terminal.wait(lambda screen: screen.count("Now it is noon.") >= 2)
    say(terminal, "/branch Another way")
    terminal.until("You are in a branch now")
    say(terminal, "/think low")
    terminal.until("Thinking: low.")
    branch = leave(terminal)
    assert branch != session
    assert roles(home, branch) == ["user", "assistant", "user", "assistant"]
    check_columns(filled | filled_columns(home))
    check_prefixes([entry["body"] for entry in server.journal()[before:]])


DOCUMENTED = {
    "sessions": """id source user_id model model_config system_prompt parent_session_id started_at ended_at
        end_reason message_count tool_call_count input_tokens output_tokens cache_read_tokens cache_write_tokens
        reasoning_tokens billing_provider billing_base_url billing_mode estimated_cost_usd actual_cost_usd
        cost_status cost_source pricing_version title api_call_count""",
    "messages": """id session_id role content tool_call_id tool_calls tool_name timestamp token_count finish_reason
        reasoning reasoning_content reasoning_details codex_reasoning_items codex_message_items""",
}
EXPLAINED = {"user_id", "actual_cost_usd", "parent_session_id", "codex_reasoning_items", "codex_message_items"}
"""By docs/why.md."""
NOT_TOLD_HERE = {"estimated_cost_usd", "cost_source", "pricing_version"}  # a server on this machine has no price
NOT_TOLD_HERE |= {"cache_read_tokens", "cache_write_tokens", "reasoning_tokens"}  # the scripted one does not count them


def filled_columns(home: Path) -> set[tuple[str, str]]:
    """The documented columns that have something in some row."""
    with Beside(home) as beside:
        return {
            (table, name)
            for table, names in DOCUMENTED.items()
            for name in names.split()
            if beside.ask(f"SELECT 1 FROM {table} WHERE {_is_filled(name)} LIMIT 1")
        }


def _is_filled(name: str) -> str:
    """Of a counter, which is never NULL: that something was counted. `token_count` of a message may be unknown."""
    is_counter = name.endswith(("_count", "_tokens")) and name != "token_count"
    return f"{name} <> 0" if is_counter else f"{name} IS NOT NULL"


def check_columns(filled: set[tuple[str, str]]) -> None:
    """Every column that others document was filled in by the talk, but for what is explained."""
    documented = {(table, name) for table, names in DOCUMENTED.items() for name in names.split()}
    assert {name for _, name in documented - filled} == EXPLAINED | NOT_TOLD_HERE


def check_prefixes(told: list[dict[str, Any]]) -> None:
    """What the model was told before is told again, byte for byte, after an undo and after the program began anew."""
    assert len(told) == 5, [request["messages"][-1] for request in told]
    hello, files, result, noon, again = told
    for after in (files, result, noon, again):
        assert begins_with(after, hello)
    assert begins_with(result, files)
    assert json.dumps(noon) == json.dumps(again)


def begins_with(after: dict[str, Any], before: dict[str, Any]) -> bool:
    first = before["messages"]
    rest = {name: value for name, value in before.items() if name != "messages"}
    same = {name: value for name, value in after.items() if name != "messages"}
    return json.dumps([after["messages"][: len(first)], same]) == json.dumps([first, rest])


def is_telling(screen: str) -> bool:
    return SENTENCE.search(screen) is not None


def say(terminal: Terminal, text: str) -> None:
    """Type when it is one's turn."""
    terminal.wait(lambda screen: any(line.rstrip() == "●" for line in screen.splitlines()))
    terminal.send(text)


def test_stopping_failing_and_asking_once(terminal: Terminal, home: Path, variables: dict[str, str]) -> None:
    begin(terminal)
    say(terminal, "tell me a long story")
    terminal.wait(is_telling)
    terminal.send("never mind")
    terminal.until("· never mind")
    terminal.press("C-c")
    terminal.until("Stopped.", "Not said any more: never mind")
    say(terminal, "fail please")
    terminal.until("/model")
    session = leave(terminal)
    with SessionDB(home / "state.db") as db:
        said = db.get_messages(session)
    assert [message["role"] for message in said] == ["user", "assistant", "user"]
    assert said[1]["finish_reason"] == "stopped"
    assert said[1]["content"].startswith("This is sentence number 0")
    if variables["SEGUE_TEST_WIRE"] != "openai":
        return  # a message that is given with the command goes the same way as others
    asked = subprocess.run(
        [sys.executable, "-m", "segue", "-q", "hello"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        stdin=subprocess.DEVNULL,
        env=WITHOUT_KEYS | variables,
    )
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "Hello, friend.\n", "")


@pytest.mark.parametrize("variables", ["openai", "anthropic"], indirect=True)
def test_the_json_of_an_answer_says_what_it_used(home: Path, place: Path, variables: dict[str, str]) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "segue", "-p", "which files are there?", "--yes", "--json"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        stdin=subprocess.DEVNULL,
        cwd=place,
        env=WITHOUT_KEYS | variables,
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    told = json.loads(asked.stdout)
    assert told["answer"] == "There is **one** file: `notes.txt`."
    assert told["usage"]["api_call_count"] == 2
    assert told["usage"]["output_tokens"] == 60
    with SessionDB(home / "state.db") as db:
        (session,) = db.list_sessions_rich()
    assert (told["session_id"], told["title"]) == (session["id"], session["title"])


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_what_is_said_during_the_last_words_comes_next(terminal: Terminal, home: Path) -> None:
    begin(terminal)
    say(terminal, "tell me a tale")
    terminal.wait(is_telling)
    terminal.send("and now")
    terminal.send("/title It is late")
    terminal.send("/quit")
    screen = terminal.until("Now it is noon.", "Resume with: segue -r", "(It is late)", "ready>")
    (session,) = re.findall(r"segue -r (\S+)", screen)
    assert roles(home, session) == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_what_is_typed_while_a_cut_off_answer_is_carried_on_is_done_after_it(terminal: Terminal, home: Path) -> None:
    begin(terminal)
    say(terminal, "tell me a saga")
    terminal.wait(is_telling)
    with Beside(home) as beside:
        ((process,),) = beside.ask("SELECT pid FROM runs WHERE ended_at IS NULL")
    os.kill(process, signal.SIGKILL)
    terminal.until("ready>", "Killed")
    terminal.type("stty sane; echo it is 'sane again'")
    terminal.press("C-j")
    terminal.until("it is sane again")  # before that, Enter is not what it should be
    begin(terminal, "-c")
    terminal.until_said("it is carried on", "sentence number 1 ", "tell me a saga · openai/")  # a redraw hides the last
    terminal.send("and now")
    terminal.send("/title It is late")
    terminal.send("/quit")
    screen = terminal.until("Now it is noon.", "Resume with: segue -r", "(It is late)", "ready>")
    (session,) = re.findall(r"segue -r (\S+)", screen)
    assert roles(home, session) == ["user", "assistant", "user", "assistant"]


# Ended from outside


def chat_process(home: Path) -> int:
    with Beside(home) as beside:
        ((process,),) = beside.ask("SELECT pid FROM runs WHERE ended_at IS NULL")
    return int(process)


def end_reasons(home: Path) -> list[str | None]:
    """Return how each session ended, once no chat runs any more."""

    def is_over() -> bool:
        with Beside(home) as beside:
            return beside.ask("SELECT count(*) FROM runs WHERE ended_at IS NULL") == [(0,)]

    wait_until(is_over, "the end of the chat")
    with Beside(home) as beside:
        return [reason for (reason,) in beside.ask("SELECT end_reason FROM sessions ORDER BY started_at")]


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_session_and_erases_the_status_line(
    terminal: Terminal, home: Path, number: signal.Signals
) -> None:
    begin(terminal)
    say(terminal, "hello")
    terminal.wait(lambda screen: "Hello, friend." in screen and "· openai/" in screen.splitlines()[-1])
    os.kill(chat_process(home), number)
    screen = terminal.until("Resume with: segue -r", "ready>")
    assert "· openai/" not in screen
    terminal.send("echo status $?")
    terminal.until(f"status {128 + number}")
    assert end_reasons(home) == ["user_exit"]


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
@pytest.mark.parametrize("hero", ["Beowulf", "Roland"])
def test_an_answer_that_a_signal_or_a_closed_window_cut_off_is_carried_on(
    terminal: Terminal, home: Path, hero: str
) -> None:
    begin(terminal)
    say(terminal, f"tell me an epic of {hero}")
    terminal.wait(is_telling)
    if hero == "Roland":
        terminal.close_window()
    else:
        os.kill(chat_process(home), signal.SIGTERM)
        assert "· openai/" not in terminal.until("Resume with: segue -r", "ready>")
    assert end_reasons(home) == ["user_exit"]
    begin(terminal, "-c")
    terminal.until_said("it is carried on", "sentence number 1 ", f"epic of {hero} · openai/")
    screen = leave(terminal)
    assert roles(home, screen) == ["user", "assistant"]


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_a_terminal_that_goes_away_without_a_signal_leaves_the_answer_open(
    variables: dict[str, str], home: Path
) -> None:
    ours, theirs = pty.openpty()
    environment = WITHOUT_KEYS | variables | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-m", "segue"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    read_until(ours, b"openai/")
    os.write(ours, b"tell me a ballad\r")
    read_until(ours, b"sentence number 2")
    os.close(ours)
    process.wait(DEADLINE)
    assert end_reasons(home) == ["user_exit"]
    with Beside(home) as beside:
        assert beside.ask("SELECT state FROM turns") == [("running",)]


def read_until(descriptor: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        seen += os.read(descriptor, 65_536)


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_a_summary_is_not_recalled_as_something_that_the_person_said(terminal: Terminal, home: Path) -> None:
    said = [{"role": "user", "content": "first part"}, {"role": "assistant", "content": "yes"}]
    summary = [{"seq": 0, "role": "user", "content": "a summary"}, {"seq": 1, "role": "user", "content": "second part"}]
    with SessionDB(home / "state.db") as db:
        db.import_sessions([{"id": "one", "source": "cli", "messages": said, "end_reason": "compression"}])
        db.import_sessions([{"id": "two", "source": "cli", "parent_session_id": "one", "messages": summary}])
    begin(terminal, "-r", "one", command=COLD)
    assert "● a summary" not in terminal.until("● first part", "◆ yes", "● second part")


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_all_commands_are_allowed_for_one_conversation_and_ctrl_c_stops_the_turn(
    terminal: Terminal, place: Path
) -> None:
    begin(terminal)
    say(terminal, "which files are here?")
    terminal.until("[y]es  [n]o  [a]ll commands of this conversation")
    terminal.press("a")
    terminal.until("There is one file: notes.txt.")
    (place / "seen").unlink()
    say(terminal, "which files are here now?")
    terminal.wait(lambda screen: screen.count("There is one file: notes.txt.") == 2)
    (place / "seen").unlink()
    say(terminal, "/new")
    terminal.until("A new conversation begins.", "Good morning.")
    say(terminal, "which files are here?")
    terminal.wait(lambda screen: "[y]es  [n]o" in screen)
    terminal.press("n")
    terminal.until("✗ terminal not allowed")
    terminal.wait(lambda screen: screen.count("There is one file: notes.txt.") == 3)
    say(terminal, "which files are here?")
    terminal.wait(lambda screen: "[y]es  [n]o" in screen)
    terminal.press("C-c")
    terminal.until("■ Stopped.")
    leave(terminal)
    assert not (place / "seen").exists()


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_one_line_recalls_a_conversation_where_the_settings_want_no_more(terminal: Terminal, home: Path) -> None:
    begin(terminal)
    say(terminal, "hello")
    terminal.until("Hello, friend.")
    session_id = leave(terminal)
    begin(terminal, "-c", command=COLD)
    assert "╭" in terminal.until("◆ Hello, friend."), "by default there is a panel"
    leave(terminal)
    (home / "config.yaml").write_text("display: {resume_display: minimal}\n")
    begin(terminal, "-c", command=COLD)
    screen = terminal.until(f"({session_id}): 1 exchange.")
    assert "Hello, friend." not in screen
    assert "╭" not in screen
    leave(terminal)


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_stop_can_be_typed(terminal: Terminal) -> None:
    begin(terminal)
    say(terminal, "tell me a long story")
    terminal.wait(is_telling)
    terminal.send("/stop")
    terminal.until("Stopped.")
    leave(terminal)


@pytest.mark.parametrize("variables", ["openai"], indirect=True)
def test_whoever_comes_second_is_told_who_is_there(terminal: Terminal, home: Path, variables: dict[str, str]) -> None:
    begin(terminal)
    say(terminal, "hello")
    terminal.until("Hello, friend.")
    with Beside(home) as beside:
        ((session,),) = beside.ask("SELECT id FROM sessions")
        ((process,),) = beside.ask("SELECT pid FROM runs WHERE ended_at IS NULL")
    second = subprocess.run(
        [sys.executable, "-m", "segue", "-r", session, "-q", "and now"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        stdin=subprocess.DEVNULL,
        env=WITHOUT_KEYS | variables,
    )
    assert second.returncode == 1
    assert f"process {process}" in second.stderr
    assert "is open elsewhere" in second.stderr
    assert f"segue -r {session} --branch" in second.stderr
    beside_it = subprocess.run(
        [sys.executable, "-m", "segue", "-r", session, "--branch", "-q", "and now"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        stdin=subprocess.DEVNULL,
        env=WITHOUT_KEYS | variables,
    )
    assert (beside_it.returncode, beside_it.stdout) == (0, "Now it is noon.\n"), beside_it.stderr
    assert "segue chat" in second.stderr
    say(terminal, "and now")
    terminal.until("Now it is noon.")
    leave(terminal)
    assert roles(home, session) == ["user", "assistant", "user", "assistant"]
