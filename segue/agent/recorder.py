"""A turn as rows: whatever its agent yields is stored before the agent goes on."""

import time
from contextlib import suppress

from segue.agent.door import Door
from segue.agent.ears import Hears
from segue.agent.footing import Footing
from segue.core.errors import LeaseLost, SegueError, StoreError, is_storage_fault
from segue.core.events import (
    CarryOn,
    Event,
    Failed,
    ModelCalled,
    Note,
    Reasoning,
    Reply,
    Steered,
    Text,
    ToolCall,
    ToolFinished,
    ToolStarted,
)
from segue.core.turns import TurnState
from segue.ports.failpoints import Point, reached
from segue.sessions import turning
from segue.sessions.turning import Ending, LastReply, Outcome, Situation, nothing_else

STOPPED = "The user stopped this before it came to its end."


class Recorder:
    """What a turn has come to, row by row."""

    def __init__(
        self, door: Door, footing: Footing, situation: Situation, ears: Hears, ending: Ending = nothing_else
    ) -> None:
        self._door = door
        self._on = footing
        self._steps = situation.steps
        self._model_step: int | None = None
        self._wanted = set(situation.pending)
        self._open: dict[str, tuple[int, ToolCall]] = {}
        self._pieces: list[str] = []
        self._failure: Failed | None = None
        self._last: LastReply | None = None
        self._said = _last_words(situation)
        self._ending = ending
        self._ears = ears

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    async def event(self, event: Event) -> None:
        """Store what an event says, if it says something that lasts."""
        if self._last is not None and not isinstance(event, Note | Reasoning | CarryOn):
            await self._store_last()  # it was not the last after all
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
                await self._ears.acknowledge(text)
            case Failed():
                self._failure = event
                await self._model_failed()

    async def ended(self) -> None:
        """The agent has said all it had to say."""
        if self._pieces:
            await self._replied(Reply("".join(self._pieces), finish_reason="error" if self._failure else "stop"))
        reached(Point.BEFORE_TURN_ENDS)
        await self._end(TurnState.FAILED if self._failure else TurnState.DONE, self._failure)
        reached(Point.AFTER_TURN_ENDS)

    async def stopped(self) -> list[str]:
        """Somebody asked to stop: what was said so far is kept, and whatever ran is answered for.

        What people said meanwhile and the agent has not heard is said no more; what that was.
        """
        await self._keep_what_there_is("stopped")
        await self._end(TurnState.STOPPED)
        unheard = await self._door.write(turning.cancel_heard, self._on.lease, self._on.turn.session_id)
        return [line.content for line in unheard]

    async def failed(self, error: BaseException) -> None:
        """Something went wrong that the agent did not expect."""
        if isinstance(error, LeaseLost):
            return  # whoever has the session now decides what becomes of it
        if is_storage_fault(error):
            return  # the turn stays open: it goes on once the store works again
        failure = Failed(str(error), error.public) if isinstance(error, SegueError) else Failed(type(error).__name__)
        with suppress(StoreError):  # the first error is the one to hear about, and the next turn closes this one
            await self._keep_what_there_is("error")
            await self._end(TurnState.FAILED, failure)

    async def _keep_what_there_is(self, finish_reason: str) -> None:
        if self._pieces:
            await self._replied(Reply("".join(self._pieces), finish_reason=finish_reason))
        await self._model_failed()
        for _, call in list(self._open.values()):
            await self._tool_ends(ToolFinished(call, STOPPED, is_error=True))

    async def _end(self, state: TurnState, failure: Failed | None = None) -> None:
        last, self._last = self._last, None
        outcome = Outcome(self._on.turn, state, self._said, time.time())
        if failure is not None:
            outcome = outcome._replace(reason=failure.sentence, public_reason=failure.public)
        await self._door.write(turning.end_turn, self._on.lease, outcome, last, self._ending)

    async def _model_failed(self) -> None:
        """The model that was asked last has not answered."""
        if self._model_step is not None:
            number, self._model_step = self._model_step, None
            await self._door.write(turning.fail_step, self._on.lease, self._on.turn, number, time.time())

    async def _model_begins(self, event: ModelCalled) -> None:
        await self._model_failed()
        reached(Point.BEFORE_MODEL_BEGINS)
        number = self._next()
        name = f"{event.provider}/{event.model}"
        await self._door.write(turning.begin_model_step, self._on.lease, self._on.turn, number, name, time.time())
        self._model_step = number
        self._pieces.clear()
        reached(Point.AFTER_MODEL_BEGINS)

    async def _replied(self, reply: Reply) -> None:
        """An answer is stored at once if tools follow, otherwise with the end of the turn."""
        number, self._model_step = self._model_step, None
        self._pieces.clear()
        self._wanted = {call.id for call in reply.calls}
        self._said = reply.text or self._said
        self._last = LastReply(number, reply)
        if reply.calls:
            await self._store_last()

    async def _store_last(self) -> None:
        assert self._last is not None
        reached(Point.BEFORE_REPLY_IS_STORED)
        last, self._last = self._last, None  # who is stopped now has it stored all the same
        number, reply = last
        try:
            await self._door.write(turning.record_reply, self._on.lease, self._on.turn, number, reply, time.time())
        except StoreError:
            self._last = last
            raise
        reached(Point.AFTER_REPLY_IS_STORED)

    async def _tool_begins(self, event: ToolStarted) -> None:
        if event.call.id not in self._wanted:  # an agent that does not say what its model answered
            await self._replied(Reply("".join(self._pieces), (event.call,), finish_reason="tool_calls"))
        reached(Point.BEFORE_TOOL_BEGINS)
        number = self._next()
        self._open[event.call.id] = (number, event.call)
        await self._door.write(
            turning.begin_tool_step,
            self._on.lease,
            self._on.turn,
            number,
            event.call,
            is_idempotent=event.is_idempotent,
            now=time.time(),
        )
        reached(Point.AFTER_TOOL_BEGINS)

    async def _tool_ends(self, event: ToolFinished) -> None:
        reached(Point.BEFORE_RESULT_IS_STORED)
        number, _ = self._open.pop(event.call.id, (None, None))
        await self._door.write(turning.record_result, self._on.lease, self._on.turn, number, event, time.time())
        reached(Point.AFTER_RESULT_IS_STORED)

    def _next(self) -> int:
        self._steps += 1
        return self._steps


def _last_words(situation: Situation) -> str:
    """What an agent said last that was cut off before it could end."""
    last = situation.view[-1] if situation.view else None
    return (last.content or "") if last is not None and last.role == "assistant" else ""
