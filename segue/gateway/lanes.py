"""One worker for each lane in which something waits: it takes the lane, does one thing after another, lets it go."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.errors import InUse, LeaseLost, StoreError
from segue.core.leases import Lease
from segue.core.text import one_line
from segue.gateway.at_work import logged_for
from segue.gateway.holding import LaneHolder, take_lane, unattended
from segue.gateway.outages import log_store_error
from segue.ports.store import Transaction
from segue.sessions.queueing import Due

LOOK_SECONDS = 1.0
"""How soon what others have put down is noticed."""
MOST_AT_WORK = 512


class Errand(NamedTuple):
    """What a person begins a process for, and waits for: it works in these lanes, and in no others."""

    is_for: Callable[[str], bool]
    most: int
    """How many lanes it works in at once."""


_log = logging.getLogger(__name__)


class Steps(Protocol):
    """What is done in a lane."""

    def due(self, tx: Transaction, key: str) -> Due:
        """What is to be done next; nothing when all is done."""

    async def do(self, holder: LaneHolder, key: str, due: Due) -> bool:
        """Do it; False when it cannot be done now."""

    def left(self, key: str) -> None:
        """Nobody is at work in a lane any more."""

    async def is_held_back(self, key: str) -> bool:
        """Return whether looking again, by itself, what is due in a lane would change nothing yet."""


class Lanes:
    """The workers."""

    def __init__(self, door: Door, presence: Presence, steps: Steps, errand: Errand | None = None) -> None:
        self._door = door
        self._presence = presence
        self._steps = steps
        self._errand = errand or Errand(lambda _key: True, MOST_AT_WORK)
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._line: dict[str, None] = {}
        """Lanes that wait for a worker, in order."""
        self._is_closing = False

    def wake(self, key: str) -> None:
        """Something waits in a lane."""
        if self._is_closing:
            return
        if key in self._workers:
            self._again.add(key)
        elif self._line or len(self._workers) >= self._errand.most:
            self._line[key] = None
        else:
            self._begin(key)

    async def look(self) -> None:
        """Notice, again and again, what waits in lanes that nobody works in: what others put down, or a crash left."""
        while True:
            await self._unless_broken(self._wake_open)
            await asyncio.sleep(LOOK_SECONDS)

    def begin_nothing_more(self) -> None:
        self._is_closing = True
        self._line.clear()

    async def finish(self, seconds: float) -> bool:
        """Begin nothing more, and wait for what is at work; whether all of it came to its end."""
        self.begin_nothing_more()
        if self._workers:
            await asyncio.wait(self._workers.values(), timeout=seconds)
        return not self._workers

    async def break_off(self, seconds: float) -> None:
        """Wait for those who were told to leave; whoever is busy with something else is not waited for."""
        if self._workers:
            await asyncio.wait(self._workers.values(), timeout=seconds)
        for worker in self._workers.values():
            worker.cancel()
        if self._workers:
            await asyncio.wait(self._workers.values())

    async def _wake_open(self) -> None:
        for key in await self._door.read(unattended, self._presence.run.id, self._presence.is_gone):
            is_ours = key not in self._workers and self._errand.is_for(key)
            if is_ours and not await self._steps.is_held_back(key):
                self.wake(key)

    def _begin(self, key: str) -> None:
        self._again.discard(key)  # whoever looks from now on finds it
        worker = asyncio.create_task(self._work(key), name=f"lane {key}")
        self._workers[key] = worker
        worker.add_done_callback(lambda done: self._ended(key, done))

    async def _work(self, key: str) -> None:
        with logged_for(key):
            await self._work_in(key)

    async def _work_in(self, key: str) -> None:
        try:
            lease, due = await self._door.write(self._take, key)
        except BaseException as error:
            self._steps.left(key)
            if isinstance(error, InUse):
                return  # another gateway works there
            raise
        holder = LaneHolder(self._presence, lease)
        try:
            while due is not None and not self._is_closing:
                self._again.discard(key)
                if not await self._steps.do(holder, key, due) and key not in self._again:
                    break
                due = await self._door.write(self._look_or_leave, holder, key)
                holder.is_free = due is None
        except LeaseLost:
            _log.warning("Lane taken over by another gateway, which continues there")
        except InUse as error:
            _log.warning("Messages of the lane wait, retrying in %g s: %s", LOOK_SECONDS, one_line(str(error)))
        finally:
            self._steps.left(key)
            await self._unless_broken(holder.let_go)

    def _take(self, tx: Transaction, key: str) -> tuple[Lease, Due]:
        lease = take_lane(tx, key, self._presence.run.id, self._presence.is_gone)
        return lease, self._steps.due(tx, key)

    def _look_or_leave(self, tx: Transaction, holder: LaneHolder, key: str) -> Due:
        """What is due; when nothing is, the lane is let go of in the transaction that knows it."""
        due = self._steps.due(tx, key)
        if due is None:
            holder.give_back(tx)
        return due

    def _ended(self, key: str, worker: "asyncio.Task[None]") -> None:
        del self._workers[key]
        if not worker.cancelled() and (error := worker.exception()):
            self._log_crash(key, error)
        elif key in self._again:
            self.wake(key)
        while self._line and len(self._workers) < self._errand.most:
            first = next(iter(self._line))
            del self._line[first]
            self._begin(first)

    def _log_crash(self, key: str, error: BaseException) -> None:
        with logged_for(key):
            if isinstance(error, StoreError):
                log_store_error(_log, "Lane worker stopped, retrying", error)
            else:
                _log.error("Lane worker crashed, retrying in %g s", LOOK_SECONDS, exc_info=error)

    async def _unless_broken(self, act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except StoreError as error:
            log_store_error(_log, "Lanes not read or released, retrying", error)
