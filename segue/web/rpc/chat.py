"""`chat.*`: what was said is read, something is said, and an answer is stopped."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from pydantic import Field, model_validator

from segue.core.credentials import Level
from segue.core.errors import Invalid, LaneNotFound
from segue.core.keys import DEFAULT_AGENT
from segue.core.messages import Message, Spot
from segue.ports.store import Transaction
from segue.sessions.finding import find_tip, get_id, get_session
from segue.sessions.following import MAX_CHARS, cursor_text, follow, parse_cursor, read_last, size_of
from segue.sessions.responding import Outcome
from segue.web.rpc.commands import carried_out, told
from segue.web.rpc.method import Caller, Closed, Count, Id, Key, Method, Text
from segue.web.rpc.rows import MessageRow, message_row
from segue.web.speaking import OUTSIDE, Speech, inbound_from, lane_of, outcome_of, say, wait_for

LONGEST_WAIT = 600


class Where(Closed):
    """Exactly one place."""

    session_id: Id | None = Field(None, description="The place, by its session.")
    lane_key: Key | None = Field(None, description="The place, by its lane, also one of people.")
    conversation: str | None = Field(
        None, min_length=1, max_length=200, description="The place, by a name of the token's own."
    )
    agent: str | None = Field(None, max_length=200, description="Whose conversation it is, when not that of main.")

    @model_validator(mode="after")
    def _one(self) -> "Where":
        if sum(one is not None for one in (self.session_id, self.lane_key, self.conversation)) != 1:
            raise ValueError("say exactly one of session_id, lane_key and conversation")
        return self


class HistoryParams(Where):
    cursor: str | None = Field(None, max_length=700, description="Behind which to begin; else the last messages.")
    limit: Count = 50


class History(Closed):
    messages: list[MessageRow]
    cursor: str | None = Field(description="Behind the last of them; null when nothing was said yet.")


class SendParams(Where):
    text: Text = Field(min_length=1, description="What is said, or a command such as /status.")
    idempotency_key: str | None = Field(
        None, min_length=1, max_length=200, description="With the same key it is the same message, said once."
    )
    wait_seconds: float = Field(0.0, ge=0, le=LONGEST_WAIT, description="For how long to wait for the answer.")


class Sent(Closed):
    message_id: str
    lane_key: str
    state: str = Field(description="waiting, running, done, cancelled, refused or dead.")
    session_id: str | None
    answer: str | None = Field(description="What was answered, if that is known by now.")
    reason: str | None = Field(description="Why it was not answered.")


class Aborted(Closed):
    text: str


class SubscribeParams(Where):
    cursor: str | None = Field(None, max_length=700, description="What came behind it is told first.")


class UnsubscribeParams(Closed):
    subscription: str = Field(max_length=100, description="The name that chat.subscribe told.")


class Unsubscribed(Closed):
    subscription: str


class Subscribed(Closed):
    subscription: str
    cursor: str | None
    lane_key: str | None


async def history(caller: Caller, params: HistoryParams) -> History:
    """What was said, the last messages or those behind a cursor; fewer than `limit` when they are very long."""
    lane_key = lane_named(caller, params)

    def work(tx: Transaction) -> list[Message]:
        if params.cursor is not None:
            return _behind(tx, parse_cursor(params.cursor), params.limit, lane_key)
        session_id = session_at(tx, params, lane_key)
        return read_last(tx, session_id, params.limit) if session_id else []

    found = await caller.premises.read(caller.scope, work)
    cursor = cursor_text(Spot(found[-1].session_id, found[-1].seq)) if found else params.cursor
    return History(messages=[message_row(one) for one in found], cursor=cursor)


async def send(caller: Caller, params: SendParams) -> Sent:
    """Say something to the agent. It is safe when this returns; with a key it is said once, however often sent."""
    premises = caller.premises
    async with AsyncExitStack() as stack:
        async with caller.order:
            lane_key = await _lane_at(caller, params)
            onlooker = stack.enter_context(premises.onlookers.watching(lane_key))
            entry = await say(premises, inbound_from(caller.credential, _speech(params, lane_key)))
        try:
            async with asyncio.timeout(params.wait_seconds or 0.001):
                outcome = await wait_for(premises, entry, onlooker)
        except TimeoutError:
            outcome = await outcome_of(premises, entry)
    return _sent(outcome)


async def abort(caller: Caller, params: Where) -> Aborted:
    """Stop the answer that is being written, and cancel what waits."""
    return Aborted(text=await carried_out(caller, await _lane_at(caller, params), "/stop"))


async def _lane_at(caller: Caller, where: Where) -> str:
    """The lane in which something is said."""
    if where.conversation is None:
        return await caller.premises.read(caller.scope, _standing_lane, where)
    return lane_named(caller, where) or ""


def _speech(params: SendParams, lane_key: str) -> Speech:
    return Speech(
        params.conversation or OUTSIDE,
        params.text,
        agent=params.agent if params.conversation else None,
        lane=None if params.conversation else lane_key,
        key=params.idempotency_key,
    )


async def unsubscribe(_caller: Caller, _params: UnsubscribeParams) -> Unsubscribed:
    """Be told nothing more of a conversation. Only a WebSocket is told anything."""
    raise Invalid("chat.unsubscribe needs the WebSocket that subscribed.")


async def subscribe(_caller: Caller, _params: SubscribeParams) -> Subscribed:
    """Be told what is said from now on, or behind a cursor. Only a WebSocket can be told."""
    raise Invalid("chat.subscribe needs a WebSocket: connect to /rpc with one.")


def lane_named(caller: Caller, where: Where) -> str | None:
    """The lane that is meant, as far as that can be said without looking."""
    if where.conversation is not None:
        agent = where.agent or DEFAULT_AGENT
        if agent != DEFAULT_AGENT and agent not in caller.premises.settings.agents:
            known = ", ".join([DEFAULT_AGENT, *caller.premises.settings.agents])
            raise Invalid(f"There is no agent {agent!r}; there are {known}.")
        return lane_of(caller.premises, caller.credential.client, where.conversation, agent)
    return where.lane_key


def session_at(tx: Transaction, where: Where, lane_key: str | None) -> str | None:
    """The session in which a place is now; nothing when nothing has been said there yet."""
    if where.session_id is not None:
        return find_tip(tx, get_id(tx, where.session_id))
    lane = tx.lanes.find(lane_key or "")
    if lane is None and where.conversation is None:
        raise LaneNotFound(lane_key or "")
    return lane.session_id if lane else None


def _behind(tx: Transaction, cursor: Spot, limit: int, lane_key: str | None) -> list[Message]:
    get_session(tx, cursor.session_id)
    found: list[Message] = []
    while len(found) < limit and sum(map(size_of, found)) < MAX_CHARS:
        step = follow(tx, cursor, limit - len(found), lane_key)
        if not step.messages and not step.is_elsewhere:
            break
        found += step.messages
        cursor = step.cursor
    return found


def _standing_lane(tx: Transaction, where: Where) -> str:
    """A lane that is there, and that whoever asks may see."""
    if where.lane_key is not None:
        if tx.lanes.find(where.lane_key) is None:
            raise LaneNotFound(where.lane_key)
        return where.lane_key
    tip = find_tip(tx, get_id(tx, where.session_id or ""))
    lane = tx.lanes.find_by_session(tip)
    if lane is None:
        raise Invalid(
            f"Session {tip} is in no lane. Name a conversation, and say `/resume {tip}` in it to go on there."
        )
    return lane.key


def _sent(outcome: Outcome) -> Sent:
    entry = outcome.entry
    return Sent(
        message_id=entry.message_id,
        lane_key=entry.lane_key,
        state=entry.state,
        session_id=entry.session_id,
        answer=told(outcome) if outcome.is_answered else None,
        reason=entry.reason if not outcome.is_answered else None,
    )


METHODS: tuple[Method[Any], ...] = (
    Method("chat.history", Level.READ, HistoryParams, History, history, is_long=True),
    Method("chat.send", Level.WRITE, SendParams, Sent, send),
    Method("chat.abort", Level.WRITE, Where, Aborted, abort),
    Method("chat.subscribe", Level.READ, SubscribeParams, Subscribed, subscribe),
    Method("chat.unsubscribe", Level.READ, UnsubscribeParams, Unsubscribed, unsubscribe),
)
