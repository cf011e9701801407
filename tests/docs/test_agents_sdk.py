"""The agent that the page about the chat shows: the real OpenAI Agents SDK, and a model that answers by script."""

import asyncio
import importlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, file_shown_in
from fork_server import ForkServer
from homes import Beside, configure
from model_server import ModelServer
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter
from waiting import DEADLINE

from segue import SessionDB
from segue.agent.callables import CallableAgent
from segue.core.events import Event, Reply, Text, ToolFinished, ToolStarted
from segue.core.messages import draft, said
from segue.core.transcript import UNKNOWN_RESULT
from segue.ports.agent import Task
from segue.ports.failpoints import Point

LAUNCHER = ROOT / "tests" / "support" / "chat_launcher.py"
WITHOUT_TITLES = """
auxiliary: {model: nowhere/m}
providers: {nowhere: {kind: openai, base_url: http://127.0.0.1:9/v1}}
"""
"""Otherwise the model is asked for one beside the conversation, and answers in time or not."""
LISBON = "What is the weather in Lisbon?"
PORTO = "And in Porto?"
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "Lisbon", "hasToolResult": False},
        "response": {
            "content": "I look out of the window.",
            "toolCalls": [{"id": "call_1", "name": "weather", "arguments": {"city": "Lisbon"}}],
            "usage": {"input_tokens": 20, "output_tokens": 5},
        },
    },
    {
        "match": {"userMessage": "Lisbon", "hasToolResult": True},
        "response": {"content": "Take an umbrella.", "usage": {"input_tokens": 30, "output_tokens": 4}},
    },
    {
        "match": {"userMessage": "Porto"},
        "response": {"content": "Nobody has told me.", "usage": {"input_tokens": 40, "output_tokens": 6}},
    },
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Lisbon"}'}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "It rains in Lisbon.", "name": "weather"}
FIRST_TURN = [
    {"role": "user", "content": LISBON},
    {"role": "assistant", "content": "I look out of the window.", "tool_calls": [CALL]},
    RESULT,
    {"role": "assistant", "content": "Take an umbrella."},
]
SECOND_TURN = [{"role": "user", "content": PORTO}, {"role": "assistant", "content": "Nobody has told me."}]

COUNTING = """
from pathlib import Path

import weather
from agents import function_tool


@function_tool(name_override="weather")
def counted(city: str) -> str:
    with Path("ran").open("a") as file:
        file.write(f"{city}\\n")
    return f"It rains in {city}."


weather.AGENT.tools = [counted]
answer = weather.answer
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    running = ModelServer(tmp_path_factory.mktemp("server"), FIXTURES)
    yield running
    running.close()


@pytest.fixture
def outside() -> Iterator[socket.socket]:
    """Where everything knocks that wants to leave this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder with the program of the page."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "weather.py").write_text(file_shown_in(ROOT / "docs" / "chat.md", "weather.py"), "utf-8")
    return folder


@pytest.fixture
def variables(server: ModelServer, outside: socket.socket, home: Path, place: Path) -> dict[str, str]:
    return {
        "SEGUE_HOME": str(home),
        "OPENAI_API_KEY": "sk-nothing-to-hide",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "HTTPS_PROXY": f"http://127.0.0.1:{outside.getsockname()[1]}",
        "PYTHONPATH": os.pathsep.join([str(place), str(ROOT)]),
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.fixture(scope="module")
def programs() -> Iterator[ForkServer]:
    running = ForkServer("agents", "openai.resources.responses")
    yield running
    running.close()


class Chat:
    """`segue`, as somebody types it in the folder with the program."""

    def __init__(self, programs: ForkServer, place: Path, variables: dict[str, str]) -> None:
        self._programs, self._place, self._variables = programs, place, variables

    def __call__(self, wanted: dict[str, Any], *arguments: str) -> tuple[int, str, str]:
        """What it exits with and says."""
        variables = os.environ | self._variables
        said = json.dumps(wanted)
        done = self._programs.run(LAUNCHER, said, *arguments, cwd=self._place, env=variables, timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def chat(programs: ForkServer, place: Path, variables: dict[str, str]) -> Chat:
    return Chat(programs, place, variables)


def conversation(home: Path) -> list[dict[str, Any]]:
    with SessionDB(home / "state.db") as db:
        (session,) = db.list_sessions_rich()
        return db.get_messages_as_conversation(session["id"])


def assert_nobody_knocked(outside: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        outside.accept()


def test_two_turns_with_a_tool_are_one_conversation(
    chat: Chat, home: Path, server: ModelServer, outside: socket.socket
) -> None:
    configure(home, "agent:\n  entry: weather:answer\n" + WITHOUT_TITLES)
    before = len(server.journal())
    assert chat({}, "-q", LISBON) == (0, "I look out of the window.\nTake an umbrella.\n", "")
    assert chat({}, "-c", "-q", PORTO) == (0, "Nobody has told me.\n", "")

    assert conversation(home) == FIRST_TURN + SECOND_TURN
    with Beside(home) as beside:
        assert beside.ask("SELECT state FROM turns") == [("done",), ("done",)]
        assert beside.ask("SELECT kind, name, call_id, state FROM steps") == [("tool", "weather", "call_1", "done")]
        sums = "message_count, tool_call_count, input_tokens, output_tokens, api_call_count"
        assert beside.ask(f"SELECT {sums} FROM sessions") == [(6, 1, 90, 15, 3)]
        reasons = "SELECT finish_reason FROM messages WHERE role = 'assistant' ORDER BY seq"
        assert beside.ask(reasons) == [("tool_calls",), ("stop",), ("stop",)]
        ((model,),) = beside.ask("SELECT model FROM sessions")
    asked = server.journal()[before:]
    assert [(entry["path"], entry["body"]["model"]) for entry in asked] == [("/v1/responses", model)] * 3
    assert told(asked[-1]) == [
        ("user", LISBON),
        ("assistant", "I look out of the window."),
        ("weather", '{"city":"Lisbon"}'),
        ("tool", "It rains in Lisbon."),
        ("assistant", "Take an umbrella."),
        ("user", PORTO),
    ]
    assert_nobody_knocked(outside)


def told(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """What the model was told, behind the instructions: who or which tool, and what."""
    system, *rest = entry["body"]["messages"]
    assert system == {"role": "system", "content": "Answer in one sentence."}
    return [
        (call["function"]["name"], call["function"]["arguments"]) if call else (message["role"], message["content"])
        for message in rest
        for call in message.get("tool_calls") or [None]
    ]


def test_what_it_does_comes_as_events_piece_by_piece(
    place: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(place)
    weather = importlib.import_module("weather")
    task = Task("s", "", [said(draft("user", LISBON, 1.0), 1)])

    async def events() -> list[Event]:
        return [event async for event in CallableAgent(weather.answer).run(task)]

    happened = asyncio.run(events())
    pieces = [event.text for event in happened if isinstance(event, Text)]
    assert len(pieces) > 4
    assert "".join(pieces) == "I look out of the window.Take an umbrella."
    rest = [event for event in happened if not isinstance(event, Text)]
    assert [type(event) for event in rest] == [Reply, ToolStarted, ToolFinished, Reply]
    everything = list(weather.items(FIRST_TURN + SECOND_TURN))
    assert TypeAdapter(ResponseInputParam).validate_python(everything) == everything


@pytest.mark.parametrize(
    ("point", "ran"), [(Point.BEFORE_TOOL_BEGINS, []), (Point.BEFORE_RESULT_IS_STORED, ["Lisbon"])]
)
def test_a_tool_runs_when_its_start_is_on_disk_and_not_again_by_itself(
    chat: Chat, place: Path, home: Path, point: Point, ran: list[str]
) -> None:
    configure(home, "agent:\n  entry: counting:answer\n" + WITHOUT_TITLES)
    (place / "counting.py").write_text(COUNTING)
    marker = place / "ran"
    marker.touch()
    assert chat({"kill": [point, 1]}, "-q", LISBON)[0] == -9
    assert marker.read_text().split() == ran

    code, _, errors = chat({}, "--continue")
    assert code == 0, errors
    assert marker.read_text().split() == ran
    unknown = {"role": "tool", "tool_call_id": "call_1", "content": UNKNOWN_RESULT}
    assert conversation(home) == [*FIRST_TURN[:2], unknown, FIRST_TURN[-1]]
