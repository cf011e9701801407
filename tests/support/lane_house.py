"""A gateway with a scripted platform and model, for tests that look at rows."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from datetime import UTC, timedelta
from typing import Any

from waiting import DEADLINE, until

from segue.agent.compression import Compression
from segue.agent.holding import Holds
from segue.agent.loop import Loop
from segue.agent.turn import Agrees
from segue.core.access import AccessRules
from segue.core.events import Event, Reply, Text, ToolCall
from segue.core.inbound import Inbound
from segue.core.inbox import Entry
from segue.core.keys import KeyRules
from segue.core.leases import Run
from segue.core.policy import ResetPolicies
from segue.core.preferences import Preferences
from segue.core.queueing import QueueRules
from segue.core.reading import Reading, read
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Scope
from segue.core.sending import SendPolicy
from segue.core.situation import Earlier
from segue.core.sources import SessionSource
from segue.core.streaming import Streaming
from segue.gateway.answering import Staff
from segue.gateway.assembling import USUAL_WATCHING, Grounds, assemble, traits_among
from segue.gateway.clerk import Means, Told
from segue.gateway.gateway import Gateway
from segue.gateway.holding import LaneHolder
from segue.gateway.watching import Watching
from segue.hookspecs import Hooks
from segue.ports.agent import Agent
from segue.ports.model import Request
from segue.ports.platform import Platform
from segue.ports.store import Store, Transaction
from segue.ports.tool import Tool
from segue.sessions.admitting import Routing
from segue.sessions.answering import House
from segue.sessions.commanding.acts import Situation
from segue.sessions.delivering import Posting
from segue.sessions.opening import Opened, Rules
from segue.testing import ScriptedModel, ScriptedPlatform, Stage
from segue.testing.model import Answering

QUICK = QueueRules(debounce=timedelta(0))
USUAL, PLAIN_KEYS = ResetPolicies(), KeyRules()
UNSTREAMED, EVERYTHING = Streaming(is_enabled=False), SendPolicy()


def dm(person: str = "alice", **more: Any) -> SessionSource:
    return SessionSource(platform="scripted", chat_id=person, user_id=person, user_name=person.title(), **more)


def name_of_lane(_tx: Transaction, opened: Opened, _earlier: Earlier | None) -> str:
    return f"You are on {opened.lane.key}."


def echo(request: Request) -> Reply:
    """Says which messages it answers: all that people said since it answered last."""
    said: list[str] = []
    for message in reversed(request.conversation):
        if message["role"] == "assistant":
            break
        if message["role"] == "user":
            said.append(str(message["content"]))
    return Reply(f"You said: {' | '.join(reversed(said))}")


def let_time_pass(store: Store, span: timedelta) -> None:
    """Make it so long ago that anybody spoke in a lane."""

    def age(tx: Transaction) -> None:
        for lane in tx.lanes.listed():
            tx.lanes.change(lane._replace(last_person_at=lane.last_person_at - span))

    store.write(OWNER, age)


class HeldModel(ScriptedModel):
    """Is asked, and says nothing before it is released. Counts how many of its answers are written at once."""

    at_work = most_at_work = 0

    def __init__(self, answer: Answering = echo, is_held: Callable[[Request], bool] = lambda _: True) -> None:
        super().__init__(answer)
        self._is_held = is_held
        self._released = asyncio.Event()

    def release(self) -> None:
        """Let go of what is asked, and hold nothing from now on."""
        self._released.set()

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            async with aclosing(super().stream(request)) as pieces:
                async for piece in pieces:
                    if self._is_held(request):
                        await self._released.wait()
                    yield piece
        finally:
            self.at_work -= 1


class Building:
    """What a gateway is made of in a test, and the gateway."""

    def __init__(
        self,
        store: Store,
        stage: Stage,
        *,
        model: ScriptedModel | None = None,
        tools: Sequence[Tool] = (),
        name: str = "gateway",
        queue: QueueRules = QUICK,
        policies: ResetPolicies = USUAL,
        keys: KeyRules = PLAIN_KEYS,
        is_gone: Callable[[Run], bool] = lambda _: True,
        run: Run | None = None,
        only: Sequence[Platform] = (),
        triggers: Sequence[str] = (),
        access: AccessRules | None = None,
        stop_suspends: bool = False,
        watching: Watching = USUAL_WATCHING,
        hooks: Hooks | None = None,
        streaming: Streaming = UNSTREAMED,
        policy: SendPolicy = EVERYTHING,
        prompt: Callable[[Transaction, Opened, Earlier | None], str] = name_of_lane,
        compress: Callable[[LaneHolder, Entry, str, Told], Awaitable[str]] | None = None,
        is_greeting: bool = False,
        **staff: Any,
    ) -> None:
        self.store, self.stage = store, stage
        self.model = model or ScriptedModel(echo)
        self.events: list[Event] = []
        ids = (f"{name}-{number}" for number in itertools.count(1))
        self.platforms: Sequence[Platform] = only or [ScriptedPlatform(stage)]

        async def agent_for(_opened: Opened, _chosen: Preferences) -> Agent:
            return Loop([self.model], list(tools))

        async def agrees(_call: ToolCall, _risk: str) -> bool:
            return True

        def agreeing(_entry: Entry) -> Agrees:
            return agrees

        def showing(_entry: Entry, _turn_id: str) -> AbstractContextManager[Callable[[Event], None]]:
            return nullcontext(self.events.append)

        async def compressed(_holder: LaneHolder, _entry: Entry, focus: str, _told: Told) -> str:
            return f"Compressed for {focus}."

        def situation(_scope: Scope, _agent: str, chosen: Preferences) -> Situation:
            said = Situation(None, time.time(), UTC, next(ids), model=chosen.model or "scripted")
            return said._replace(greets=lambda _: is_greeting)

        def uncompressed(_holder: Holds, _opened: Opened) -> Compression | None:
            return None

        hired = Staff(
            agent_for=agent_for,
            agrees=agreeing,
            compression=uncompressed,
            new_session_id=lambda: next(ids),
            queue=lambda _: queue,
            showing=showing,
        )
        for attribute, value in staff.items():
            object.__setattr__(hired, attribute, value)
        house = House(
            Rules(keys, policies, timedelta(hours=1)),
            Posting(traits_among(self.platforms), policy),
            prompt,
        )

        def reading(said: Inbound | Entry) -> Reading:
            return read(said.text, bot="segue", triggers=triggers)

        self.restarts = 0

        def restart() -> None:
            self.restarts += 1

        means = Means(reading, situation, compress or compressed, restart, stop_suspends, lambda _: queue)
        routing = Routing(keys, lambda _: access, lambda _: queue, lambda _: "main", reading, house.posting)
        run = run or Run(name, "segue gateway", "here", "boot", 7, "1", 1.0, 1.0)
        self.gateway: Gateway = assemble(
            Grounds(store, run, is_gone),
            house,
            hired,
            means,
            routing,
            self.platforms,
            5.0,
            watching,
            hooks,
            lambda _: streaming,
        )

        self.lane_looks = _Counted(self.gateway.lanes, "_wake_open")
        self.watcher_looks = _Counted(self.gateway.watcher, "look")

    async def quiet(self, seconds: float = DEADLINE) -> None:
        """Wait until everything that was said has come to its end and everything was sent."""
        await until(lambda: not self.stage.waiting() and not self.store.read(OWNER, _is_busy), "quiet", seconds)

    async def asked(self) -> None:
        """Wait until the model has been asked."""
        await until(lambda: self.model.asked, "a question to the model")

    async def taken_in(self) -> None:
        """Wait until everything that was said has been put down, and the gateway knows of it."""
        await until(lambda: not self.stage.waiting(), "the end of what was said")

    def run(self, work: Callable[[], Awaitable[None]], seconds: float = 4 * DEADLINE) -> None:
        async def all_of_it() -> None:
            stop = asyncio.Event()
            living = asyncio.create_task(self.gateway.run(stop))
            try:
                await work()
            finally:
                stop.set()
                await living
                self.gateway.close()

        asyncio.run(asyncio.wait_for(all_of_it(), seconds))


class _Counted:
    """How often something was done that a gateway does again and again."""

    def __init__(self, whose: Any, name: str) -> None:
        self._act = getattr(whose, name)
        self._begun = self.ended = 0
        setattr(whose, name, self._counted)

    async def more(self, times: int = 2) -> None:
        """Wait until it has begun and ended so often from now on."""
        wanted = self._begun + times
        await until(lambda: self.ended >= wanted, f"{times} more looks")

    async def _counted(self) -> None:
        self._begun += 1
        try:
            await self._act()
        finally:
            self.ended += 1


def _is_busy(tx: Transaction) -> bool:
    unsent = any(tx.outbox.listed(("pending", "sending", "unknown"), 1))
    return bool(tx.inbox.open_lanes()) or unsent
