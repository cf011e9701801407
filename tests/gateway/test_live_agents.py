"""The agent of a conversation is made once, kept while it is needed, and closed when it goes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest
from lane_house import Building, dm, echo, let_time_pass
from serving_house import Served, use_obedient_model, write_settings
from waiting import DEADLINE

from segue.agent.loop import Loop
from segue.app.crew import Crew
from segue.core.events import Event, Reply
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway.live import IDLE_SECONDS, MOST_LIVE, LiveAgents
from segue.gateway.watching import Watching
from segue.ports.agent import Agent, Task
from segue.ports.tool import ToolSpec
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

TASK = Task("a", "", [])


class Worker:
    """An agent that waits until it may go on, and knows whether it was closed."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.is_closed = False

    async def run(self, _task: Task) -> AsyncGenerator[Event]:
        await self.may_end.wait()
        yield Reply("done")

    async def aclose(self) -> None:
        self.is_closed = True


class Workers:
    """Those that were made, in order."""

    def __init__(self, live: LiveAgents) -> None:
        self.live = live
        self.made: list[Worker] = []

    async def get(self, session_id: str, terms: object = None) -> Agent:
        return await self.live.agent_for(session_id, terms, self._make)

    async def _make(self) -> Agent:
        self.made.append(Worker())
        return self.made[-1]


async def at_work(agent: Agent) -> None:
    async with aclosing(agent.run(TASK)) as events:
        await anext(events)


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_an_agent_is_made_once_and_again_on_other_terms() -> None:
    async def work() -> None:
        workers = Workers(LiveAgents())
        assert await workers.get("a", "terms") is await workers.get("a", "terms")
        await workers.get("a", "other terms")
        assert [worker.is_closed for worker in workers.made] == [True, False]

    run(work)


def test_there_are_so_many_and_who_was_needed_longest_ago_goes() -> None:
    async def work() -> None:
        workers = Workers(LiveAgents())
        for number in range(MOST_LIVE):
            await workers.get(f"{number}")
        await workers.get("0")
        await workers.get("one more")
        assert len(workers.live) == MOST_LIVE == 128
        assert [number for number, worker in enumerate(workers.made) if worker.is_closed] == [1]

    run(work)


def test_an_agent_at_work_is_closed_when_its_turn_has_ended() -> None:
    async def work() -> None:
        workers = Workers(LiveAgents(most=1))
        agent = await workers.get("a")
        turn = asyncio.create_task(at_work(agent))
        await asyncio.sleep(0)
        await workers.get("b")
        assert not workers.made[0].is_closed
        turn.cancel()
        await asyncio.wait([turn])
        assert workers.made[0].is_closed

    run(work)


def test_those_go_that_nobody_has_needed_for_an_hour() -> None:
    now = 0.0

    async def work() -> None:
        nonlocal now
        workers = Workers(LiveAgents(clock=lambda: now))
        for name in "abc":
            agent = await workers.get(name)
        turn = asyncio.create_task(at_work(agent))
        await asyncio.sleep(0)
        now = IDLE_SECONDS + 1
        await workers.get("b", "terms of its own")
        await workers.live.let_go_idle()
        assert workers.live.sessions == ["c", "b"]
        turn.cancel()

    run(work)


def test_many_at_once_share_what_is_there() -> None:
    async def work() -> None:
        workers = Workers(LiveAgents(most=3))
        await workers.get("a")
        agents = await asyncio.gather(
            *(workers.get("a") for _ in range(50)), *(workers.get("bc"[n % 2]) for n in range(50))
        )
        assert len(set(map(id, agents[:50]))) == 1
        await workers.live.close()
        assert all(worker.is_closed for worker in workers.made)

    run(work)


class Door:
    """A tool that has something open."""

    spec = ToolSpec("door", "", {})
    is_open = True

    async def aclose(self) -> None:
        self.is_open = False


def test_an_agent_of_ours_closes_its_tools() -> None:
    door = Door()
    asyncio.run(Loop([ScriptedModel(echo)], [door]).aclose())  # type: ignore[list-item]
    assert not door.is_open


def test_the_watcher_lets_go_of_the_agent_of_a_conversation_that_has_ended(store: SqlStore) -> None:
    stage, live = Stage(), LiveAgents()
    workers = Workers(live)
    building = Building(store, stage, watching=Watching(seconds=600.0, live=live))

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        (before,) = store.read(OWNER, lambda tx: list(tx.sessions.in_order()))
        await workers.get(before.id)
        await building.gateway.watcher.let_go()
        assert live.sessions == [before.id]
        stage.say(dm(), "/new")
        await building.quiet()
        await building.gateway.watcher.let_go()
        assert live.sessions == []
        assert workers.made[0].is_closed

    building.run(work)


def test_the_agent_of_a_session_that_was_finalised_is_closed(store: SqlStore) -> None:
    stage, live = Stage(), LiveAgents()
    workers = Workers(live)
    brief = ResetPolicies(default=ResetPolicy(ResetMode.IDLE, idle=timedelta(hours=1)))
    watching = Watching(seconds=600.0, live=live, can_take_notes=lambda _: False)
    building = Building(store, stage, policies=brief, watching=watching)

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        (session,) = store.read(OWNER, lambda tx: list(tx.sessions.in_order()))
        await workers.get(session.id)
        let_time_pass(store, timedelta(hours=2))
        await building.gateway.watcher.look()
        assert live.sessions == []
        assert workers.made[0].is_closed

    building.run(work)


def test_the_turns_of_a_conversation_have_one_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    stage = Stage()
    served = Served(write_settings(tmp_path / "home"), {"scripted": stage})
    made: list[object] = []
    agent_for = Crew.agent_for

    async def counted(self: Crew, *terms: object) -> Agent:
        made.append(terms[0])
        return await agent_for(self, *terms)  # type: ignore[arg-type]

    monkeypatch.setattr(Crew, "agent_for", counted)

    async def work() -> None:
        for text in ("one", "two", "/model openai/other", "three", "four"):
            stage.say(dm(), text)
            await served.quiet()

    served.run(work)
    served.close()
    assert [getattr(chosen, "model", "") for chosen in made] == [None, "openai/other"]
