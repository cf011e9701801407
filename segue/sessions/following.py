"""A conversation is read on from where somebody stopped, also when it goes on in another session.

A cursor names a message for ever: its session, and its place there. Whoever has one misses nothing that was said since.
"""

from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.messages import LARGEST_SEQ, Message, Spot
from segue.ports.store import Transaction
from segue.sessions.finding import get_session

MAX_CHARS = 2_000_000
"""Of the messages that are read at once: those that have more are read in several steps."""
_FIRST_STEP = 4
BEGINNING = -1
"""Before the first message of a session."""


class Followed(NamedTuple):
    """What came behind a cursor, and the cursor behind that."""

    messages: list[Message]
    cursor: Spot
    is_elsewhere: bool = False
    """Whether the conversation goes on in the session of the cursor from here on."""


def cursor_text(cursor: Spot) -> str:
    return f"{cursor.session_id}:{cursor.seq}"


def parse_cursor(text: str) -> Spot:
    session_id, _, seq = text.rpartition(":")
    if not session_id or not (seq.isascii() and seq.removeprefix("-").isdigit()) or len(seq) > len(str(LARGEST_SEQ)):
        raise Invalid(f"{text!r} is no cursor: use one that you were given.")
    return Spot(session_id, int(seq))


def end_of(tx: Transaction, session_id: str) -> Spot:
    """Behind everything that was said in a session so far."""
    get_session(tx, session_id)
    last = tx.messages.last(session_id, 1, every_state=True)
    return Spot(session_id, last[-1].seq if last else BEGINNING)


def follow(tx: Transaction, cursor: Spot, limit: int, lane_key: str | None = None) -> Followed:
    """What was said behind a cursor; when nothing more is, the session in which it goes on, if there is one."""
    messages = read_behind(tx, cursor, limit)
    if messages:
        return Followed(messages, Spot(cursor.session_id, messages[-1].seq))
    after = _next_session(tx, cursor.session_id, lane_key)
    return Followed([], Spot(after, BEGINNING), is_elsewhere=True) if after else Followed([], cursor)


def read_behind(tx: Transaction, cursor: Spot, limit: int) -> list[Message]:
    """The messages of a session behind a cursor: at least one, and no more than fit into `MAX_CHARS`."""
    found: list[Message] = []
    step, chars, after = _FIRST_STEP, 0, cursor.seq
    while len(found) < limit and chars < MAX_CHARS:
        batch = tx.messages.of(cursor.session_id, every_state=True, after=after, limit=min(step, limit - len(found)))
        if not batch:
            break
        found += batch
        chars += sum(map(size_of, batch))
        after = batch[-1].seq
        step = min(step * 4, max(_FIRST_STEP, MAX_CHARS * len(found) // max(chars, 1)))
    return _fitting(found)


def read_last(tx: Transaction, session_id: str, limit: int) -> list[Message]:
    """The last messages of a session: at least one, and no more than fit into `MAX_CHARS`."""
    count = min(_FIRST_STEP, limit)
    while True:
        found = tx.messages.last(session_id, count)
        if count >= limit or len(found) < count or sum(map(size_of, found)) >= MAX_CHARS:
            return _fitting(found[::-1])[::-1]
        count = min(count * 4, limit)


def size_of(message: Message) -> int:
    """How many characters a message has about, with its calls of tools."""
    return sum(len(part) for part in (message.content, message.content_json, message.tool_calls) if part)


def _fitting(messages: list[Message]) -> list[Message]:
    chars = 0
    for count, message in enumerate(messages):
        chars += size_of(message)
        if count and chars > MAX_CHARS:
            return messages[:count]
    return messages


def _next_session(tx: Transaction, session_id: str, lane_key: str | None) -> str | None:
    """The session that carries another one on: its summary, what a reset began, or whatever its lane is in now."""
    session = get_session(tx, session_id)
    if children := tx.sessions.children([session_id]):
        return children[-1].id
    if lane_key is None:
        return None
    resets = [row.to_session for row in tx.lanes.resets(lane_key) if row.from_session == session_id]
    if resets and not session.is_open:
        return resets[-1]
    lane = tx.lanes.find(lane_key)
    return lane.session_id if lane and lane.session_id and lane.session_id != session_id else None
