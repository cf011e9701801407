"""One history of a gateway, told by a seed: who says what when, what goes wrong, and what came of it.

The gateway is the product's own, with every part of it. It is cut off at any moment, held up for longer than its leases
last while another one takes over, stopped and begun again; the platform, the model and the store have their troubles.
"""

import asyncio
import hashlib
import itertools
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from lane_house import UNSTREAMED, Building, dm
from simulated_loop import Life, SimulatedLoop
from simulated_places import SimulatedModel, SimulatedPlatform, SimulatedStage, SimulatedTool, Weather
from simulated_store import MemoryEngine, SimulatedHand, SimulatedStore

from segue.agent import door
from segue.core.leases import Run
from segue.core.queueing import Drop, QueueMode, QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.streaming import Streaming
from segue.gateway import desk
from segue.ports.store import Transaction
from segue.storage.store import SqlStore

PEOPLE = ("alice", "bob", "carol")
SPAN = 5.0
"""Seconds in which people talk and things go wrong."""
LONGEST_END = 300.0
"""Seconds after which whatever has not come to its end is stuck."""
SHOWN = Streaming(edit_interval=0.05, buffer_threshold=2)
TEXTS = (
    *("{0}", "{0}", "{0}", "{0}", "{0}", "{0} tool", "{0} tool", "/steer {0}", "/queue {0}", "/queue {0} tool"),
    *("/stop", "/stop", "/new", "/new {0}", "/status", "/queue {1}"),
)


MISHAPS = (
    *((), ("kill",), ("kill",), ("kill", "kill"), ("hold",), ("hold", "kill"), ("end",)),
    ("trouble", "end", "kill"),
)
"""Two kills at most: after three within a minute a gateway waits before it continues anything."""


class Words(NamedTuple):
    """Something that is said."""

    at: float
    person: str
    message_id: str
    text: str
    edit: str = ""


class Mishap(NamedTuple):
    """Something that goes wrong: a process is killed, held up or ended, or the store is in trouble."""

    at: float
    kind: str
    amount: float


class Killed(BaseException):
    """A process is no more."""


@dataclass(eq=False)
class Process(Life):
    """A gateway."""

    fate: int = 0
    """After so many steps that last it is killed; never if this is nothing."""
    steps: int = 0
    store: SimulatedStore | None = None
    stop: asyncio.Event | None = None
    task: "asyncio.Task[None] | None" = None
    building: Building | None = None


@dataclass
class Plan:
    """What a seed says beforehand."""

    queue: QueueRules
    has_key: bool
    is_streaming: bool
    longest: int
    stop_suspends: bool
    contention: float
    is_near: bool
    words: list[Words] = field(default_factory=list)
    mishaps: list[Mishap] = field(default_factory=list)


def planned(seed: int) -> Plan:
    chance = random.Random(f"plan {seed}")
    rules = QueueRules(
        chance.choice([QueueMode.COLLECT, *QueueMode]),
        timedelta(seconds=chance.choice((0.0, 0.0, 0.3))),
        chance.choice((2, 20, 20)),
        chance.choice(list(Drop)),
    )
    plan = Plan(
        rules,
        has_key=chance.random() < 0.6,
        is_streaming=chance.random() < 0.2,
        longest=chance.choice((4000, 4000, 24)),
        stop_suspends=chance.random() < 0.2,
        contention=chance.choice((0.0, 0.1, 0.4)),
        is_near=chance.random() < 0.75,
    )
    for number in range(chance.randint(5, 9)):
        person = PEOPLE[int(chance.random() ** 2 * 3)]
        name, text = f"{person[0]}{number}", chance.choice(TEXTS)
        at = chance.choice((0.2, 1.0, SPAN)) * chance.random()
        plan.words.append(Words(at, person, f"m{number}", text.format(name, chance.choice(list(QueueMode)))))
        if chance.random() < 0.1:
            plan.words.append(Words(at + chance.random() * 0.3, person, f"m{number}", f"{name}e", "1"))
    for kind in chance.choice(MISHAPS):
        amount = chance.choice((20, 60, 150)) * chance.random() if kind == "kill" else chance.choice((1.0, 17.0))
        plan.mishaps.append(Mishap(chance.choice((0.1, 1.0, SPAN)) * chance.random(), kind, amount))
    return plan


class World:
    """All of it, and its history."""

    def __init__(self, seed: int, engine: MemoryEngine) -> None:
        engine.empty()
        self.seed = seed
        self.plan = planned(seed)
        self.engine = engine
        self.loop = SimulatedLoop(seed)  # type: ignore[abstract]  # nobody here has a socket
        self.weather = Weather(seed)
        self.store = SqlStore(engine)
        self.used: list[str] = []
        self.history: list[str] = []
        self.processes: dict[str, Process] = {}
        self.is_stuck = False
        self.mishaps: set[str] = set()
        """Which kinds there were."""
        self._numbers = itertools.count(1)
        self._deaths = asyncio.Event()
        self.stage = SimulatedStage(seed, has_key=self.plan.has_key)

    def run(self) -> "World":
        with _by(self.loop, self.seed):
            self.loop.run(self._happen())
        return self

    @property
    def brought(self) -> int:
        """How often a message was given to a gateway."""
        return sum(line.endswith(" received") for line in self.history)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(self.history).encode()).hexdigest()

    # Processes

    def _begin(self, fate: int = 0) -> Process:
        number = next(self._numbers)
        process = Process(number, fate=fate)
        name = f"life-{number}"
        self.processes[name] = process

        def passes(what: str) -> None:
            self._passes(process, what)

        plan = self.plan
        with self.loop.within(process):
            process.stop = asyncio.Event()
            process.store = SimulatedStore(
                self.store, passes, self.weather.random, is_near=plan.is_near, contention=plan.contention
            )
            platform = SimulatedPlatform(
                self.stage, self.weather, passes, longest=plan.longest, edits=plan.is_streaming
            )
            process.building = Building(
                process.store,
                self.stage,
                model=SimulatedModel(self.weather),  # type: ignore[arg-type]
                tools=[SimulatedTool(self.weather, self.used, passes)],
                name=name,
                queue=plan.queue,
                is_gone=lambda run: self.processes[run.id].is_over,
                run=Run(name, "segue gateway", "here", "boot", number, "1", self.loop.wall(), self.loop.wall()),
                only=[platform],
                stop_suspends=plan.stop_suspends,
                streaming=SHOWN if plan.is_streaming else UNSTREAMED,
            )
            process.task = asyncio.create_task(process.building.gateway.run(process.stop))
        process.task.add_done_callback(lambda _: self._over(process))
        self.history.append(f"{self.loop.time():.6f} {name} begins")
        return process

    def _passes(self, process: Process, what: str) -> None:
        if process.is_over:
            raise Killed
        process.steps += 1
        self.history.append(f"{self.loop.time():.6f} {process.number} {what}")
        if process.steps == process.fate:
            self.mishaps.add("killed")
            self._over(process)
            raise Killed

    def _over(self, process: Process) -> None:
        if not process.is_over:
            self.history.append(f"{self.loop.time():.6f} {process.number} is over")
            process.is_over = True
            self._deaths.set()

    @property
    def _living(self) -> list[Process]:
        return [process for process in self.processes.values() if not process.is_over]

    async def _keep_one_alive(self) -> None:
        while True:
            if not self._living:
                await asyncio.sleep(self.weather.random.choice((0.0, 0.5, 1.5)))
                self._begin()
            self._deaths.clear()
            await self._deaths.wait()

    # What happens

    async def _happen(self) -> None:
        self._begin()
        keeping = asyncio.create_task(self._keep_one_alive())
        acts = [(words.at, self._said, words) for words in self.plan.words]
        going_wrong = [asyncio.create_task(self._go_wrong(mishap)) for mishap in self.plan.mishaps]
        for at, act, words in sorted(acts, key=lambda one: one[0]):
            await asyncio.sleep(max(0.0, at - self.loop.time()))
            act(words)
        for task in going_wrong:
            await task
        self.weather.is_calm = True
        for process in self._living:
            process.fate = 0
        await asyncio.sleep(1.0)
        until = self.loop.time() + LONGEST_END
        while bool(self.stage._waiting) or self.store.read(OWNER, _is_busy):
            if self.loop.time() > until:
                self.is_stuck = True
                break
            await asyncio.sleep(0.5)
        keeping.cancel()
        for process in self._living:
            process.is_over = True
        self.history += [repr(row) for row in self.engine.rows("SELECT * FROM inbox ORDER BY id")]
        self.history += [repr(row) for row in self.engine.rows("SELECT * FROM outbox ORDER BY id")]
        self.history += [repr(row) for row in self.engine.rows("SELECT * FROM messages ORDER BY id")]

    def _said(self, words: Words) -> None:
        self.history.append(f"{self.loop.time():.6f} {words}")
        self.stage.say(dm(words.person), words.text, message_id=words.message_id, edit=words.edit)

    async def _go_wrong(self, mishap: Mishap) -> None:
        await asyncio.sleep(mishap.at)
        if not self._living:
            return
        process = self._living[0]
        match mishap.kind:
            case "kill":
                process.fate = process.steps + 1 + int(mishap.amount)
                await asyncio.sleep(SPAN - mishap.at)
            case "hold":
                self.mishaps.add("held up")
                process.is_held_up = True
                other = self._begin()
                await asyncio.sleep(mishap.amount)
                self.loop.let_go_on(process)
                await asyncio.sleep(2.0)
                if not process.is_over and not other.is_over:
                    self._over(self.weather.random.choice((process, other)))
            case "end":
                assert process.stop is not None
                self.mishaps.add("ended")
                process.stop.set()
                await asyncio.sleep(8.0)
            case "trouble":
                assert process.store is not None
                self.mishaps.add("in trouble")
                process.store.trouble = 0.3
                await asyncio.sleep(mishap.amount / 8)
                process.store.trouble = 0.0


def _is_busy(tx: Transaction) -> bool:
    return bool(tx.inbox.open_lanes()) or bool(tx.outbox.listed(("pending", "sending", "unknown", "draft"), 1))


@contextmanager
def _by(loop: SimulatedLoop, seed: int) -> Iterator[None]:
    """While this lasts, it is as late as the loop says, and nothing is new by chance."""
    names, hand_chance = random.Random(f"names {seed}"), random.Random(f"hands {seed}")
    SimulatedHand.chance = hand_chance

    def named() -> uuid.UUID:
        return uuid.UUID(int=names.getrandbits(128), version=4)

    changed: list[tuple[Any, str, Callable[..., Any]]] = [
        (time, "time", loop.wall),
        (time, "monotonic", loop.time),
        (uuid, "uuid4", named),
        (door, "Hand", SimulatedHand),
        (desk, "Hand", SimulatedHand),
    ]
    before = [getattr(owner, name) for owner, name, _ in changed]
    try:
        for owner, name, new in changed:
            setattr(owner, name, new)
        yield
    finally:
        for (owner, name, _), old in zip(changed, before, strict=True):
            setattr(owner, name, old)
