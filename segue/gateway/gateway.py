"""One life of a gateway: it begins where the last one ended, runs, and leaves nothing half done."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core import crash_recovery
from segue.core.crash_recovery import MAX_CRASHES
from segue.core.errors import StoreError
from segue.core.inbox import Entry, Want
from segue.core.lifecycle import Interruption
from segue.core.text import count, one_line
from segue.gateway.agreeing import Agreements
from segue.gateway.answering import Office
from segue.gateway.at_work import logged_for
from segue.gateway.clerk import Clerk
from segue.gateway.connecting import Connection
from segue.gateway.desk import Desk
from segue.gateway.lanes import Lanes
from segue.gateway.outages import log_store_error
from segue.gateway.turn_log import log_fact
from segue.gateway.watching import Watcher
from segue.hookspecs import Fact, Hooks, MessageAccepted, SessionReset
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted
from segue.sessions.backgrounding import mark_lost
from segue.sessions.recovering import find_resume_time, interrupt_left, interrupt_own

_log = logging.getLogger(__name__)

LEAVING_SECONDS = 2.0
MAX_NAMED = 5
"""Lanes that a line of the log names."""
OVERHEAR_SECONDS = 0.5
"""For what has to stop at once."""


def _shutting_down() -> Interruption:
    return Interruption.SHUTDOWN_DRAIN


@dataclass(slots=True)
class Gateway:
    """Its parts: where messages arrive, where they are answered, and the platforms on both ends."""

    door: Door
    presence: Presence
    desk: Desk
    office: Office
    clerk: Clerk
    lanes: Lanes
    connections: Sequence[Connection]
    watcher: Watcher
    hooks: Hooks
    drain_seconds: float = 30.0
    other_doors: Sequence[Door] = ()
    questions: Agreements | None = None
    """Those that wait for an answer in a chat."""
    is_begun: bool = False
    """Whether what the last life left has been seen to, and platforms are being connected."""
    is_on_errand: bool = False
    """Whether somebody began it for something, and waits: it looks after nothing else, and what was cut off goes on."""
    stopping_at: float | None = None
    """When it was told to stop, by the monotonic clock."""
    _doing: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def run(self, stop: asyncio.Event, reason: Callable[[], Interruption] = _shutting_down) -> None:
        """Live until told to stop."""
        await self.presence.begin()
        await self._recover()
        self.is_begun = True
        working = [asyncio.create_task(connection.run()) for connection in self.connections]
        working.append(asyncio.create_task(self.lanes.look()))
        if not self.is_on_errand:
            working.append(asyncio.create_task(self.watcher.run()))
        if not self.presence.is_alone:
            working.append(asyncio.create_task(self._overhear()))
        try:
            await stop.wait()
        finally:
            await self._leave(working, reason())

    def close(self) -> None:
        """Nothing more is read or written."""
        for door in (self.door, *self.other_doors):
            door.close()

    def accepted(self, accepted: Accepted) -> None:
        """A message has been put down."""
        if not accepted.is_new:
            return
        entry = accepted.entry
        if not accepted.is_refused:
            self.told(_accepted(entry))
        if self.questions is not None and self.questions.is_answer(entry):
            self._do(self.questions.answer(entry))
            return
        running = self.office.running_in(entry.lane_key)
        if accepted.is_ending:
            self.office.stop_for(entry)
        elif accepted.is_steering and running is not None:
            running.ears.hear(entry)
        if entry.want == Want.COMMAND and running is not None and self.clerk.is_at_once(entry):
            self._do(self._carried_out(entry))  # what only reads is told beside the answer that is being written
        if accepted.is_refused or accepted.cancelled or accepted.is_shown:
            self.sent()  # somebody in a chat may be told of it
        self.office.stir(entry.lane_key)
        self.lanes.wake(entry.lane_key)

    async def _overhear(self) -> None:
        """Notice what another gateway has put down in lanes in which a turn runs here: it is to end, or may go on."""
        while True:
            await asyncio.sleep(OVERHEAR_SECONDS)
            try:
                waiting = await self.door.read(_waiting_in, self.office.at_work_in)
            except StoreError:
                continue  # it is looked again
            for entry in waiting:
                if self.questions is not None and self.questions.is_answer(entry):
                    self._do(self.questions.answer(entry))
                elif self.clerk.is_clearing(entry):
                    self.office.stop_for(entry)

    def _do(self, act: Coroutine[Any, Any, None]) -> None:
        doing = asyncio.create_task(act)
        self._doing.add(doing)
        doing.add_done_callback(self._done)

    def _done(self, doing: "asyncio.Task[None]") -> None:
        self._doing.discard(doing)
        if doing.cancelled() or (error := doing.exception()) is None:
            return
        if isinstance(error, StoreError):
            log_store_error(_log, "Answer to a question of the agent not stored", error)
        else:
            _log.error("Command or answer failed", exc_info=error)

    async def _carried_out(self, entry: Entry) -> None:
        with logged_for(entry.lane_key, entry.session_id):
            try:
                await self.clerk.carry_out(None, entry)
            except StoreError as error:
                log_store_error(_log, "Command not carried out, retrying", error)
        self.sent()

    def sent(self) -> None:
        """Something is to be sent."""
        for connection in self.connections:
            connection.delivery.wake()

    def told(self, fact: Fact) -> None:
        """Something has happened that others want to know."""
        log_fact(fact)
        self.hooks.tell(fact)
        if isinstance(fact, SessionReset):
            self.watcher.wake()

    async def _recover(self) -> None:
        """Mark what a gateway that died has left; the lanes themselves go on when they are looked at."""
        now = time.time()
        interrupted = await self.door.write(interrupt_left, self.presence.is_gone, now)
        await self.door.write(mark_lost, self.presence.is_gone, now)
        resume_at = await self.door.read(find_resume_time, self.presence.run.program, now)
        if resume_at is not None and resume_at > now and not self.is_on_errand:
            self.office.hold_back(resume_at - now)
            _log.error(
                "Gateway crashed %d times within %g s: answers that were cut off resume in %.0f s",
                *(MAX_CRASHES, crash_recovery.CRASH_SPAN.total_seconds(), resume_at - now),
            )
        elif interrupted:
            _log.warning("Resuming %s that a crash cut off, in %s", count(len(interrupted), "turn"), _some(interrupted))

    async def _leave(self, working: "list[asyncio.Task[None]]", reason: Interruption) -> None:
        """Take nothing more in, let turns come to their end for a while, and leave the rest for the next life."""
        self.stopping_at = time.monotonic()
        self._log_waiting(reason)
        await self.desk.close()
        self.lanes.begin_nothing_more()
        self.office.stir()
        if not await self.lanes.finish(self.drain_seconds):
            await self._break_off(reason)
        await self._send_the_rest()
        await self.office.close()
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        try:
            await self.presence.end()
        except StoreError as error:
            log_store_error(_log, "End of the gateway not stored; the next one finds out", error)
        await asyncio.to_thread(self.hooks.close, LEAVING_SECONDS)

    def _log_waiting(self, reason: Interruption) -> None:
        keys = self.office.at_work_in
        if keys:
            turns = count(len(keys), "turn")
            _log.info(
                "Gateway stopping (%s): waiting up to %g s for %s",
                reason,
                self.drain_seconds,
                f"{turns}, {_some(keys)}",
            )
        else:
            _log.info("Gateway stopping (%s): no turn is running", reason)

    async def _break_off(self, reason: Interruption) -> None:
        """Leave the turns that took too long for the next life."""
        keys = self.office.at_work_in
        _log.warning(
            "%s not finished within %g s; resumed by the next gateway: %s",
            *(count(len(keys), "turn"), self.drain_seconds, _some(keys)),
        )
        try:
            await self.door.write(interrupt_own, self.presence.run, reason, time.time())
        except StoreError as error:
            log_store_error(_log, "Turns not marked as interrupted; the next gateway finds out", error)
        self.office.abandon_all()
        await self.lanes.break_off(LEAVING_SECONDS)

    async def _send_the_rest(self) -> None:
        """What was said last is sent, if that takes no longer than a moment; the rest waits for the next life."""
        self.sent()
        deadline = time.monotonic() + LEAVING_SECONDS
        is_told = False
        while time.monotonic() < deadline and (busy := [one for one in self.connections if not one.delivery.is_idle()]):
            if not is_told and (names := [one.platform.name for one in busy if one.delivery.is_sending]):
                _log.info(
                    "Gateway stopping: waiting up to %g s for deliveries on %s", LEAVING_SECONDS, ", ".join(names)
                )
                is_told = True
            await asyncio.sleep(0.01)


def _some(keys: Sequence[str]) -> str:
    """Return the lanes that a line names: the first few, and how many more there are."""
    more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
    return one_line(f"{'lane' if len(keys) == 1 else 'lanes'} {', '.join(keys[:MAX_NAMED])}{more}")


def _waiting_in(tx: Transaction, keys: Sequence[str]) -> list[Entry]:
    return [entry for key in keys for entry in tx.inbox.waiting(key)]


def _accepted(entry: Entry) -> MessageAccepted:
    return MessageAccepted(entry.lane_key, entry.principal, entry.platform, entry.chat, entry.message_id)
