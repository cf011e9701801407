"""A batch, run: its prompts are put down a few at a time and followed to their end.

A gateway of this home that lives answers them. Where there is none, this process does, and works on nothing else.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from segue.agent.door import Door
from segue.app.serving import NO_MODEL, Serving
from segue.config import Settings
from segue.core.batches import Line, lanes_of
from segue.core.errors import NoModel
from segue.core.inbox import Entry, InboxState
from segue.core.keys import DEFAULT_AGENT
from segue.core.preferences import Preferences
from segue.core.scope import OWNER_AT_CONSOLE
from segue.gateway.lanes import Errand
from segue.platforms.batch.platform import BatchPlatform
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted
from segue.sessions.batching import ended_among, is_missing, put_down
from segue.sessions.pairing import rules_with_owners
from segue.sessions.watching import living_gateways
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run

PROGRAM = "segue batch"
LOOK_SECONDS = 0.1


class Batch(NamedTuple):
    """What is to be answered."""

    name: str
    lines: Sequence[Line]
    known: dict[str, Entry]
    """What was asked of it before, by the ids of lines."""
    at_once: int


class Progress(NamedTuple):
    """How far a batch has come."""

    done: int
    failed: int
    open: int


Show = Callable[[Progress], None]


class BatchRun:
    """One run of a batch, until each of its lines has come to its end or somebody stops it."""

    def __init__(self, settings: Settings, store: SqlStore, batch: Batch, show: Show) -> None:
        self._settings = settings
        self._store = store
        self._batch = batch
        self._show = show
        self._door = Door(store, OWNER_AT_CONSOLE)
        self._own: _OwnServing | None = None
        known = [(line, batch.known.get(line.id)) for line in batch.lines]
        self._left = deque(line for line, entry in known if is_missing(entry))
        self._open = {entry.id for _, entry in known if entry is not None and entry.is_open}
        self._done = len(known) - len(self._left) - len(self._open)
        self._failed = 0

    @property
    def progress(self) -> Progress:
        return Progress(self._done, self._failed, len(self._open))

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event) -> Progress:
        """Answer everything. When told to stop, what is being answered comes to its end, and nothing more begins.

        Told to hurry, nobody waits for that: it is carried on when the batch is run again.
        """
        try:
            try:
                while (self._left or self._open) and not stop.is_set():
                    await self._step()
                    await self._pause(stop)
            finally:
                if self._own is not None:
                    await self._own.close(hurry)
            await self._look()
        finally:
            self._door.close()
        return self.progress

    async def _step(self) -> None:
        await self._look()
        if self._own is None and not await self._door.read(living_gateways, is_gone):
            self._own = _OwnServing(self._settings, self._store, self._batch)
            await self._own.check_models({line.agent or DEFAULT_AGENT for line in self._left})
        await self._ask()

    async def _look(self) -> None:
        """Notice what has come to its end."""
        for entry in await self._door.read(ended_among, frozenset(self._open)):
            self._open.discard(entry.id)
            if entry.state == InboxState.DONE:
                self._done += 1
            else:
                self._failed += 1
        self._show(self.progress)

    async def _ask(self) -> None:
        """Put the next ones down. They leave the line only when that has been committed."""
        room = self._batch.at_once - len(self._open)
        lines = [self._left[number] for number in range(min(room, len(self._left)))]
        if not lines:
            return
        for accepted in await self._door.write(self._put_down, lines):
            self._left.popleft()
            self._open.add(accepted.entry.id)
            if self._own is not None:
                self._own.wake(accepted.entry.lane_key)
        self._show(self.progress)

    def _put_down(self, tx: Transaction, lines: Sequence[Line]) -> list[Accepted]:
        keys = rules_with_owners(tx, self._settings.key_rules)
        return put_down(tx, self._batch.name, lines, keys, time.time())

    async def _pause(self, stop: asyncio.Event) -> None:
        if self._own is not None:
            self._own.check()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await stop.wait()


class _OwnServing:
    """A gateway in this process that has nothing to do but one batch."""

    def __init__(self, settings: Settings, store: SqlStore, batch: Batch) -> None:
        self._settings = settings
        self._stop = asyncio.Event()
        errand = Errand(lanes_of(batch.name), batch.at_once)
        run, platforms = this_run(PROGRAM), [BatchPlatform()]
        self._serving = Serving(settings, store, run, platforms, self._stop.set, errand)
        self._serving.begin()
        self._living = asyncio.create_task(self._serving.gateway.run(self._stop))

    async def check_models(self, agents: Collection[str]) -> None:
        """Whether there is a model for each of these agents: that there is none is nothing to be told line by line."""
        for name in agents:
            own = self._settings.agents.get(name)
            if await self._serving.crew.is_offline(Preferences(model=own.model or None if own else None)):
                raise NoModel(NO_MODEL)

    def wake(self, lane_key: str) -> None:
        """Something waits in a lane; it would be noticed, but later."""
        self._serving.gateway.lanes.wake(lane_key)

    def check(self) -> None:
        """Raise what it ended with, if it has ended."""
        if self._living.done():
            self._living.result()

    async def close(self, hurry: asyncio.Event) -> None:
        """Let answers that are being written come to their end, for a while or until somebody is in a hurry."""
        gateway = self._serving.gateway
        waiting = [asyncio.create_task(gateway.lanes.finish(gateway.drain_seconds)), asyncio.create_task(hurry.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        gateway.drain_seconds = 0.0
        self._stop.set()
        try:
            await self._living
        finally:
            await self._serving.close()
