"""Work that an agent hands to another one is a session of its own, which ends with it."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from datetime import UTC

import pytest
from places import Answering, Place, Scripted, results, run
from waiting import DEADLINE

from segue.agent.delegating import Workplace, delegate
from segue.agent.loop import Loop
from segue.core.commands import Command
from segue.core.errors import ModelError
from segue.core.events import Reply, Text, ToolCall
from segue.core.leases import session_lease
from segue.core.preferences import Preferences
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Kind, Session
from segue.core.turns import OUTCOME_UNKNOWN
from segue.core.usage import Usage
from segue.hookspecs import Fact, SubagentStopped
from segue.ports.agent import Agent
from segue.ports.model import Model, Request
from segue.ports.store import Filter, Transaction
from segue.ports.tool import ToolFailed
from segue.sessions.listing import list_sessions
from segue.storage.store import SqlStore
from segue.tools.delegate import Delegate

TASK = "count the trams"


def asks(request: Request) -> Reply:
    """Hands on what it is asked, and passes on what comes of it."""
    last = request.conversation[-1]
    if last["role"] == "tool":
        return Reply(f"They said: {last['content']}")
    return Reply("", (ToolCall("c1", "delegate", f'{{"task": "{TASK}"}}'),), finish_reason="tool_calls")


def counts(request: Request) -> Reply:
    assert (request.system, request.conversation[-1]["content"]) == ("You work for another agent.", TASK)
    return Reply("Twenty-eight.", usage=Usage(input_tokens=1000))


class Hanging:
    """A model that begins to answer and never ends."""

    name = provider = "hanging"

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def stream(self, _request: Request) -> AsyncGenerator[Text | Reply]:
        yield Text("One, ")
        self.has_begun.set()
        await asyncio.sleep(3600)


class Office(Place):
    """A chat whose agent has somebody to work for it."""

    def __init__(self, store: SqlStore, helper: Answering | Model, name: str = "run") -> None:
        self._helper = Scripted(helper) if callable(helper) else helper
        self._numbers = itertools.count(1)
        self.told: list[Fact] = []
        super().__init__(store, Loop([Scripted(asks)], [Delegate(self._delegate)]), name)

    async def _delegate(self, task: str, session_id: str) -> str:
        async def agent_for(_: Preferences) -> Agent:
            return Loop([self._helper], [])

        async def agrees(_call: ToolCall, _risk: str) -> bool:
            return True

        place = Workplace(
            door=self.door,
            presence=self.presence,
            agent_for=agent_for,
            agrees=agrees,
            compression=lambda _: None,
            new_session_id=lambda: f"helper-{next(self._numbers)}",
            prompt=lambda _: "You work for another agent.",
            zone=UTC,
            tell=self.told.append,
        )
        return await delegate(place, task, session_id)


def helper_of(store: SqlStore) -> Session:
    found = store.read(OWNER, lambda tx: tx.sessions.find("helper-1"))
    assert found is not None
    return found


def lose(tx: Transaction, session_id: str) -> None:
    """As if its lease had run out."""
    tx.leases.take(session_lease(session_id), "nobody", "owner", 0.0)


def said_in(store: SqlStore, session_id: str) -> list[tuple[str, str | None]]:
    return [(row.role, row.content) for row in store.read(OWNER, lambda tx: tx.messages.of(session_id))]


def test_a_task_is_done_in_a_session_of_its_own(store: SqlStore) -> None:
    place = Office(store, counts)

    async def work() -> None:
        events = await place.say("how many?")
        assert results(events) == [("Twenty-eight.\n\n(Session helper-1 of the subagent.)", False)]
        usage = (await place.chat.command(Command("usage"))).text
        assert "1,000" in usage
        assert "Subagents" in usage

    run(place, work)
    helper = helper_of(store)
    assert (helper.kind, helper.spawned_by, helper.principal) == (Kind.SUBAGENT, "run-0", "owner")
    assert (helper.start_reason, helper.end_reason, helper.first_line) == ("delegated", "completed", TASK)
    assert said_in(store, "helper-1") == [("user", TASK), ("assistant", "Twenty-eight.")]
    assert [one.id for one in store.read(OWNER, list_sessions, Filter(kinds=(Kind.INTERACTIVE,)))] == ["run-0"]
    assert store.read(OWNER, lambda tx: tx.turns.running_in("helper-1")) is None
    assert place.told == [SubagentStopped("helper-1", "run-0", "completed")]


def test_what_it_could_not_do_is_told_to_whoever_asked(store: SqlStore) -> None:
    place = Office(store, lambda _: ModelError("The model is on holiday."))

    async def work() -> None:
        told, is_error = results(await place.say("how many?"))[0]
        assert is_error
        assert "The model is on holiday." in told
        assert "helper-1" in told

    run(place, work)
    assert helper_of(store).end_reason == "failed"
    assert place.told == [SubagentStopped("helper-1", "run-0", "failed")]


@pytest.mark.parametrize("text", ["", "x" * 50_001])
def test_a_task_says_something_and_not_too_much(store: SqlStore, text: str) -> None:
    place = Office(store, counts)
    tool = Delegate(place._delegate)
    with pytest.raises(ToolFailed, match=r"The argument task of delegate is text of 1 to 50,000 characters"):
        asyncio.run(tool.run({"task": text}, "run-0"))
    place.door.close()


def test_stopping_the_one_stops_the_other(store: SqlStore) -> None:
    async def work() -> None:
        saying = asyncio.create_task(place.say("how many?"))
        await hanging.has_begun.wait()
        place.chat.stop()
        await asyncio.wait_for(saying, DEADLINE)
        again = Office(store, counts, "again")
        await again.presence.begin()
        await again.chat.resume("helper-1")  # nobody holds it any more
        await again.chat.close()
        await again.presence.end()
        again.door.close()

    hanging = Hanging()
    place = Office(store, hanging)
    run(place, work)
    assert said_in(store, "helper-1") == [("user", TASK), ("assistant", "One, ")]
    assert store.read(OWNER, lambda tx: tx.turns.running_in("helper-1")) is None
    assert place.rows()[-1][0] == "tool"


def test_what_a_crash_left_at_work_is_ended_and_not_done_twice(store: SqlStore) -> None:
    hanging = Hanging()
    place = Office(store, hanging)

    async def crashes() -> None:
        await place.presence.begin()
        saying = asyncio.create_task(place.say("how many?"))
        await hanging.has_begun.wait()
        place.door.write = place.door.read = _gone  # type: ignore[assignment,method-assign]
        saying.cancel()
        await asyncio.wait({saying})

    async def _gone(*_args: object, **_more: object) -> None:
        raise asyncio.CancelledError

    asyncio.run(asyncio.wait_for(crashes(), DEADLINE))
    assert helper_of(store).is_open
    assert store.read(OWNER, lambda tx: tx.turns.running_in("helper-1")) is not None
    place.door.close()

    for name in ("run-0", "helper-1"):
        store.write(OWNER, lose, name)
    after = Office(store, counts, "after")

    async def goes_on() -> None:
        await after.chat.resume("run-0")
        assert await after.chat.take_up(after.events.append)

    run(after, goes_on)
    assert results(after.events) == [(OUTCOME_UNKNOWN, True)]
    assert helper_of(store).end_reason == "interrupted"
    assert store.read(OWNER, lambda tx: tx.turns.running_in("helper-1")) is None
    assert store.read(OWNER, lambda tx: tx.sessions.find("helper-2")) is None
