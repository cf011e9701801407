"""One turn, from a person's words to the last event: whatever the agent yields is stored before it goes on."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from segue.agent.door import Door
from segue.agent.holding import Holder
from segue.core.errors import LeaseLost, SegueError, StoreError
from segue.core.events import (
    Done,
    Event,
    Failed,
    ModelCalled,
    Reply,
    Steered,
    Text,
    ToolCall,
    ToolFinished,
    ToolStarted,
)
from segue.core.leases import Lease
from segue.core.messages import Draft, draft
from segue.core.preferences import Preferences
from segue.core.turns import Turn, TurnState
from segue.ports.agent import Agent, Task
from segue.ports.failpoints import Point, reached
from segue.ports.store import Transaction
from segue.sessions import turning
from segue.sessions.turning import Situation

Emit = Callable[[Event], None]
Agrees = Callable[[ToolCall, str], Awaitable[bool]]
Opening = Callable[[Transaction], tuple[str, Lease]]
"""Makes a session ours, in the transaction that goes on with it."""

STOPPED = "The user stopped this before it came to its end."


class TurnRunner:
    """Runs turns, one after another."""

    def __init__(self, door: Door, holder: Holder, agent: Agent, agrees: Agrees) -> None:
        self._door = door
        self._holder = holder
        self._agent = agent
        self._agrees = agrees
        self._heard: list[str] = []
        self._driving: asyncio.Task[None] | None = None

    async def answer(self, opening: Opening, message: Draft | None, emit: Emit, wanted: Preferences) -> None:
        """Store what a person said and let the agent answer; None answers what stands there."""
        reached(Point.BEFORE_TURN_OPENS)
        turn_id, now = uuid.uuid4().hex, time.time()

        def work(tx: Transaction) -> tuple[Lease, Situation]:
            session_id, lease = opening(tx)
            turn = Turn(turn_id, session_id, lease.owner, TurnState.RUNNING, 1, 0, now)
            return lease, turning.open_turn(tx, lease, turn, message)

        lease, situation = await self._door.write(work)
        await self._holder.now_holds(lease)
        reached(Point.AFTER_TURN_OPENS)
        await self._run(lease, situation, emit, wanted)

    async def carry_on(self, opening: Opening, broken: Turn, emit: Emit, wanted: Preferences) -> None:
        """Bring a turn to its end that was cut off."""
        is_over = broken.attempt >= turning.MOST_ATTEMPTS

        def work(tx: Transaction) -> tuple[Lease, Situation | None]:
            _, lease = opening(tx)
            if is_over:
                reason = f"It was cut off {broken.attempt} times."
                turning.give_up_turn(tx, lease, broken, time.time(), reason)
                return lease, None
            return lease, turning.take_up_turn(tx, lease, broken, lease.owner)

        lease, situation = await self._door.write(work)
        await self._holder.now_holds(lease)
        if situation is None:
            emit(Failed(f"The last answer was cut off {broken.attempt} times and is given up; ask again."))
            return
        await self._run(lease, situation, emit, wanted)

    def steer(self, text: str) -> None:
        """Say something to the agent while it works; it hears it between two steps."""
        self._heard.append(text)

    def stop(self) -> None:
        """Let go of the turn at once."""
        if self._driving is not None:
            self._driving.cancel()

    async def _run(self, lease: Lease, situation: Situation, emit: Emit, wanted: Preferences) -> None:
        task = Task(
            session_id=situation.turn.session_id,
            system=situation.system,
            view=situation.view,
            pending=situation.pending,
            model=wanted.model,
            effort=wanted.effort,
            steered=self._take_heard,
            agrees=self._agrees,
        )
        record = Recorder(self._door, lease, situation)
        self._driving = asyncio.create_task(self._drive(record, task, emit))
        await asyncio.wait({self._driving})
        if self._driving.cancelled():
            await record.stopped()
            emit(Done(was_stopped=True))
        elif error := self._driving.exception():
            await record.failed(error)
            raise error

    async def _drive(self, record: "Recorder", task: Task, emit: Emit) -> None:
        async with aclosing(self._agent.run(task)) as events:
            async for event in events:
                await record.event(event)
                emit(event)
        await record.ended()
        emit(Done())

    def _take_heard(self) -> list[str]:
        heard, self._heard = self._heard, []
        return heard


class Recorder:
    """What a turn has come to, row by row."""

    def __init__(self, door: Door, lease: Lease, situation: Situation) -> None:
        self._door = door
        self._lease = lease
        self._turn = situation.turn
        self._steps = situation.steps
        self._model_step: int | None = None
        self._wanted = set(situation.pending)
        self._open: dict[str, tuple[int, ToolCall]] = {}
        self._pieces: list[str] = []
        self._failure: str | None = None

    async def event(self, event: Event) -> None:
        """Store what an event says, if it says something that lasts."""
        match event:
            case ModelCalled():
                await self._model_begins(event)
            case Text(text):
                self._pieces.append(text)
            case Reply():
                await self._replied(event)
            case ToolStarted():
                await self._tool_begins(event)
            case ToolFinished():
                await self._tool_ends(event)
            case Steered(text):
                message = draft("user", text, time.time())
                await self._door.write(turning.record_speech, self._lease, self._turn, message)
            case Failed(sentence):
                self._failure = sentence

    async def ended(self) -> None:
        """The agent has said all it had to say."""
        if self._pieces:
            await self._replied(Reply("".join(self._pieces), finish_reason="error" if self._failure else "stop"))
        reached(Point.BEFORE_TURN_ENDS)
        state = TurnState.FAILED if self._failure else TurnState.DONE
        await self._door.write(turning.end_turn, self._lease, self._turn, state, time.time(), self._failure)
        reached(Point.AFTER_TURN_ENDS)

    async def stopped(self) -> None:
        """Somebody asked to stop: what was said so far is kept, and whatever ran is answered for."""
        await self._keep_what_there_is("stopped")
        await self._door.write(turning.end_turn, self._lease, self._turn, TurnState.STOPPED, time.time())

    async def failed(self, error: BaseException) -> None:
        """Something went wrong that the agent did not expect."""
        if isinstance(error, LeaseLost):
            return  # whoever has the session now decides what becomes of it
        reason = str(error) if isinstance(error, SegueError) else type(error).__name__
        with suppress(StoreError):  # the first error is the one to hear about, and the next turn closes this one
            await self._keep_what_there_is("error")
            await self._door.write(turning.end_turn, self._lease, self._turn, TurnState.FAILED, time.time(), reason)

    async def _keep_what_there_is(self, finish_reason: str) -> None:
        if self._pieces:
            await self._replied(Reply("".join(self._pieces), finish_reason=finish_reason))
        for _, call in list(self._open.values()):
            await self._tool_ends(ToolFinished(call, STOPPED, is_error=True))

    async def _model_begins(self, event: ModelCalled) -> None:
        reached(Point.BEFORE_MODEL_BEGINS)
        number = self._next()
        name = f"{event.provider}/{event.model}"
        await self._door.write(turning.begin_model_step, self._lease, self._turn, number, name, time.time())
        self._model_step = number
        self._pieces.clear()
        reached(Point.AFTER_MODEL_BEGINS)

    async def _replied(self, reply: Reply) -> None:
        reached(Point.BEFORE_REPLY_IS_STORED)
        number, self._model_step = self._model_step, None
        self._pieces.clear()
        self._wanted = {call.id for call in reply.calls}
        await self._door.write(turning.record_reply, self._lease, self._turn, number, reply, time.time())
        reached(Point.AFTER_REPLY_IS_STORED)

    async def _tool_begins(self, event: ToolStarted) -> None:
        if event.call.id not in self._wanted:  # an agent that does not say what its model answered
            await self._replied(Reply("".join(self._pieces), (event.call,), finish_reason="tool_calls"))
        reached(Point.BEFORE_TOOL_BEGINS)
        number = self._next()
        self._open[event.call.id] = (number, event.call)
        await self._door.write(
            turning.begin_tool_step,
            self._lease,
            self._turn,
            number,
            event.call,
            is_idempotent=event.is_idempotent,
            now=time.time(),
        )
        reached(Point.AFTER_TOOL_BEGINS)

    async def _tool_ends(self, event: ToolFinished) -> None:
        reached(Point.BEFORE_RESULT_IS_STORED)
        number, _ = self._open.pop(event.call.id, (None, None))
        await self._door.write(turning.record_result, self._lease, self._turn, number, event, time.time())
        reached(Point.AFTER_RESULT_IS_STORED)

    def _next(self) -> int:
        self._steps += 1
        return self._steps
