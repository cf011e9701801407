"""Somebody follows a conversation: what was said is told once and in order, and what is being said as it is seen.

Whether it is theirs to follow is looked at each time, by the same rows that say what is told.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from segue.core.errors import LaneNotFound, SegueError, StoreError
from segue.core.events import Note, Text, ToolFinished, ToolStarted
from segue.core.messages import Spot
from segue.gateway.onlookers import Seen
from segue.ports.store import Transaction
from segue.sessions.following import BEGINNING, Followed, cursor_text, end_of, follow, parse_cursor
from segue.web.rpc.chat import SubscribeParams, lane_named, session_at
from segue.web.rpc.method import Caller
from segue.web.rpc.rows import message_row

MOST_MESSAGES = 100
LOOK_SECONDS = 0.5

Event = dict[str, Any]
Tell = Callable[[Event], Awaitable[None]]


class Look(NamedTuple):
    """What came behind a cursor, and whether the lane is one that whoever follows may see."""

    step: Followed | None
    is_theirs: bool


class Subscription:
    """One conversation that somebody follows."""

    def __init__(self, caller: Caller, where: SubscribeParams) -> None:
        self._caller = caller
        self._where = where
        self.lane_key = lane_named(caller, where)
        self.cursor: Spot | None = None

    async def begin(self) -> None:
        """Find where to begin; raises when that is nobody's, or somebody else's."""
        self.cursor = await self._caller.premises.read(self._caller.scope, self._beginning)
        if self.lane_key is None and self.cursor is not None:
            self.lane_key = await self._caller.premises.read(self._caller.scope, _lane_of, self.cursor.session_id)

    async def run(self, tell: Tell) -> None:
        """Tell what happens, until there is nothing more to follow."""
        seen: list[Seen] = []
        with self._caller.premises.onlookers.watching(self.lane_key or "") as onlooker:
            while True:
                try:
                    await self._look_and_tell(tell, seen)
                except StoreError:
                    pass  # it is looked again in a moment
                except SegueError as error:
                    reason = str(error) if self._caller.scope.sees_all else error.public
                    await tell({"kind": "ended", "reason": reason})
                    return
                seen = await onlooker.wait(LOOK_SECONDS)

    async def _look_and_tell(self, tell: Tell, seen: list[Seen]) -> None:
        """What is being said first, and then what was said: a message has all the words before it."""
        while True:
            look = await self._caller.premises.read(self._caller.scope, self._look)
            is_owners = self._caller.scope.sees_all
            for event in told_of(seen, is_owners=is_owners) if look.is_theirs else ():
                await tell(event)
            seen = []
            if look.step is None or not (look.step.messages or look.step.is_elsewhere):
                return
            for message in look.step.messages:
                await tell({"kind": "message", "message": message_row(message).model_dump(mode="json")})
                self.cursor = Spot(message.session_id, message.seq)
            if look.step.is_elsewhere:
                cursor = self.cursor = look.step.cursor
                await tell({"kind": "session", "session_id": cursor.session_id, "cursor": cursor_text(cursor)})

    def _beginning(self, tx: Transaction) -> Spot | None:
        where = self._where
        if where.lane_key is not None and tx.lanes.find(where.lane_key) is None:
            raise LaneNotFound(where.lane_key)
        if where.cursor is not None:
            begun = parse_cursor(where.cursor)
            follow(tx, begun, 1)  # it must be theirs to read
            return begun
        session_id = session_at(tx, where, self.lane_key)
        return end_of(tx, session_id) if session_id else None

    def _look(self, tx: Transaction) -> Look:
        lane = tx.lanes.find(self.lane_key) if self.lane_key else None
        if lane is None and self._where.lane_key is not None:
            raise LaneNotFound(self._where.lane_key)
        cursor = self.cursor
        if cursor is None and lane is not None and lane.session_id:
            cursor = Spot(lane.session_id, BEGINNING)
        is_of_lane = self._where.session_id is None
        step = follow(tx, cursor, MOST_MESSAGES, self.lane_key if is_of_lane else None) if cursor else None
        return Look(step, lane is not None)


def _lane_of(tx: Transaction, session_id: str) -> str | None:
    lane = tx.lanes.find_by_session(session_id)
    return lane.key if lane else None


def told_of(many: Iterable[Seen], *, is_owners: bool) -> list[Event]:
    """What is told of what happens in turns: words, which are not kept, with those next to them, and tools."""
    told: list[Event] = []
    for turn_id, event in many:
        match event:
            case Text(text) if told and (told[-1]["kind"], told[-1]["turn_id"]) == ("delta", turn_id):
                told[-1]["text"] += text
            case Text(text):
                told.append({"kind": "delta", "turn_id": turn_id, "text": text})
            case ToolStarted(call) | ToolFinished(call):
                state = "started" if isinstance(event, ToolStarted) else "finished"
                told.append({"kind": "tool", "turn_id": turn_id, "name": call.name, "state": state})
            case Note(text, public) if is_owners or public:
                told.append({"kind": "note", "turn_id": turn_id, "text": text if is_owners else public})
            case None:
                told.append({"kind": "turn", "turn_id": turn_id, "state": "ended"})
    return told
