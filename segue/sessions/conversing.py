"""Conversations that programs have: begun with or without words, gone on with from any answer, read and removed.

What a program puts down without wanting an answer is a message like any other. Nothing is put down while an answer is
being written, because a turn owns the end of its conversation.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.errors import InUse, NotFound, SessionNotFound
from segue.core.ids import LaneKey, SessionId
from segue.core.inbox import Entry
from segue.core.keys import API, Task, build_key, parse_key
from segue.core.lifecycle import Lane, Phase, reason_after
from segue.core.messages import SUMMARY_SEQ, Draft, Message, State
from segue.core.scope import Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import API_SERVER, SessionSource
from segue.core.turns import Turn
from segue.ports.store import Transaction
from segue.sessions.branching import branch_session
from segue.sessions.discarding import discard_conversation
from segue.sessions.finding import find_parts, find_tip, get_session
from segue.sessions.opening import begin_session, new_lane, reset_lane, save_lane, standing_lane
from segue.sessions.recording import append_message
from segue.sessions.responding import is_within

BUSY = "An answer is being written in this conversation; wait for it, or cancel it."


class Room(NamedTuple):
    """Where a program has a conversation: with whom, and under which name."""

    agent: str
    source: SessionSource
    principal: Principal

    @property
    def key(self) -> LaneKey:
        return build_key(self.place)

    @property
    def place(self) -> Task:
        return Task(API, (self.source.participant, self.source.chat_id), self.agent)


class Footing(NamedTuple):
    """A lane in which a program can speak, and the session that it is in."""

    lane: Lane
    session_id: str
    is_new: bool = False


def stand_in(tx: Transaction, room: Room, fresh_id: str, now: datetime) -> Footing:
    """The lane of a conversation, with a session in it; both are made when they are not there."""
    lane = tx.lanes.find(room.key)
    if lane is not None and lane.session_id is not None and lane.phase is not Phase.SUSPENDED:
        return Footing(lane, lane.session_id)
    if lane is not None and lane.session_id is not None:
        lane = reset_lane(tx, lane, fresh_id, reason_after(lane.phase_reason), now, who=lane.principal)
    else:
        lane = lane or new_lane(room.place, room.source, Scope(room.principal), now)
        lane = begin_session(tx, lane, fresh_id, now, agent=room.agent)
    return Footing(save_lane(tx, lane), fresh_id, is_new=True)


def is_anothers(tx: Transaction, room: Room) -> bool:
    """Whether a conversation of this name is somebody else's, who had a program of this name before."""
    lane = tx.lanes.find(room.key)
    return lane is not None and lane.principal != room.principal


def hand_over(tx: Transaction, room: Room, now: datetime) -> None:
    """Let somebody have a lane that was another's, whose session ends; done by whoever sees both."""
    if is_anothers(tx, room) and (lane := standing_lane(tx, room.key, Scope(room.principal), now)):
        save_lane(tx, lane)


def put_down(tx: Transaction, footing: Footing, drafts: Sequence[Draft]) -> list[Message]:
    """Add messages that nobody answers, at the end of a conversation in which nothing is being answered."""
    if drafts and tx.inbox.open_in(footing.lane.key):
        raise InUse(BUSY)
    seqs = [append_message(tx, footing.session_id, one).seq for one in drafts]
    found = [tx.messages.find_seq(footing.session_id, seq) for seq in seqs]
    return [one for one in found if one is not None]


def go_on_after(tx: Transaction, entry: Entry, room: Room, fresh_id: str, now: datetime) -> Footing:
    """Where to speak so that a message and its answer are the last that was said.

    That is their own lane, unless the conversation has gone on since or another agent is to answer: then it is a branch
    that ends with them, in a lane of its own.
    """
    lane = tx.lanes.find(entry.lane_key)
    agent = parse_key(entry.lane_key).agent
    if lane is not None and agent == room.agent and not _has_gone_on(tx, entry, lane):
        return Footing(lane, lane.session_id or "")
    turn = tx.turns.find(entry.turn_id) if entry.turn_id else None
    if turn is None or entry.is_open:
        raise InUse(BUSY) if entry.is_open else NotFound("Nothing was answered there, so nothing can follow it.")
    branch_session(
        tx, turn.session_id, branch_id=fresh_id, source=API_SERVER, now=now.timestamp(), upto=_last_seq(tx, turn)
    )
    if agent != room.agent:  # it is told who it is when it is asked
        tx.sessions.change(fresh_id, agent=room.agent, system_prompt=None, model_config=None)
    tx.sessions.change(fresh_id, lane_key=room.key, principal=room.principal, audience="")
    lane = new_lane(room.place, room.source, Scope(room.principal), now)
    return Footing(save_lane(tx, lane._replace(session_id=SessionId(fresh_id))), fresh_id, is_new=True)


def _has_gone_on(tx: Transaction, entry: Entry, lane: Lane) -> bool:
    """Whether something was said in a lane behind a message and its answer."""
    if any(one.id != entry.id for one in tx.inbox.open_in(lane.key)):
        return True
    turn = tx.turns.find(entry.turn_id) if entry.turn_id else None
    if turn is None or lane.session_id is None:
        return not entry.is_open
    if lane.session_id == turn.session_id:
        last = tx.messages.last(turn.session_id, 1)
        after = tx.turns.next_after(turn)
        return after is not None or not last or not is_within(turn, after, last[0])
    if find_tip(tx, turn.session_id) != lane.session_id:
        return True
    last = tx.messages.last(lane.session_id, 1)  # a summary was made since, and nothing else
    return not last or last[0].seq != SUMMARY_SEQ


def _last_seq(tx: Transaction, turn: Turn) -> int:
    after = tx.turns.next_after(turn)
    rows = tx.messages.of(turn.session_id, after=turn.first_seq - 1)
    return max((row.seq for row in rows if is_within(turn, after, row)), default=turn.first_seq)


def stretches(tx: Transaction, session_id: str) -> list[Session]:
    """A conversation from one of its sessions on: what was compressed, and what began anew in the same lane."""
    found: list[Session] = []
    seen: set[str] = set()
    current: str | None = get_session(tx, session_id).id
    while current is not None and current not in seen:
        parts = [part for part in find_parts(tx, current) if part.id not in seen]
        found += parts
        seen |= {part.id for part in parts}
        current = _begun_after(tx, found[-1]) if found else None
    return found


def _begun_after(tx: Transaction, session: Session) -> str | None:
    if session.lane_key is None or session.is_open:
        return None
    resets = [row.to_session for row in tx.lanes.resets(session.lane_key) if row.from_session == session.id]
    return resets[-1] if resets and tx.sessions.find(resets[-1]) else None


def footing_in(tx: Transaction, session_id: str) -> Footing:
    """Where a conversation goes on now."""
    last = stretches(tx, session_id)[-1]
    lane = tx.lanes.find_by_session(last.id)
    if lane is None:
        raise NotFound(f"The conversation {session_id} is not open any more.")
    return Footing(lane, last.id)


def move_to(tx: Transaction, footing: Footing, room: Room, now: datetime) -> Footing | None:
    """Let another agent have a conversation in which nobody has answered yet; nothing when somebody has."""
    session = get_session(tx, footing.session_id)
    if session.system_prompt is not None or tx.inbox.open_in(footing.lane.key):
        return None
    tx.lanes.delete(footing.lane.key)
    tx.sessions.change(session.id, lane_key=room.key, agent=room.agent)
    lane = new_lane(room.place, room.source, Scope(room.principal), now)._replace(session_id=SessionId(session.id))
    return Footing(save_lane(tx, lane), session.id)


def silence(tx: Transaction, session_id: str, seq: int) -> None:
    """Take one message out of a conversation; it is kept as undone."""
    session = get_session(tx, session_id)
    if session.lane_key and tx.inbox.open_in(session.lane_key):
        raise InUse(BUSY)
    if not tx.messages.mark(session_id, seq, State.LIVE, State.UNDONE, seq):
        raise NotFound("There is no such item.")
    tx.sessions.recount(session_id)


def remove(tx: Transaction, session_id: str, now: float) -> None:
    """Move a whole conversation into the trash. Nothing is removed from under an answer that is being written."""
    parts = stretches(tx, session_id)
    if any(_is_busy(tx, part) for part in parts):
        raise InUse(BUSY)
    for name in _one_of_each(tx, parts):
        discard_conversation(tx, name, now)


def _is_busy(tx: Transaction, session: Session) -> bool:
    return session.lane_key is not None and bool(tx.inbox.open_in(session.lane_key))


def _one_of_each(tx: Transaction, parts: Iterable[Session]) -> list[str]:
    """The first of each run of parts that goes into the trash together."""
    found: list[str] = []
    gone: set[str] = set()
    for part in parts:
        if part.id not in gone:
            found.append(part.id)
            gone |= {one.id for one in find_parts(tx, part.id)}
    return found


def get_part(tx: Transaction, session_id: str, wanted: str) -> Session:
    """A session, if it is a part of a conversation."""
    for part in stretches(tx, session_id):
        if part.id == wanted:
            return part
    raise SessionNotFound(wanted)
