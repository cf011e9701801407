"""The messages table. Order is `seq`; a message is only ever added or marked, never rewritten."""

from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from typing import Any

from segue.core.errors import SessionNotFound
from segue.core.messages import LARGEST_SEQ, Draft, Message, Said, State
from segue.core.moments import SLOT
from segue.core.queueing import LEFT_OUT_PATTERN
from segue.core.scope import Scope
from segue.ports.store import Messages
from segue.storage.sql import ALL, Condition, Executor, Row, columns, placeholders, visible

_ALL = columns(Message._fields, "m")
_SAID = columns(Said._fields, "m")


@cache
def _insert(more: tuple[str, ...]) -> str:
    names = ("session_id", "seq", "state", *Draft._fields, *more)
    return f"INSERT INTO messages ({columns(names)}) VALUES ({placeholders(names)})"


@cache
def _append(more: tuple[str, ...]) -> str:
    """At the end of a session."""
    names = ("session_id", "state", *Draft._fields, *more)
    last = "SELECT COALESCE(MAX(seq), 0) + 1 FROM messages WHERE session_id = :session_id"
    return f"INSERT INTO messages (seq, {columns(names)}) VALUES (({last}), {placeholders(names)}) RETURNING id, seq"


_message: Callable[[Row], Message] = partial(tuple.__new__, Message)
_said: Callable[[Row], Said] = partial(tuple.__new__, Said)
"""`_make` without its look at the length, which the statement decides."""


class SqlMessages(Messages):
    def __init__(
        self, executor: Executor, scope: Scope, columns_to_find_by: Callable[[Draft], dict[str, str]] = lambda _: {}
    ) -> None:
        self._db = executor
        self._scope = scope
        self._columns_to_find_by = columns_to_find_by
        self.newest = 0
        """The id of the last message that was added here."""
        self.added = 0
        """How many were added."""

    def append(self, session_id: str, message: Draft) -> tuple[int, int]:
        self._check(session_id)
        place = {"session_id": session_id, "state": str(State.LIVE)}
        more = self._columns_to_find_by(message)
        ((self.newest, seq),) = self._db.rows(_append(tuple(more)), message._asdict() | place | more)
        self.added += 1
        return self.newest, seq

    def insert(self, session_id: str, seq: int, state: str, message: Draft) -> int:
        self._check(session_id)
        place = {"session_id": session_id, "seq": seq, "state": str(state)}
        more = self._columns_to_find_by(message)
        self.newest = self._db.insert(_insert(tuple(more)), message._asdict() | place | more)
        self.added += 1
        return self.newest

    def of(
        self,
        session_id: str,
        *,
        every_state: bool = False,
        after: int = -1,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Message]:
        where = self._in_session(session_id, every_state)
        where.add("m.seq > :after", after=after)
        window = {"limit": ALL if limit is None else limit, "offset": offset}
        sql = f"SELECT {_ALL} FROM messages m WHERE {where.sql} ORDER BY m.seq LIMIT :limit OFFSET :offset"
        return self._messages(sql, where.parameters | window)

    def said(self, session_id: str, after: int = -1) -> list[Said]:
        where = self._in_session(session_id, every_state=False)
        where.add("m.seq > :after", after=after)
        sql = f"SELECT {_SAID} FROM messages m WHERE {where.sql} ORDER BY m.seq"
        return list(map(_said, self._db.rows(sql, where.parameters)))

    def last(self, session_id: str, limit: int, *, every_state: bool = False) -> list[Message]:
        where = self._in_session(session_id, every_state)
        sql = f"SELECT {_ALL} FROM messages m WHERE {where.sql} ORDER BY m.seq DESC LIMIT :limit"
        return self._messages(sql, where.parameters | {"limit": limit})[::-1]

    def find(self, message_id: int) -> Message | None:
        where = self._readable()
        where.add("m.id = :message_id", message_id=message_id)
        return next(iter(self._messages(f"SELECT {_ALL} FROM messages m WHERE {where.sql}", where.parameters)), None)

    def find_seq(self, session_id: str, seq: int) -> Message | None:
        where = self._in_session(session_id, every_state=True)
        where.add("m.seq = :seq", seq=seq)
        return next(iter(self._messages(f"SELECT {_ALL} FROM messages m WHERE {where.sql}", where.parameters)), None)

    def last_user_seqs(self, session_id: str, limit: int | None = None) -> list[int]:
        where = self._in_session(session_id, every_state=False)
        where.add("m.role = 'user' AND m.seq > 0")
        where.add(
            "(m.platform_message_id IS NOT NULL OR m.content IS NULL OR m.content NOT LIKE :left_out)",
            left_out=LEFT_OUT_PATTERN,
        )
        sql = f"SELECT m.seq FROM messages m WHERE {where.sql} ORDER BY m.seq DESC LIMIT :limit"
        return [row[0] for row in self._db.rows(sql, where.parameters | {"limit": ALL if limit is None else limit})]

    def mark(self, session_id: str, first_seq: int, old: str, new: str, last_seq: int = LARGEST_SEQ) -> int:
        self._check(session_id)
        sql = """
            UPDATE messages SET state = :new
            WHERE session_id = :session_id AND seq >= :first_seq AND seq <= :last_seq AND state = :old"""
        parameters = {"session_id": session_id, "first_seq": first_seq, "last_seq": last_seq, "old": old, "new": new}
        return self._db.run(sql, parameters)

    def prune(self, session_id: str, seq: int, noted: str) -> bool:
        self._check(session_id)
        sql = "UPDATE messages SET pruned = :noted WHERE session_id = :session_id AND seq = :seq"
        return self._db.run(sql, {"session_id": session_id, "seq": seq, "noted": noted}) > 0

    def count(self, session_id: str | None = None) -> int:
        where = self._readable() if session_id is None else self._in_session(session_id, every_state=False)
        if session_id is None:
            where.add("m.state = :live", live=State.LIVE)
        return int(self._db.rows(f"SELECT count(*) FROM messages m WHERE {where.sql}", where.parameters)[0][0])

    def per_slot_since(self, moment: float, sources: Collection[str] = ()) -> Iterator[tuple[int, int]]:
        where = self._since(moment, sources)
        slot = f"CAST(floor(m.timestamp / {SLOT}) AS INTEGER)"
        sql = f"SELECT {slot}, count(*) FROM messages m WHERE {where.sql} GROUP BY 1 ORDER BY 1"
        return ((row[0], row[1]) for row in self._db.stream(sql, where.parameters))

    def calls_since(self, moment: float, sources: Collection[str] = ()) -> Iterator[str]:
        where = self._since(moment, sources)
        where.add("m.tool_calls IS NOT NULL")
        sql = f"SELECT m.tool_calls FROM messages m WHERE {where.sql}"
        return (row[0] for row in self._db.stream(sql, where.parameters))

    def _since(self, moment: float, sources: Collection[str]) -> Condition:
        """Live messages since a moment. Moments have no index, so they are found through sessions active since then."""
        active = visible(self._scope, "s")
        if sources:
            active.add_membership("s.source", sources)
        active.add("s.last_active_at >= :moment", moment=moment)
        where = Condition()
        where.add(f"m.session_id IN (SELECT s.id FROM sessions s WHERE {active.sql})", **active.parameters)
        where.add("m.timestamp >= :moment AND m.state = :live", live=State.LIVE)
        return where

    def _check(self, session_id: str) -> None:
        """Nobody writes into a session that they may not see."""
        if self._scope.sees_all:
            return
        where = visible(self._scope)
        where.add("id = :id", id=session_id)
        if not self._db.rows(f"SELECT 1 FROM sessions WHERE {where.sql}", where.parameters):
            raise SessionNotFound(session_id)

    def _messages(self, sql: str, parameters: dict[str, Any]) -> list[Message]:
        return list(map(_message, self._db.rows(sql, parameters)))

    def _in_session(self, session_id: str, every_state: bool) -> Condition:
        where = self._readable()
        where.add("m.session_id = :session_id", session_id=session_id)
        if not every_state:
            where.add("m.state = :live", live=State.LIVE)
        return where

    def _readable(self) -> Condition:
        where = Condition()
        if not self._scope.sees_all:
            seen = visible(self._scope, "s")
            where.add(f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.session_id AND {seen.sql})", **seen.parameters)
        return where
