"""The next thing in a lane, done: a turn is begun or carried on, runs, and ends with what is sent."""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from segue.agent.compression import Compression
from segue.agent.door import Door
from segue.agent.holding import Holds, Presence
from segue.agent.late import Late
from segue.agent.turn import Agrees, Emit, TurnRunner
from segue.core.crash_recovery import is_given_up
from segue.core.errors import InUse, LeaseLost, StoreError, is_storage_fault
from segue.core.events import Event
from segue.core.inbox import Entry, InboxState
from segue.core.keys import is_shared, parse_key
from segue.core.lifecycle import Interruption, Lane, Reset, Start
from segue.core.outbox import What
from segue.core.preferences import Preferences
from segue.core.queueing import QueueMode, QueueRules, pause_before
from segue.core.scope import OWNER
from segue.core.sessions import Session
from segue.core.turn_slots import USUAL_LIMITS, TurnLimits, TurnSlots
from segue.core.turns import Turn, TurnState
from segue.gateway.at_work import Work, at_work, logged_for
from segue.gateway.clerk import Clerk
from segue.gateway.ears import LaneEars
from segue.gateway.holding import LaneHolder
from segue.gateway.streaming import Streams
from segue.gateway.turn_log import TurnLog, log_end
from segue.hookspecs import SessionReset, SessionStarted, Tell, TurnEnded, nobody
from segue.ports.agent import Agent
from segue.ports.failpoints import Point, reached
from segue.ports.store import Transaction
from segue.sessions import turning
from segue.sessions.accepting import STOPPED_BY, stopped_by
from segue.sessions.answering import (
    Batch,
    Begun,
    House,
    begin_answer,
    bury_answer,
    drop_answer,
    end_answer,
    take_up_answer,
)
from segue.sessions.delivering import draft_of, envelope_of, post
from segue.sessions.leasing import hold
from segue.sessions.opening import Opened
from segue.sessions.queueing import AnswerThese, Carry, CutOff, Due, Forgotten, mode_in, next_due
from segue.sessions.recovering import interrupt_left_by, is_silent, presume_crash
from segue.sessions.turning import MOST_ATTEMPTS, Outcome

_log = logging.getLogger(__name__)

FORGOTTEN = "Its answer was cut off, and the conversation went on elsewhere."
STALE = "The answer was cut off, and that was too long ago to go on with it; ask again."
UNBEGUN = "It could not be begun: {}. The log says more."
UNBEGUN_TOLD = "Your message could not be answered, because of a fault of ours. Ask in other words, or tell the owner."
FIRST_STORE_PAUSE, MAX_STORE_PAUSE = 0.5, 60.0
"""Seconds before a turn goes on that the store has failed: doubled each time, up to a maximum."""
PUT_OUT = "Who asked may not speak any more."
CRASHED = "The gateway crashed repeatedly while it answered, and gives up. The next message begins a new conversation."


@contextmanager
def unseen(_work: Work) -> Iterator[Emit]:
    """For turns that nobody looks on at."""
    yield _nothing_shown


async def _nothing_follows(_session: Session) -> None: ...


@dataclass(frozen=True, slots=True)
class Staff:
    """Who answers in a lane, and what they need."""

    agent_for: Callable[[Opened, Preferences], Awaitable[Agent]]
    agrees: Callable[[Entry], Agrees]
    """Asks whoever wrote a message whether something may be done."""
    compression: Callable[[Holds, Opened], Compression | None]
    new_session_id: Callable[[], str]
    queue: Callable[[str], QueueRules]
    """Of a platform."""
    showing: Callable[[Entry, str], AbstractContextManager[Callable[[Event], None]]]
    """Shows what happens in the turn that answers a message to whoever looks on."""
    seen: Callable[[Work], AbstractContextManager[Emit]] = unseen
    """Looks on while a turn is at work, from its beginning to its end."""
    ended: Callable[[Session], Awaitable[None]] = _nothing_follows
    """What is done when a turn of a session has come to its end; as the session was when it began."""
    turn_seconds: float = 1800.0
    freshness: float = 3600.0
    most_attempts: int = MOST_ATTEMPTS
    limits: TurnLimits = USUAL_LIMITS


class Running(NamedTuple):
    """A turn at work in a lane."""

    runner: TurnRunner
    ears: LaneEars
    turn_id: str


class StoreFailures(NamedTuple):
    """How often in a row the store failed a turn, and when the turn may go on, by the monotonic clock."""

    times: int
    retry_at: float


class Heard(Enum):
    """When an answer that was cut off can be heard."""

    NOW = "now"
    LATER = "later"
    NOBODY = "nobody"


class Circle(NamedTuple):
    """Who is answered at the moment."""

    may_speak: Callable[[Transaction, Entry], bool] = lambda _tx, _entry: True
    is_connected: Callable[[Transaction, str, str], bool] = lambda _tx, _platform, _account: True


EVERYBODY = Circle()


class Office:
    """Does one thing after another in lanes."""

    def __init__(
        self,
        door: Door,
        presence: Presence,
        house: House,
        staff: Staff,
        clerk: Clerk,
        streams: Streams,
        sent: Callable[[], None],
        tell: Tell = nobody,
        circle: Circle = EVERYBODY,
    ) -> None:
        self._circle = circle
        self._door = door
        self._presence = presence
        self._house = house
        self._staff = staff
        self._clerk = clerk
        self._streams = streams
        self._sent = sent
        self._tell = tell
        self.wake: Callable[[str], None] = _nobody_works
        """Called for a lane in which a turn may begin now that waited for others."""
        self._slots = TurnSlots(staff.limits, (OWNER,))
        self._resume_at = 0.0
        """When turns that were cut off may go on, by the monotonic clock."""
        self._held_back: set[str] = set()
        """Lanes whose cut-off turn waits for that moment."""
        self._store_failures: dict[str, StoreFailures] = {}
        """Of turns that the store has failed, by lane."""
        self._running: dict[str, Running] = {}
        self._suspect: str | None = None
        """The turn that is carried on although the gateway may have died of it."""
        self._stops: dict[str, int] = {}
        """The last message of each lane that nothing before it should be answered any more for."""
        self._stirred: dict[str, asyncio.Event] = {}
        """Whether something came in a lane since it was looked what is due there."""
        self._failures: dict[str, int] = {}
        """How often in a row the next thing in a lane could not be begun."""
        self._ends: dict[str, tuple[TurnState, str]] = {}
        """How a turn ends that is being stopped, and why."""
        self._is_leaving = False
        """Whether turns are left open for the next life."""
        self._outcomes: dict[str, Outcome] = {}
        """How turns came to their ends that nobody was told of yet."""

    def hold_back(self, seconds: float) -> None:
        """Continue no cut-off turn for so many seconds: the process has crashed too often lately."""
        self._resume_at = time.monotonic() + seconds

    async def is_held_back(self, key: str) -> bool:
        """Return whether nothing can be done in a lane before its cut-off turn may go on, or is given up or retried."""
        if time.monotonic() >= self._resume_at:
            self._held_back.clear()
        if key in self._held_back and not await self._door.read(lambda tx: tx.inbox.running(key)):
            self._held_back.discard(key)
        return key in self._held_back or self._slots.is_waiting(key) or self._is_waiting_for_store(key)

    def _is_waiting_for_store(self, key: str) -> bool:
        failures = self._store_failures.get(key)
        return failures is not None and time.monotonic() < failures.retry_at

    def _note_store_failure(self, key: str) -> None:
        """Wait longer each time before the turn goes on: each try may ask a model, which costs money."""
        times = (known.times if (known := self._store_failures.get(key)) else 0) + 1
        pause = min(FIRST_STORE_PAUSE * 2 ** min(times - 1, 30), MAX_STORE_PAUSE)
        self._store_failures[key] = StoreFailures(times, time.monotonic() + pause)
        _log.warning("The database failed during the turn, which resumes in %.1f s", pause)

    @property
    def at_work_in(self) -> list[str]:
        """The lanes in which a turn runs here."""
        return list(self._running)

    def running_in(self, key: str) -> Running | None:
        return self._running.get(key)

    def stop_for(self, entry: Entry) -> bool:
        """End the turn that runs in the lane of a message, or is about to; whether one ran."""
        self._stops[entry.lane_key] = entry.id
        return self.stop(entry.lane_key, stopped_by(entry))

    def stop(self, key: str, reason: str) -> bool:
        """End the turn that runs in a lane; whether there was one."""
        return self._end(key, TurnState.STOPPED, reason)

    def abandon_all(self) -> list[str]:
        """Leave every turn open for whoever carries it on, also those that are about to run; in which lanes."""
        self._is_leaving = True
        for running in self._running.values():
            running.runner.abandon()
        return list(self._running)

    async def close(self) -> None:
        """No turn runs any more: nothing is shown of one."""
        await self._streams.close()

    def due(self, tx: Transaction, key: str) -> Due:
        return next_due(tx, key, self._staff.queue)

    async def do(self, holder: LaneHolder, key: str, due: Due) -> bool:
        stirred = self._stirred[key] = asyncio.Event()
        try:
            is_more = await self._do(holder, due, stirred)
        except (InUse, LeaseLost, StoreError):
            raise
        except Exception as error:
            await self._give_up(holder, key, error)
            raise
        else:
            self._failures.pop(key, None)
            if not self._is_waiting_for_store(key):
                self._store_failures.pop(key, None)
            return is_more
        finally:
            del self._stirred[key]

    def left(self, key: str) -> None:
        self._stops.pop(key, None)
        self._wake_all(self._slots.release(key))

    def _wake_all(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.wake(key)

    async def _give_up(self, holder: LaneHolder, key: str, error: Exception) -> None:
        """What waits in front cannot be begun: after a few tries it is dead, and its sender told."""
        self._failures[key] = self._failures.get(key, 0) + 1
        if self._failures[key] >= self._staff.most_attempts:
            del self._failures[key]
            await self._door.write(self._bury_first, holder, key, UNBEGUN.format(type(error).__name__))
            self._sent()

    async def _do(self, holder: LaneHolder, due: Due, stirred: asyncio.Event) -> bool:
        match due:
            case None:
                return False
            case CutOff():
                return await self._cut_off(holder, due)
            case Forgotten(entries):
                await self._door.write(self._forget, holder, entries)
                self._sent()
            case Carry(entry):
                await self._clerk.carry_out(holder, entry)
                self._sent()
            case AnswerThese():
                if due.is_more_welcome and await self._has_paused(stirred, due.entries):
                    return True  # it is looked again what is due
                if not self._slots.begin(due.entries[0].lane_key, due.entries[0].principal):
                    return False  # too many turns run; it is woken when it may begin
                try:
                    return await self._answer(holder, due)
                finally:
                    self._wake_all(self._slots.end(due.entries[0].lane_key))
        return True

    async def _has_paused(self, stirred: asyncio.Event, entries: Sequence[Entry]) -> bool:
        """Wait for a moment for what is said next; whether there was something to wait for."""
        seconds = pause_before(entries, self._staff.queue(entries[0].platform).debounce, time.time())
        with suppress(TimeoutError):  # then it stayed quiet
            async with asyncio.timeout(seconds):
                await stirred.wait()
        return seconds > 0

    def stir(self, key: str | None = None) -> None:
        """Something has come in a lane, or comes no more in any: nobody waits for it there."""
        stirred = self._stirred.values() if key is None else [self._stirred[key]] if key in self._stirred else []
        for one in stirred:
            one.set()

    # Answering

    async def _answer(self, holder: LaneHolder, due: AnswerThese) -> bool:
        reached(Point.BEFORE_ANSWER_BEGINS)
        turn_id, fresh_id = uuid.uuid4().hex, self._staff.new_session_id()
        batch = Batch(due.entries, turn_id, self._presence.run.id, fresh_id, time.time(), due.is_fresh)
        try:
            begun = await self._door.write(begin_answer, batch, self._house, holder.claim)
        except LeaseLost:
            raise  # another gateway answers
        except InUse as error:
            await self._door.write(self._tell_busy, due.entries[0], error.in_chat)
            self._sent()
            return False  # it is looked again in a moment
        if begun is None:
            return True  # somebody cancelled it a moment ago
        await holder.now_holds(begun.lease)
        reached(Point.AFTER_ANSWER_BEGINS)
        self._tell_opened(begun.opened)
        if isinstance(begun.opened.decision, Reset):
            self._sent()
        await self._run(holder, begun, due.entries)
        return True

    async def _cut_off(self, holder: LaneHolder, due: CutOff) -> bool:
        """A turn that a crash or a shutdown left: carried on, unless it is too old or was cut off too often."""
        turn, now = due.turn, time.time()
        if await self._is_left_by_the_dead(turn, now):
            return True  # the lane has changed with it
        is_fresh = now - due.last_at <= self._staff.freshness
        if stopping := await self._door.read(self._find_stop, due.lane.key):
            self._stops[due.lane.key] = stopping.id
            await self._never_mind(holder, turn, stopping.id)
        elif is_given_up(turn.blame, self._staff.most_attempts):
            outcome = Outcome(turn, TurnState.FAILED, "", now, CRASHED)
            await self._door.write(self._bury, holder, due, outcome)
        elif not is_fresh:
            await self._door.write(turning.give_up_turn, holder.lease, turn, now, STALE, self._ending)
        elif time.monotonic() < self._resume_at:
            self._held_back.add(due.lane.key)
            return False
        elif self._is_waiting_for_store(due.lane.key) or await self._may_be_alive(turn):
            return False
        else:
            heard, person = await self._door.read(self._heard, turn)
            if heard is Heard.NOBODY:
                _log.warning("Turn not resumed after it was cut off: its sender may not write any more")
                outcome = Outcome(turn, TurnState.STOPPED, "", now, PUT_OUT)
                await self._door.write(turning.end_turn, holder.lease, outcome, None, self._dropping)
            elif self._is_leaving or (heard is Heard.LATER and not due.has_more):
                return False  # it is for the next life, or its platform is not connected yet
            elif not await self._carry_on_in_turn(holder, due, person):
                return False
        self._tell_ended(due.lane, turn)
        self._sent()
        return True

    async def _is_left_by_the_dead(self, turn: Turn, now: float) -> bool:
        """Settle the run that a turn was cut off in, unless that was done; return whether it died without a word."""
        if turn.run_id == self._presence.run.id:
            return False
        if await self._door.write(interrupt_left_by, turn.run_id, self._presence.is_gone, now):
            _log.warning("Lane taken over from a gateway that died (run %s)", turn.run_id)
            return True
        if not (self._presence.is_steady and await self._door.write(presume_crash, turn.run_id, now)):
            return False
        _log.warning("Lane taken over from a gateway that gives no sign of life (run %s)", turn.run_id)
        return True

    async def _may_be_alive(self, turn: Turn) -> bool:
        """Return whether the run of a turn is silent, and nobody can say yet if it was the store that was away."""
        return not self._presence.is_steady and await self._door.read(is_silent, turn.run_id)

    def _is_suspect(self, due: CutOff) -> bool:
        """Whether a turn may be what the gateway died of, and is given up if it does so once more."""
        is_crash = due.lane.phase_reason == Interruption.RESTART
        return is_crash and due.turn.attempt + 1 >= self._staff.most_attempts

    async def _carry_on_in_turn(self, holder: LaneHolder, due: CutOff, person: str) -> bool:
        """Carry on a turn of somebody, unless others go first; whether it was."""
        key = due.lane.key
        if not self._slots.begin(key, person):
            return False  # it is woken when it may go on
        try:
            if not self._is_suspect(due):
                await self._carry_on(holder, due)
            elif self._suspect is None:
                await self._carry_on_alone(holder, due)
            else:
                return False  # it is looked again in a moment
        finally:
            self._wake_all(self._slots.end(key))
        return True

    async def _carry_on_alone(self, holder: LaneHolder, due: CutOff) -> None:
        """One suspect at a time: of several that ran when the gateway died, only the one that it dies of is counted."""
        self._suspect = due.turn.id
        try:
            await self._carry_on(holder, due)
        finally:
            self._suspect = None

    async def _carry_on(self, holder: LaneHolder, due: CutOff) -> None:
        _log.info("Resuming a turn that was cut off (attempt %d)", due.turn.attempt + 1)
        begun = await self._door.write(take_up_answer, due.lane, due.turn, self._presence.run.id, holder.claim)
        await holder.now_holds(begun.lease)
        await self._run(holder, begun, await self._door.read(lambda tx: tx.inbox.of_turn(due.turn.id)))

    def _heard(self, tx: Transaction, turn: Turn) -> tuple[Heard, str]:
        """Whether those whom a turn answers may still speak, and can be reached; and who they are."""
        entries = tx.inbox.of_turn(turn.id)
        if not entries:
            return Heard.NOW, OWNER
        person = entries[0].principal
        if not any(self._circle.may_speak(tx, entry) for entry in entries):
            return Heard.NOBODY, person
        goes = entries[-1].destination
        is_connected = self._circle.is_connected(tx, goes.platform, goes.account or "")
        return Heard.NOW if is_connected else Heard.LATER, person

    def _find_stop(self, tx: Transaction, key: str) -> Entry | None:
        """A message that waits in a lane and for which nothing before it should be answered."""
        return next((entry for entry in tx.inbox.waiting(key) if self._clerk.is_clearing(entry)), None)

    async def _never_mind(self, holder: LaneHolder, turn: Turn, by: int) -> None:
        outcome = Outcome(turn, TurnState.STOPPED, "", time.time(), STOPPED_BY.format(by))
        await self._door.write(turning.end_turn, holder.lease, outcome, None, self._ending)

    async def _run(self, holder: LaneHolder, begun: Begun, entries: Sequence[Entry]) -> None:
        key, turn = begun.opened.lane.key, begun.situation.turn
        last = entries[-1] if entries else None
        if last is not None and last.id < (by := self._stops.get(key, 0)):
            await self._never_mind(holder, turn, by)  # somebody asked for that before it was there
            self._tell_ended(begun.opened.lane, turn)
            return
        if self._is_leaving:
            return  # nobody would be there for its end
        opened = begun.opened
        with at_work(Work(key, turn.session_id, turn.id, _platform(opened.lane), opened.session.agent)) as work:
            await self._run_to_its_end(holder, begun, last, work)
        await self._staff.ended(opened.session)

    async def _run_to_its_end(self, holder: LaneHolder, begun: Begun, last: Entry | None, work: Work) -> None:
        key, turn = work.lane_key, begun.situation.turn
        ears = LaneEars(self._door, holder, turn.id, hears_all=last is not None and self._is_steered(begun, last))
        runner = TurnRunner(
            self._door,
            holder,
            Late(partial(self._staff.agent_for, begun.opened, begun.preferences)),
            self._staff.agrees(last) if last else _nobody_agrees,
            self._staff.compression(holder, begun.opened),
            self._ending,
            is_shared=is_shared(parse_key(key, self._house.rules.keys.main_key)),
            hides_details=last is not None and not last.is_for_owner_alone,
        )
        self._running[key] = Running(runner, ears, turn.id)
        limit = asyncio.get_running_loop().call_later(self._staff.turn_seconds, self._time_out, key)
        log, trouble = TurnLog(), None
        try:
            with (
                self._staff.seen(work) as see,
                self._staff.showing(last, turn.id) if last else nullcontext(_nothing_shown) as tell,
                self._streams.showing(last, begun, holder.lease) as show,
            ):
                await runner.run(begun.lease, begun.situation, _all(tell, show, see, log.see), begun.preferences, ears)
        except (LeaseLost, StoreError) as error:
            self._outcomes.pop(turn.id, None)  # it is not certain that it came to that
            trouble = str(error)
            if is_storage_fault(error):
                self._note_store_failure(key)
            raise
        except Exception:  # noqa: BLE001 - of an agent anything may come, and one lane is not the others
            _log.exception("The agent raised an error; its sender was told that the answer failed")
        finally:
            limit.cancel()
            del self._running[key]
            self._ends.pop(turn.id, None)
            log.end(self._outcomes.get(turn.id), trouble)
            self._tell_ended(begun.opened.lane, turn, is_logged=True)
            self._sent()

    def _is_steered(self, begun: Begun, last: Entry) -> bool:
        """Whether what is said while a turn runs is for that turn."""
        return mode_in(self._staff.queue(last.platform), begun.opened.session.model_config) is QueueMode.STEER

    def _ending(self, tx: Transaction, outcome: Outcome) -> None:
        """What ends with a turn, in its transaction."""
        if outcome.turn.id in self._ends:
            state, reason = self._ends[outcome.turn.id]
            outcome = outcome._replace(state=state, reason=reason, public_reason=None)
        end_answer(tx, outcome, self._house.posting)
        self._outcomes[outcome.turn.id] = outcome

    def _tell_ended(self, lane: Lane, turn: Turn, *, is_logged: bool = False) -> None:
        """Of a turn that has come to its end, and is not left for another life."""
        outcome = self._outcomes.pop(turn.id, None)
        if outcome is None:
            return
        if not is_logged:
            with logged_for(lane.key, turn.session_id):
                log_end(outcome)
        self._tell(TurnEnded(lane.key, turn.session_id, turn.id, _platform(lane), outcome.state))

    def _tell_opened(self, opened: Opened) -> None:
        key, session = opened.lane.key, opened.session
        match opened.decision:
            case Start():
                self._tell(SessionStarted(key, session.id, session.principal))
            case Reset(reason):
                self._tell(SessionReset(key, session.id, session.principal, session.reset_from, reason))

    def _time_out(self, key: str) -> None:
        seconds = self._staff.turn_seconds
        self._end(key, TurnState.FAILED, f"The answer took longer than {seconds:g} seconds and was stopped.")

    def _end(self, key: str, state: TurnState, reason: str) -> bool:
        running = self._running.get(key)
        if running is None or not running.runner.is_running:
            return False
        self._ends[running.turn_id] = (state, reason)
        running.runner.stop()
        return True

    # Transactions

    def _bury(self, tx: Transaction, holder: LaneHolder, due: CutOff, outcome: Outcome) -> None:
        turning.end_turn(tx, holder.lease, outcome)
        bury_answer(tx, due.lane, outcome, self._house.posting)
        self._outcomes[outcome.turn.id] = outcome

    def _dropping(self, tx: Transaction, outcome: Outcome) -> None:
        drop_answer(tx, outcome)
        self._outcomes[outcome.turn.id] = outcome

    def _forget(self, tx: Transaction, holder: LaneHolder, entries: Sequence[Entry]) -> None:
        hold(tx, holder.lease)
        now = time.time()
        tx.inbox.change(entries, state=str(InboxState.DEAD), reason=FORGOTTEN, ended_at=now)
        last = entries[-1]
        shown = draft_of(tx, last.turn_id)  # then that message says so
        name = f"{last.turn_id}:reply" if shown else f"{last.id}:forgotten"
        envelope = envelope_of(last, name, last.session_id, last.turn_id)
        post(tx, self._house.posting, envelope, f"{FORGOTTEN} Ask again.", What.NOTICE, now)

    def _bury_first(self, tx: Transaction, holder: LaneHolder, key: str, reason: str) -> None:
        hold(tx, holder.lease)
        for entry in tx.inbox.waiting(key, 1):
            told = reason if entry.is_for_owner_alone else UNBEGUN_TOLD
            tx.inbox.change([entry], state=str(InboxState.DEAD), reason=told, ended_at=time.time())
            envelope = envelope_of(entry, f"{entry.id}:unbegun", entry.session_id)
            post(tx, self._house.posting, envelope, UNBEGUN_TOLD, What.NOTICE, time.time())

    def _tell_busy(self, tx: Transaction, entry: Entry, reason: str) -> None:
        text = f"Your message waits. {reason}"
        post(tx, self._house.posting, envelope_of(entry, f"{entry.id}:waits"), text, What.NOTICE, time.time())


def _nobody_works(_key: str) -> None: ...


async def _nobody_agrees(_call: object, _risk: str) -> bool:
    return False


def _nothing_shown(_event: Event) -> None: ...


def _platform(lane: Lane) -> str:
    return lane.origin.platform if lane.origin else ""


def _all(*those: Emit) -> Emit:
    def emit(event: Event) -> None:
        for one in those:
            one(event)

    return emit
