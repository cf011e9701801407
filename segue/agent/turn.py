"""One turn, from a person's words to the last event: whatever the agent yields is stored before it goes on."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from segue.agent.compression import Compression
from segue.agent.door import Door
from segue.agent.ears import Ears, Hears
from segue.agent.footing import Footing
from segue.agent.holding import Holds
from segue.agent.recorder import Recorder
from segue.core.compaction import Need
from segue.core.events import Done, Event, Failed, Note, ToolCall
from segue.core.leases import Lease
from segue.core.messages import Draft, Said, Spot
from segue.core.preferences import Preferences
from segue.core.turns import Turn, TurnState
from segue.ports.agent import Agent, Space, Task
from segue.ports.failpoints import Point, reached
from segue.ports.store import Transaction
from segue.sessions import turning
from segue.sessions.delegating import end_left_subagents
from segue.sessions.turning import Ending, Situation, nothing_else

Emit = Callable[[Event], None]
Agrees = Callable[[ToolCall, str], Awaitable[bool]]
Opening = Callable[[Transaction], tuple[str, Lease]]
"""Makes a session ours, in the transaction that goes on with it."""


def _nobody_asks(_session_id: str) -> None: ...


class TurnRunner:
    """Runs turns, one after another."""

    def __init__(
        self,
        door: Door,
        holder: Holds,
        agent: Agent,
        agrees: Agrees,
        compression: Compression | None = None,
        ending: Ending = nothing_else,
        *,
        is_shared: bool = False,
        hides_details: bool = False,
    ) -> None:
        self._door = door
        self._holder = holder
        self._agent = agent
        self._agrees = agrees
        self._compression = compression
        self._ending = ending
        self._is_shared = is_shared
        self._hides_details = hides_details
        self._ears: Ears | None = None
        self._driving: asyncio.Task[None] | None = None
        self._is_abandoned = False

    async def answer(
        self,
        opening: Opening,
        message: Draft | None,
        emit: Emit,
        wanted: Preferences,
        *,
        undo_from: Spot | None = None,
        opened: Callable[[str], None] = _nobody_asks,
    ) -> bool:
        """Store what a person said and let the agent answer; None answers what stands there.

        `opened` is told the session as soon as it is there for certain. Whether the turn came to its own end.
        """
        reached(Point.BEFORE_TURN_OPENS)
        turn_id, now = uuid.uuid4().hex, time.time()

        def work(tx: Transaction) -> tuple[Lease, Situation]:
            session_id, lease = opening(tx)
            end_left_subagents(tx, session_id, now)
            turn = Turn(turn_id, session_id, lease.owner, TurnState.RUNNING, 1, 0, now)
            messages = [message] if message else []
            return lease, turning.open_turn(tx, lease, turn, messages, undo_from=undo_from)

        lease, situation = await self._door.write(work)
        opened(situation.turn.session_id)
        await self._holder.now_holds(lease)
        reached(Point.AFTER_TURN_OPENS)
        return await self.run(lease, situation, emit, wanted)

    async def carry_on(self, opening: Opening, broken: Turn, emit: Emit, wanted: Preferences) -> bool:
        """Bring a turn to its end that was cut off."""
        is_over = broken.attempt >= turning.MOST_ATTEMPTS

        def work(tx: Transaction) -> tuple[Lease, Situation | None]:
            session_id, lease = opening(tx)
            end_left_subagents(tx, session_id, time.time())
            if is_over:
                reason = f"It was cut off {broken.attempt} times."
                turning.give_up_turn(tx, lease, broken, time.time(), reason)
                return lease, None
            return lease, turning.take_up_turn(tx, lease, broken, lease.owner)

        lease, situation = await self._door.write(work)
        await self._holder.now_holds(lease)
        if situation is None:
            sentence = f"The last answer was cut off {broken.attempt} times and is given up; ask again."
            emit(Failed(sentence, sentence))
            return False
        return await self.run(lease, situation, emit, wanted)

    @property
    def is_running(self) -> bool:
        return self._driving is not None and not self._driving.done()

    def steer(self, text: str) -> bool:
        """Say something to the agent while it works; it hears it between two steps. False when no turn runs."""
        return self._ears is not None and self._ears.hear(text)

    def stop(self) -> None:
        """Let go of the turn at once."""
        if self._driving is not None:
            self._driving.cancel()

    def abandon(self) -> None:
        """Let go of the turn at once, and leave it open for whoever carries it on."""
        self._is_abandoned = True
        self.stop()

    async def run(
        self, lease: Lease, situation: Situation, emit: Emit, wanted: Preferences, ears: Hears | None = None
    ) -> bool:
        """Let the agent work on a turn that is open; whether it came to its own end."""
        footing = Footing(lease, situation.turn)
        if ears is None:
            ears = self._ears = Ears(self._door, footing, situation.heard)
        task = Task(
            session_id=situation.turn.session_id,
            system=situation.system,
            view=situation.view,
            pending=situation.pending,
            model=wanted.model,
            effort=wanted.effort,
            steered=ears.take,
            agrees=self._agrees,
            is_shared=self._is_shared,
            hides_details=self._hides_details,
        )
        task = task._replace(space=self._space(footing, situation, task, emit))
        record = Recorder(self._door, footing, situation, ears, self._ending)
        self._driving = asyncio.create_task(self._drive(record, task, emit))
        try:
            await _end_of(self._driving)
        finally:
            await ears.close()
            if self._driving.cancelled() and not self._is_abandoned:
                for line in await record.stopped():
                    emit(Note(unsaid := f"Not said any more: {line}", unsaid))
                emit(Done(was_stopped=True))
        if self._driving.cancelled():
            return False
        if error := self._driving.exception():
            await record.failed(error)
            raise error
        return not record.has_failed

    def _space(self, footing: Footing, situation: Situation, task: Task, emit: Emit) -> Space:
        compression = self._compression
        if compression is None:
            return Space(situation.window, situation.counted)

        async def make(need: Need) -> Sequence[Said] | None:
            return await compression.make_room(footing, need, task, self._agent, emit)

        return Space(situation.window, situation.counted, compression.rules.threshold, make)

    async def _drive(self, record: "Recorder", task: Task, emit: Emit) -> None:
        async with aclosing(self._agent.run(task)) as events:
            async for event in events:
                await record.event(event)
                emit(event)
        await record.ended()
        emit(Done())


async def _end_of(driving: "asyncio.Task[None]") -> None:
    """Wait for it. Whoever does not want to wait any longer ends it."""
    try:
        await asyncio.wait({driving})
    except asyncio.CancelledError:
        driving.cancel()
        await asyncio.wait({driving})
        raise
