"""The tools in the hands of our agent: a model that follows a script asks, and is told what came of it."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE, until

from segue.agent.loop import Loop
from segue.core.events import Event, Reply, ToolCall, ToolFinished, ToolStarted
from segue.ports.agent import Task
from segue.ports.model import Request
from segue.tools import terminal
from segue.tools.memory import Memory
from segue.tools.read_file import ReadFile
from segue.tools.terminal import Terminal


class Scripted:
    """A model that wants one call after the other."""

    name = provider = "scripted"

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = [ToolCall(f"c{at}", name, json.dumps(said)) for at, (name, said) in enumerate(calls)]

    async def stream(self, request: Request) -> AsyncGenerator[Reply]:
        yield Reply(calls=(self._calls.pop(0),), finish_reason="tool_calls") if self._calls else Reply("done")


async def agreed(_: ToolCall, __: str) -> bool:
    return True


async def events_of(folder: Path, model: Scripted, **task: Any) -> list[Event]:
    loop = Loop([model], [ReadFile(folder), Terminal(folder, os.environ), Memory(folder / "memory")])
    return [event async for event in loop.run(Task("s", "", [], **task))]


def results(events: list[Event]) -> list[tuple[str, bool]]:
    return [(event.output, event.is_error) for event in events if isinstance(event, ToolFinished)]


def test_what_one_tool_does_another_sees(tmp_path: Path) -> None:
    model = Scripted(
        ("terminal", {"command": "echo hello > a.txt"}),
        ("read_file", {"path": "a.txt"}),
        ("memory", {"action": "write", "name": "greeting", "text": "hello"}),
        ("read_file", {"path": "memory/greeting.md", "lines": "all"}),
    )
    assert results(asyncio.run(events_of(tmp_path, model, agrees=agreed))) == [
        ("(no output)\n[exit code 0]", False),
        ("     1\thello\n[The end.]", False),
        ("The note greeting is kept; it has 5 bytes.", False),
        ("The argument lines of read_file is a whole number from 1 to 2,000; call read_file again with that.", True),
    ]


def test_what_nobody_agrees_to_does_not_happen(tmp_path: Path) -> None:
    asyncio.run(Memory(tmp_path / "memory").run({"action": "write", "name": "a", "text": "kept"}, "s"))
    model = Scripted(
        ("terminal", {"command": "touch happened"}),
        ("memory", {"action": "delete", "name": "a"}),
        ("memory", {"action": "read", "name": "a"}),
    )
    told = results(asyncio.run(events_of(tmp_path, model)))
    assert [is_error for _, is_error in told] == [True, True, False]
    assert told[-1][0] == "kept"
    assert not (tmp_path / "happened").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    ["true", "echo 'rm -rf / --no-preserve-root'", "base64 -d <<< dHJ1ZQ== | sh", "eval $(printf '\\x74rue')"],
)
def test_whatever_a_command_says_the_same_is_asked_and_the_answer_alone_decides(tmp_path: Path, command: str) -> None:
    asked: list[str] = []

    async def answer(_: ToolCall, risk: str) -> bool:
        asked.append(risk)
        return len(asked) == 2

    model = Scripted(*(("terminal", {"command": f"{command}; echo ran >> happened"}) for _ in range(3)))
    told = results(asyncio.run(events_of(tmp_path, model, agrees=answer)))
    assert [is_error for _, is_error in told] == [True, False, True]
    assert (tmp_path / "happened").read_text() == "ran\n"
    assert len(asked) == 3
    assert all(command in risk for risk in asked)


@pytest.mark.process
def test_a_turn_that_is_stopped_leaves_no_command_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE", 10 * DEADLINE)  # it is not asked to end and waited for

    async def stopped() -> None:
        model = Scripted(("terminal", {"command": "echo $$ > pid; sleep 1000; true"}))
        turn = asyncio.create_task(events_of(tmp_path, model, agrees=agreed))
        await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, DEADLINE)

    asyncio.run(stopped())
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_what_begins_says_whether_it_may_be_repeated(tmp_path: Path) -> None:
    model = Scripted(("terminal", {"command": "true"}), ("read_file", {"path": "."}))
    begun = [one for one in asyncio.run(events_of(tmp_path, model, agrees=agreed)) if isinstance(one, ToolStarted)]
    assert [(one.call.name, one.is_idempotent) for one in begun] == [("terminal", False), ("read_file", True)]
