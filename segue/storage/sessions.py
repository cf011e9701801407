"""The sessions table and its tags."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from segue.core.errors import StoreError
from segue.core.insights import Conversation, Group, Talk
from segue.core.lineage import Link
from segue.core.messages import count_calls, first_line_of
from segue.core.scope import Scope
from segue.core.sessions import Listed, Session
from segue.core.usage import Billing, Usage
from segue.ports.store import Filter, Sessions, SourceCount, Titled
from segue.storage.sql import ALL, LAST_CHARACTER, Condition, Executor, batches, columns, placeholders, visible

_ALL = columns(Session._fields)
_LISTED = columns(Listed._fields, "s")
_RELATED = "EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.{} AND p.principal = s.principal)"
"""Nobody becomes a relative of somebody else's session by saying so."""
_CHANGEABLE = frozenset(Session._fields) - {"id"}
_TALK = ("count(*)", "sum(s.message_count)", "sum(s.tool_call_count)")
_STEP = 200  # sessions read at a time when all are wanted


class SqlSessions(Sessions):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, session_id: str) -> Session | None:
        where = self._where(id=session_id)
        rows = self._db.rows(f"SELECT {_ALL} FROM sessions WHERE {where.sql}", where.parameters)
        return Session._make(rows[0]) if rows else None

    def insert(self, session: Session) -> bool:
        sql = f"INSERT INTO sessions ({_ALL}) VALUES ({placeholders(Session._fields)}) ON CONFLICT (id) DO NOTHING"
        return self._db.run(sql, session._asdict()) > 0

    def change(self, session_id: str, **values: Any) -> bool:
        assert values.keys() <= _CHANGEABLE, values.keys() - _CHANGEABLE
        where = self._where(id=session_id)
        changes = ", ".join(f"{name} = :new_{name}" for name in values)
        parameters = where.parameters | {f"new_{name}": value for name, value in values.items()}
        return self._db.run(f"UPDATE sessions SET {changes} WHERE {where.sql}", parameters) > 0

    def record(self, session_id: str, *, messages: int, tool_calls: int, at: float, first_line: str) -> bool:
        where = self._where(id=session_id)
        parameters = where.parameters | {"messages": messages, "calls": tool_calls, "at": at, "line": first_line}
        sql = f"""
            UPDATE sessions SET
              message_count = message_count + :messages,
              tool_call_count = tool_call_count + :calls,
              last_active_at = CASE WHEN :at > last_active_at THEN :at ELSE last_active_at END,
              first_line = CASE WHEN first_line = '' THEN :line ELSE first_line END
            WHERE {where.sql}"""
        return self._db.run(sql, parameters) > 0

    def recount(self, session_id: str) -> None:
        if self.find(session_id) is None:
            return
        live = "FROM messages WHERE session_id = :id AND state = 'live'"
        messages = self._db.rows(f"SELECT count(*) {live}", {"id": session_id})[0][0]
        calls = self._db.rows(f"SELECT tool_calls {live} AND tool_calls IS NOT NULL", {"id": session_id})
        tool_calls = sum(count_calls(row[0]) for row in calls)
        # What a model counted when it was last asked was the conversation as it is no more.
        self.change(session_id, message_count=messages, tool_call_count=tool_calls, context_tokens=None)
        # A part of a longer conversation goes on showing how that began.
        said = self._db.stream(f"SELECT content {live} AND role = 'user' AND seq > 0 ORDER BY seq", {"id": session_id})
        first_line = next((line for row in said if (line := first_line_of(row[0]))), "")
        sql = "UPDATE sessions SET first_line = :line WHERE id = :id AND parent_session_id IS NULL"
        self._db.run(sql, {"id": session_id, "line": first_line})

    def add_usage(self, session_id: str, usage: Usage, billing: Billing, *, absolute: bool) -> bool:
        where = self._where(id=session_id)
        changes = [_counted(name, absolute) for name in Usage._fields]
        changes += [f"{name} = COALESCE(:{name}, {name})" for name in Billing._fields]
        parameters = where.parameters | usage._asdict() | billing._asdict()
        return self._db.run(f"UPDATE sessions SET {', '.join(changes)} WHERE {where.sql}", parameters) > 0

    def delete(self, session_ids: Collection[str]) -> int:
        where = self._where(ids=session_ids)
        return self._db.run(f"DELETE FROM sessions WHERE {where.sql}", where.parameters)

    def with_prefix(self, prefix: str, limit: int) -> list[str]:
        where = visible(self._scope)
        where.add("id >= :prefix AND id < :end", prefix=prefix, end=prefix + LAST_CHARACTER)
        sql = f"SELECT id FROM sessions WHERE {where.sql} ORDER BY id LIMIT :limit"
        return [row[0] for row in self._db.rows(sql, where.parameters | {"limit": limit})]

    def titled(self, title: str) -> list[Listed]:
        where = visible(self._scope, "s")
        where.add("s.title = :title", title=title)
        sql = f"SELECT {_LISTED} FROM sessions s WHERE {where.sql} ORDER BY s.last_active_at DESC"
        return [Listed._make(row) for row in self._db.rows(sql, where.parameters)]

    def titles(self) -> list[Titled]:
        where = visible(self._scope)
        where.add("title IS NOT NULL")
        sql = f"SELECT id, title, principal FROM sessions WHERE {where.sql} ORDER BY last_active_at DESC, id"
        return [Titled._make(row) for row in self._db.rows(sql, where.parameters)]

    def holder_of(self, principal: str, title: str) -> Listed | None:
        where = self._whose(principal)
        where.add("s.title = :title", title=title)
        rows = self._db.rows(f"SELECT {_LISTED} FROM sessions s WHERE {where.sql}", where.parameters)
        return Listed._make(rows[0]) if rows else None

    def titles_of(self, principal: str, beginning: str, limit: int) -> list[str]:
        where = self._whose(principal)
        where.add("title >= :beginning AND title < :end", beginning=beginning, end=beginning + LAST_CHARACTER)
        sql = f"SELECT title FROM sessions s WHERE {where.sql} ORDER BY length(title) DESC, title DESC LIMIT :limit"
        return [row[0] for row in self._db.rows(sql, where.parameters | {"limit": limit})]

    def open_in_lane(self, key: str, principal: str, audience: str) -> Session | None:
        where = visible(self._scope)
        where.add("lane_key = :key AND ended_at IS NULL", key=key)
        where.add("principal = :principal AND audience = :audience", principal=principal, audience=audience)
        rows = self._db.rows(f"SELECT {_ALL} FROM sessions WHERE {where.sql}", where.parameters)
        return Session._make(rows[0]) if rows else None

    def children(self, session_ids: Collection[str]) -> list[Link]:
        where = visible(self._scope, "s")
        where.add_membership("s.parent_session_id", session_ids)
        where.add(_RELATED.format("parent_session_id"))
        sql = f"SELECT {columns(Link._fields, 's')} FROM sessions s WHERE {where.sql}"
        return [Link._make(row) for row in self._db.rows(sql, where.parameters)]

    def spawned_by(self, session_ids: Collection[str]) -> list[str]:
        where = visible(self._scope, "s")
        where.add_membership("s.spawned_by", session_ids)
        where.add(_RELATED.format("spawned_by"))
        return [row[0] for row in self._db.rows(f"SELECT s.id FROM sessions s WHERE {where.sql}", where.parameters)]

    def listed(self, wanted: Filter, limit: int | None, offset: int) -> list[Listed]:
        where = self._matching(wanted)
        sql = f"""
            SELECT {_LISTED} FROM sessions s WHERE {where.sql}
            ORDER BY s.last_active_at DESC, s.id DESC LIMIT :limit OFFSET :offset"""
        window = {"limit": ALL if limit is None else limit, "offset": offset}
        rows = self._db.rows(sql, where.parameters | window)
        return [Listed._make(row) for row in rows]

    def count(self, wanted: Filter) -> int:
        where = self._matching(wanted)
        return int(self._db.rows(f"SELECT count(*) FROM sessions s WHERE {where.sql}", where.parameters)[0][0])

    def by_source(self) -> list[SourceCount]:
        where = visible(self._scope)
        sql = f"""
            SELECT source, count(*), sum(message_count) FROM sessions WHERE {where.sql}
            GROUP BY source ORDER BY count(*) DESC, source"""
        return [SourceCount._make(row) for row in self._db.rows(sql, where.parameters)]

    def talk_by(self, column: str, wanted: Filter) -> list[Group]:
        assert column in ("model", "source"), column
        where = self._matching(wanted)
        sql = f"SELECT s.{column}, {', '.join(_TALK)} FROM sessions s WHERE {where.sql} GROUP BY s.{column}"
        return [Group(row[0], Talk._make(row[1:])) for row in self._db.rows(sql, where.parameters)]

    def longest(self, wanted: Filter) -> Conversation | None:
        where, above = self._matching(wanted), visible(self._scope, "p")
        # UNION forgets what it has seen already, so links that lead in a circle come to an end.
        sql = f"""
            WITH RECURSIVE parts(tip, id, principal, parent, messages) AS (
              SELECT s.id, s.id, s.principal, s.parent_session_id, s.message_count FROM sessions s WHERE {where.sql}
              UNION
              SELECT c.tip, p.id, p.principal, p.parent_session_id, p.message_count
              FROM parts c JOIN sessions p ON p.id = c.parent AND p.principal = c.principal WHERE {above.sql})
            SELECT t.id, t.title, t.first_line, sum(parts.messages) FROM parts JOIN sessions t ON t.id = parts.tip
            GROUP BY t.id, t.title, t.first_line ORDER BY sum(parts.messages) DESC, t.id LIMIT 1"""
        rows = self._db.rows(sql, where.parameters | above.parameters)
        return Conversation._make(rows[0]) if rows else None

    def in_order(self, sources: Collection[str] = ()) -> Iterator[Session]:
        at, after = -1e18, ""
        while True:
            where = visible(self._scope)
            if sources:
                where.add_membership("source", sources)
            where.add("(started_at, id) > (:at, :after)", at=at, after=after)
            sql = f"SELECT {_ALL} FROM sessions WHERE {where.sql} ORDER BY started_at, id LIMIT {_STEP}"
            rows = self._db.rows(sql, where.parameters)
            yield from map(Session._make, rows)
            if len(rows) < _STEP:
                return
            last = Session._make(rows[-1])
            at, after = last.started_at, last.id

    def tags(self, session_ids: Collection[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for batch in batches(session_ids):
            found |= self._tags(batch)
        return found

    def _tags(self, session_ids: Collection[str]) -> dict[str, list[str]]:
        seen = visible(self._scope, "s")
        where = Condition()
        where.add(f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.session_id AND {seen.sql})", **seen.parameters)
        where.add_membership("t.session_id", session_ids)
        sql = f"SELECT t.session_id, t.tag FROM session_tags t WHERE {where.sql} ORDER BY t.session_id, t.tag"
        found: dict[str, list[str]] = {}
        for session_id, tag in self._db.rows(sql, where.parameters):
            found.setdefault(session_id, []).append(tag)
        return found

    def tag(self, session_id: str, tags: Iterable[str]) -> None:
        where = self._where(id=session_id)
        for tag in tags:
            sql = f"""
                INSERT INTO session_tags (session_id, tag) SELECT id, :tag FROM sessions WHERE {where.sql}
                ON CONFLICT (session_id, tag) DO NOTHING"""
            self._db.run(sql, where.parameters | {"tag": tag})

    def untag(self, session_id: str, tags: Iterable[str]) -> None:
        where = visible(self._scope)
        for tag in tags:
            sql = f"""
                DELETE FROM session_tags WHERE session_id = :id AND tag = :tag
                AND session_id IN (SELECT id FROM sessions WHERE {where.sql})"""
            self._db.run(sql, where.parameters | {"id": session_id, "tag": tag})

    def _whose(self, principal: str) -> Condition:
        """What is a principal's own, whatever the room: only for one that this scope acts as."""
        if not self._scope.sees_all and principal not in (self._scope.principal, self._scope.room):
            raise StoreError("Nobody may look through somebody else's titles.")
        where = Condition()
        where.add("s.principal = :principal", principal=principal)
        return where

    def _where(self, *, id: str | None = None, ids: Collection[str] = ()) -> Condition:  # noqa: A002
        where = visible(self._scope)
        if id is not None:
            where.add("id = :id", id=id)
        else:
            where.add_membership("id", ids)
        return where

    def _matching(self, wanted: Filter) -> Condition:
        where = visible(self._scope, "s")
        if wanted.archived is not None:
            where.add("s.archived = :archived", archived=int(wanted.archived))
        if wanted.kinds:
            where.add_membership("s.kind", wanted.kinds)
        if wanted.sources:
            where.add_membership("s.source", wanted.sources)
        if wanted.exclude_sources:
            where.add_membership("s.source", wanted.exclude_sources, negated=True)
        if wanted.tips_only:
            where.add(
                "NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id AND c.principal = s.principal)"
            )
        if wanted.tag is not None:
            where.add(
                "EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = :tag)", tag=wanted.tag
            )
        if wanted.agent is not None:
            where.add("s.agent = :agent", agent=wanted.agent)
        if wanted.active_since is not None:
            where.add("s.last_active_at >= :active_since", active_since=wanted.active_since)
        if wanted.inactive_since is not None:
            where.add("s.last_active_at < :inactive_since", inactive_since=wanted.inactive_since)
        if wanted.ended is not None:
            where.add(f"s.ended_at IS {'NOT ' if wanted.ended else ''}NULL")
        if wanted.pinned is not None:
            where.add("s.pinned = :pinned", pinned=int(wanted.pinned))
        if wanted.min_messages:
            where.add("s.message_count >= :min_messages", min_messages=wanted.min_messages)
        if wanted.beginning:
            where.add(
                "(s.id >= :beginning AND s.id < :end OR s.title >= :beginning AND s.title < :end)",
                beginning=wanted.beginning,
                end=wanted.beginning + LAST_CHARACTER,
            )
        return where


def _counted(name: str, absolute: bool) -> str:
    """Costs stay unknown until somebody knows one; counters always count."""
    if name.endswith("_usd"):
        known = f":{name}" if absolute else f"COALESCE({name}, 0) + :{name}"
        return f"{name} = COALESCE({known}, {name})"
    return f"{name} = :{name}" if absolute else f"{name} = {name} + :{name}"
