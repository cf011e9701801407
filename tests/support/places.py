"""A chat on a store without a terminal, with a model and tools that do what a test says."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC
from typing import Any

import pytest
from waiting import DEADLINE

from segue.agent.chat import Chat, Kit
from segue.agent.compression import Compression, Means
from segue.agent.door import Door
from segue.agent.holding import Holder, Presence
from segue.agent.naming import Namer
from segue.agent.summarising import Summariser
from segue.core.errors import ModelError
from segue.core.events import Event, Reply, Text, ToolCall, ToolFinished
from segue.core.leases import Run
from segue.core.preferences import Preferences
from segue.core.pruning import Rules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.agent import Agent
from segue.ports.model import Model, Request
from segue.ports.tool import ToolSpec
from segue.storage.store import SqlStore

Answering = Callable[[Request], Reply | ModelError]

PLAIN_RULES = Rules()

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
"""For tests of what stands above the store: one database is enough for them."""


class Scripted:
    """A model that answers as a function says."""

    provider = "test"

    def __init__(self, answer: Answering, name: str = "scripted", pause: float = 0.0) -> None:
        self.name = name
        self.asked: list[Request] = []
        self._answer = answer
        self._pause = pause

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.asked.append(request)
        answer = self._answer(request)
        if isinstance(answer, ModelError):
            raise answer
        for word in answer.text.split():
            yield Text(f"{word} ")
            await asyncio.sleep(self._pause)
        yield answer


class Probe:
    """A tool that does what a test wants."""

    def __init__(self, run: Callable[[dict[str, Any]], Awaitable[str]], risk: str | None = None) -> None:
        self.spec = ToolSpec("probe", "For tests.", {"type": "object"})
        self._run = run
        self._risk = risk

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return False

    def risk(self, _arguments: dict[str, Any]) -> str | None:
        return self._risk

    async def run(self, arguments: dict[str, Any], _session_id: str) -> str:
        return await self._run(arguments)


async def fine(_arguments: dict[str, Any]) -> str:
    return "fine"


def wants(arguments: str = "{}", name: str = "probe") -> Answering:
    """Asks for a tool once, and is content with whatever comes of it."""

    def answer(request: Request) -> Reply:
        if request.conversation[-1]["role"] == "tool":
            return Reply("All done.")
        return Reply("Let me see.", (ToolCall("c1", name, arguments),), finish_reason="tool_calls")

    return answer


class Place:
    """A chat on a store, as one process has it."""

    def __init__(
        self,
        store: SqlStore,
        agent: Agent,
        name: str = "run",
        *,
        agrees: bool = True,
        summariser: Summariser | None = None,
        can_flush: bool = False,
        rules: Rules = PLAIN_RULES,
        namer: Callable[[], Awaitable[Model | None]] | None = None,
    ) -> None:
        self.store = store
        self.events: list[Event] = []
        self.door = Door(store, OWNER)
        run = Run(name, "segue chat", "here", "boot", 7, "1", 1.0, 1.0)
        self.presence = Presence(self.door, run, lambda _: False)
        self.holder = Holder(self.presence)

        async def agent_for(_: Preferences) -> Agent:
            return agent

        async def answer(_call: ToolCall, _risk: str) -> bool:
            return agrees

        async def summarising() -> Summariser:
            assert summariser is not None
            return summariser

        ids = (f"{name}-{number}" for number in range(999))
        means = Means(summarising, lambda: next(ids), lambda: can_flush, rules)
        self.chat = Chat(
            Kit(
                door=self.door,
                holder=self.holder,
                agent_for=agent_for,
                model_named=lambda _: "scripted",
                resolve_model=str,
                new_session_id=lambda: next(ids),
                prompt=lambda began: f"Begun {began:%Y}",
                parts=list,
                agrees=answer,
                zone=UTC,
                compression=Compression(self.door, self.holder, means) if summariser else None,
                namer=Namer(self.door, namer, 100 * DEADLINE) if namer else None,
            )
        )

    async def say(self, text: str) -> list[Event]:
        self.events.clear()
        await self.chat.say(text, self.events.append)
        return list(self.events)

    def rows(self) -> list[tuple[str, str | None]]:
        assert self.chat.session_id is not None
        found = self.store.read(OWNER, lambda tx: tx.messages.of(str(self.chat.session_id)))
        return [(message.role, message.content) for message in found]


def run(place: Place, work: Callable[[], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        await place.presence.begin()
        try:
            await work()
        finally:
            await place.chat.close()
            await place.presence.end()
            place.door.close()

    asyncio.run(all_of_it())


def one_turn(store: SqlStore, agent: Agent, text: str = "hello", *, agrees: bool = True) -> tuple[Place, list[Event]]:
    place = Place(store, agent, agrees=agrees)
    seen: list[Event] = []

    async def work() -> None:
        seen.extend(await place.say(text))

    run(place, work)
    return place, seen


def results(events: list[Event]) -> list[tuple[str, bool]]:
    return [(event.output, event.is_error) for event in events if isinstance(event, ToolFinished)]
