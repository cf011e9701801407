"""Whether the rows of different tables fit together."""

from collections import Counter
from collections.abc import Collection, Iterator

from segue.core.errors import StoreError
from segue.core.messages import count_calls
from segue.core.scope import Scope
from segue.core.usage import Usage
from segue.ports.store import Health, Miscount, Orphans
from segue.storage.sql import Condition, Executor

_COUNTERS, _COSTS = Usage._fields[:6], Usage._fields[6:]
_NO_SESSION = "NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = {}.session_id)"
_FILES = (
    ("messages", "attachments", "1 = 1"),
    ("inbox", "attachments", "state NOT IN ('done', 'cancelled')"),  # whose files are those of a message by now
    ("outbox", "file", "state NOT IN ('delivered', 'suppressed')"),
)
"""Where files are named, and which of those rows still need them."""


class SqlHealth(Health):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._executor = executor
        self._scope = scope

    @property
    def _db(self) -> Executor:
        if not self._scope.sees_all:
            raise StoreError("Only the owner can look over the whole store.")
        return self._executor

    def orphans(self) -> list[Orphans]:
        sql = f"""
            SELECT m.session_id, count(*), min(m.timestamp), max(m.timestamp) FROM messages m
            WHERE {_NO_SESSION.format("m")} GROUP BY m.session_id ORDER BY m.session_id"""
        return [Orphans._make(row) for row in self._db.rows(sql, {})]

    def stray_tags(self) -> int:
        return int(self._db.rows(f"SELECT count(*) FROM session_tags t WHERE {_NO_SESSION.format('t')}", {})[0][0])

    def remove_stray_tags(self) -> int:
        return self._db.run("DELETE FROM session_tags WHERE session_id NOT IN (SELECT id FROM sessions)", {})

    def miscounts(self) -> list[Miscount]:
        live = "SELECT session_id, {} FROM messages WHERE state = 'live'"
        messages: dict[str, int] = dict(self._db.rows(live.format("count(*)") + " GROUP BY session_id", {}))
        calls: Counter[str] = Counter()
        for session_id, listed in self._db.stream(live.format("tool_calls") + " AND tool_calls IS NOT NULL", {}):
            calls[session_id] += count_calls(listed)
        said = self._db.stream("SELECT id, message_count, tool_call_count FROM sessions ORDER BY id", {})
        return [
            Miscount(one, messages.get(one, 0), calls[one])
            for one, *counters in said
            if counters != [messages.get(one, 0), calls[one]]
        ]

    def unnoted(self) -> list[str]:
        counters = " OR ".join(f"s.{name} <> COALESCE(u.{name}, 0)" for name in _COUNTERS)
        costs = " OR ".join(
            f"abs(s.{name} - COALESCE(u.{name}, 0)) > 1e-6 * (1 + abs(s.{name}))"  # never so when it is unknown
            for name in _COSTS
        )
        sums = ", ".join(f"sum({name}) AS {name}" for name in (*_COUNTERS, *_COSTS))
        sql = f"""
            SELECT s.id FROM sessions s
            LEFT JOIN (SELECT session_id, {sums} FROM usage GROUP BY session_id) u ON u.session_id = s.id
            WHERE {counters} OR {costs} ORDER BY s.id"""
        return [row[0] for row in self._db.rows(sql, {})]

    def attachments(self) -> Iterator[tuple[str, int, str]]:
        sql = "SELECT session_id, seq, attachments FROM messages WHERE attachments IS NOT NULL ORDER BY id"
        return ((row[0], row[1], row[2]) for row in self._db.stream(sql, {}))

    def files(self, session_ids: Collection[str] | None = None) -> Iterator[str]:
        for table, column, needs in _FILES:
            where = Condition()
            where.add(f"{column} IS NOT NULL")
            if session_ids is None:
                where.add(needs)
            else:
                where.add_membership("session_id", session_ids)
            for row in self._db.stream(f"SELECT {column} FROM {table} WHERE {where.sql}", where.parameters):
                yield row[0]
