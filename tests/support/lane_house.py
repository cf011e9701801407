"""A gateway with a scripted platform and model, for tests that look at rows."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, timedelta
from typing import Any

from segue.agent.compression import Compression
from segue.agent.holding import Holds
from segue.agent.loop import Loop
from segue.agent.turn import Agrees
from segue.core.access import AccessRules
from segue.core.events import Event, Reply, ToolCall
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
            return Situation(None, time.time(), UTC, next(ids), model=chosen.model or "scripted")

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

        means = Means(reading, situation, compress or compressed, restart, stop_suspends)
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

    async def quiet(self, seconds: float = 20.0) -> None:
        """Wait until everything that was said has come to its end and everything was sent."""
        async with asyncio.timeout(seconds):
            while bool(self.stage.waiting()) or self.store.read(OWNER, _is_busy):
                await asyncio.sleep(0.02)

    def run(self, work: Callable[[], Awaitable[None]], seconds: float = 60.0) -> None:
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


def _is_busy(tx: Transaction) -> bool:
    unsent = any(tx.outbox.listed(("pending", "sending", "unknown"), 1))
    return bool(tx.inbox.open_lanes()) or unsent
