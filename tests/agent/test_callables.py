"""Any function can answer: plain or asynchronous, at once or in pieces, with events or words."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

from segue.agent.callables import CallableAgent
from segue.core.events import Chat, Event, Failed, Note, Text
from segue.core.messages import draft, said
from segue.ports.agent import Task
from segue.upkeep.crashes import record_agent_error


def returns(conversation: list[Chat]) -> str:
    return f"You said {conversation[-1]['content']}."


def yields(conversation: list[Chat]) -> Iterator[str]:
    yield "You said "
    yield f"{conversation[-1]['content']}."


async def awaits(conversation: list[Chat]) -> str:
    await asyncio.sleep(0)
    return returns(conversation)


async def streams(conversation: list[Chat]) -> AsyncIterator[str]:
    for piece in yields(conversation):
        yield piece


def takes_the_task(conversation: list[Chat], task: Task) -> str:
    return f"{returns(conversation)[:-1]}." if task.session_id == "s" else ""


class Stateful:
    def __call__(self, conversation: list[Chat]) -> str:
        return returns(conversation)


def run(function: Callable[..., Any]) -> list[Event]:
    async def events() -> list[Event]:
        task = Task("s", "", [said(draft("user", "hello", 1.0), 1)])
        return [event async for event in CallableAgent(function).run(task)]

    return asyncio.run(events())


@pytest.mark.parametrize("function", [returns, yields, awaits, streams, takes_the_task, Stateful()])
def test_whatever_it_is_it_answers(function: Callable[..., Any]) -> None:
    pieces = [event.text for event in run(function) if isinstance(event, Text)]
    assert "".join(pieces) == "You said hello."


def test_events_are_handed_on() -> None:
    def answers(_: list[Chat]) -> Iterator[object]:
        yield Note("one moment")
        yield 42

    assert run(answers) == [Note("one moment"), Text("42")]


def test_an_answer_that_was_cut_off_after_its_last_word_is_not_given_again() -> None:
    async def events() -> list[Event]:
        view = [said(draft("user", "hello", 1.0), 1), said(draft("assistant", "You said hello.", 2.0), 2)]
        return [event async for event in CallableAgent(returns).run(Task("s", "", view))]

    assert asyncio.run(events()) == []


def test_stopped_it_has_closed_everything_before_the_turn_is_over() -> None:
    closed = []

    async def opens(_: list[Chat]) -> AsyncIterator[str]:
        try:
            yield "one"
            yield "two"
        finally:
            await asyncio.sleep(0)
            closed.append("all")

    async def stop_after_the_first() -> list[str]:
        events = CallableAgent(opens).run(Task("s", "", [said(draft("user", "hello", 1.0), 1)]))
        assert await anext(events) == Text("one")
        await events.aclose()
        return list(closed)

    assert asyncio.run(stop_after_the_first()) == ["all"]


def test_what_it_raises_is_told() -> None:
    def fails(_: list[Chat]) -> str:
        raise ZeroDivisionError("by nothing")

    (failed,) = run(fails)
    assert isinstance(failed, Failed)
    assert "ZeroDivisionError: by nothing" in failed.sentence


def test_no_answer_is_told(tmp_path: Path) -> None:
    def nothing(_: list[Chat]) -> None: ...

    def empty(_: list[Chat]) -> Iterator[str]:
        yield ""

    told = "The agent gave no answer."
    assert run(nothing) == [Failed(told, told)]
    assert run(empty)[-1] == Failed(told, told)


def test_a_mistake_is_told_with_its_place_and_kept_whole(tmp_path: Path) -> None:
    def breaks(_: list[Chat]) -> str:
        return dict[str, str]()["soup"]

    async def events() -> list[Event]:
        agent = CallableAgent(breaks, lambda error: str(record_agent_error(tmp_path, error)))
        return [event async for event in agent.run(Task("s", "", [said(draft("user", "hello", 1.0), 1)]))]

    log = tmp_path / "logs" / "agent.log"
    line = breaks.__code__.co_firstlineno + 1
    assert asyncio.run(events()) == [
        Failed(f"The agent failed in test_callables.py, line {line}: KeyError: 'soup'. The traceback is in {log}.")
    ]
    assert '["soup"]' in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_nobody_waits_for_a_function_that_does_not_end(tmp_path: Path) -> None:
    program = """
import asyncio, threading
from segue.agent.callables import CallableAgent
from segue.core.messages import draft, said
from segue.ports.agent import Task
from segue.upkeep.crashes import record_agent_error

async def main():
    has_begun, never = threading.Event(), threading.Event()
    agent = CallableAgent(lambda conversation: has_begun.set() or never.wait())
    task = Task("s", "", [said(draft("user", "hello", 1.0), 1)])
    asking = asyncio.ensure_future(anext(agent.run(task)))
    while not has_begun.is_set():
        await asyncio.sleep(0.01)
    asking.cancel()

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=DEADLINE).returncode == 0
