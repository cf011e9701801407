"""The full-text index of SQLite, and messages found through it.

The index holds tokens and no text: `messages` has the text. It follows the messages in small batches, each its own
transaction, so that nothing that goes wrong with it can keep a message from being stored. Messages behind the last
batch are looked through one by one, so that nothing is missed.

Beside the words of a message stand its marks: tokens for its session and its role, and one for what runs by itself. So
a search in one person's few sessions, among a million messages of others, is one question to the index.
"""

import json
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import NamedTuple

from segue.core.errors import IndexDamaged
from segue.core.query import Term
from segue.core.sessions import Kind
from segue.core.tokens import fold, is_dense, tokens_of
from segue.storage.schema import BLOCK_BITS
from segue.storage.search import Asked, Bounds, Entry, SqlSearch
from segue.storage.search_blocks import ALWAYS, BlockSource, Span
from segue.storage.search_index import TABLE, create_index, fill_blocks, index_errors
from segue.storage.search_query import FTS5
from segue.storage.sql import ALL, Condition, batches
from segue.storage.time_order import ListSource, Loaded, Source, key_of

_MERGED_PAGES = 64
_SHORTEST_KNOWN_WORD = 3
_BY_ITSELF = "automatic"
_OUTSIDE_ITS_BLOCK = f"""
    SELECT 1 FROM messages m LEFT JOIN search_blocks b ON b.block = m.id >> {BLOCK_BITS}
    WHERE m.id <= :indexed_to AND (b.block IS NULL OR m.timestamp NOT BETWEEN b.oldest AND b.newest) LIMIT 1"""


class _Prepared(NamedTuple):
    rows: list[dict[str, object]]
    words: set[str]


class SqliteSearch(SqlSearch):
    spelling = FTS5

    def is_whole(self) -> bool:
        held = f"SELECT count(*) FROM {TABLE}_docsize d WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = d.id)"
        taken = "SELECT count(*) FROM messages WHERE id <= :indexed_to"
        try:
            with index_errors():
                held_count = self._db.rows(held, {})[0][0]
                if self._db.rows(f"PRAGMA integrity_check({TABLE})", {}) != [("ok",)]:
                    return False
                if self._db.rows(_OUTSIDE_ITS_BLOCK, {"indexed_to": self._taken_in()}):
                    return False
        except IndexDamaged:
            return False
        return bool(held_count == self._db.rows(taken, {"indexed_to": self._taken_in()})[0][0])

    def _indexed_to(self, last: int, *, is_remaking: bool) -> int:  # noqa: ARG002
        return self._taken_in()

    def _knows(self, message_id: int) -> bool:
        if not self._db.rows("SELECT 1 FROM sqlite_schema WHERE name = :name", {"name": TABLE}):
            return False
        sql = "SELECT role FROM messages WHERE id = :id"
        rows = self._db.rows(sql, {"id": message_id})
        if not rows:
            return True
        try:
            return self._matching(_either("marks", [_role(rows[0][0])]), message_id, message_id, 1) == [message_id]
        except IndexDamaged:
            return False

    def _prepared(self, entries: list[Entry]) -> _Prepared:
        prepared = _Prepared([], set())
        for entry in entries:
            tokens = tokens_of(fold(entry.text))
            said, output = ([], tokens) if entry.role == "tool" else (tokens, [])
            marks = [_session(entry.session_id), _role(entry.role)]
            if entry.kind != Kind.INTERACTIVE:
                marks.append(_BY_ITSELF)
            columns = {"said": " ".join(said), "output": " ".join(output), "marks": " ".join(marks)}
            prepared.rows.append({"id": entry.id, **columns})
            prepared.words.update(
                token for token in tokens if len(token) >= _SHORTEST_KNOWN_WORD and not is_dense(token[0])
            )
        return prepared

    def _index(self, prepared: object) -> None:
        assert isinstance(prepared, _Prepared)
        sql = f"INSERT INTO {TABLE} (rowid, content, tools, marks) VALUES (:id, :said, :output, :marks)"
        with index_errors():
            for row in prepared.rows:
                self._db.run(sql, row)
            self._db.run(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('merge', {_MERGED_PAGES})", {})
            if prepared.rows:
                self._note_blocks(prepared)
        for word in prepared.words:
            self._db.run("INSERT INTO search_words (word) VALUES (:word) ON CONFLICT DO NOTHING", {"word": word})

    def _note_blocks(self, prepared: _Prepared) -> None:
        """All of each block that was touched: its end belongs to later batches, but is there when it is made anew."""
        first, last = (int(str(prepared.rows[at]["id"])) >> BLOCK_BITS for at in (0, -1))
        fill_blocks(self._db, first << BLOCK_BITS, ((last + 1) << BLOCK_BITS) - 1)

    def _empty(self) -> None:
        self._db.run(f"DROP TABLE IF EXISTS {TABLE}", {})
        self._db.run("DELETE FROM search_words", {})
        create_index(self._db)

    def _sources(self, asked: Asked) -> list[Source]:
        state, bounds = asked.state, asked.bounds
        known_to = max(state.indexed_to, self._last_in_blocks()) if state.is_remaking else state.indexed_to
        first, last = self._ids_of_time(known_to, bounds)
        ranges = [(asked.expression, first, min(last, state.indexed_to))]
        if known_to > state.indexed_to:
            ranges.append((None, max(first, state.indexed_to + 1), last))
        sources: list[Source] = [self._source(asked, *one) for one in ranges]
        return [ListSource(self._unordered(known_to, asked)), *sources]

    def _source(self, asked: Asked, expression: str | None, low: int, high: int) -> BlockSource:
        def propose(low: int, high: int, size: int) -> list[int]:
            if expression is None:
                return self._unmatched(low, high, size, asked.bounds, newest_first=asked.newest_first)
            return self._matching(wanted, low, high, size, newest_first=asked.newest_first)

        wanted = "" if expression is None else _narrowed(expression, asked.bounds)
        span, newest_first = _span(asked.bounds), asked.newest_first
        return BlockSource(self._db, propose, asked.read, low, high, span=span, newest_first=newest_first)

    def _add_ids(self, where: Condition, ids: Collection[int]) -> None:
        """As one value, so that the statement is the same for any number of them, and compiled once."""
        where.add("m.id IN (SELECT value FROM json_each(:ids))", ids=json.dumps(list(ids)))

    def _last_in_blocks(self) -> int:
        try:
            with index_errors():
                rows = self._db.rows("SELECT last_id FROM search_blocks ORDER BY block DESC LIMIT 1", {})
        except IndexDamaged:
            return 0
        return int(rows[0][0]) if rows else 0

    def _ids_of_time(self, last: int, bounds: Bounds) -> tuple[int, int]:
        """Between which ids everything lies that is of a time."""
        if last == 0 or (bounds.since is None and bounds.until is None):
            return 0, last
        sql = "SELECT MIN(block), MAX(block) FROM search_blocks WHERE newest >= :since AND oldest < :until"
        with index_errors():
            low, high = self._db.rows(sql, _span(bounds)._asdict())[0]
        return (1, 0) if low is None else (low << BLOCK_BITS, min(last, ((high + 1) << BLOCK_BITS) - 1))

    def _unordered(self, after: int, asked: Asked) -> list[Loaded]:
        """The messages behind an id, of which no block says anything, in the order of time."""
        where = Condition()
        where.add("id > :after", after=after)
        where.add("timestamp >= :since AND timestamp < :until", **_span(asked.bounds)._asdict())
        if asked.bounds.sessions is not None:
            where.add_membership("session_id", asked.bounds.sessions)
        order = "DESC" if asked.newest_first else "ASC"
        sql = f"SELECT timestamp, id FROM messages WHERE {where.sql} ORDER BY timestamp {order}, id {order}"
        rows = self._db.rows(sql, where.parameters)
        return [Loaded(key_of(*row, newest_first=asked.newest_first), row[1]) for row in rows]

    def _count(self, term: Term, bounds: Bounds, most: int) -> int:
        expression = self._render(term).expression
        if expression is None:
            ids = self._unmatched(0, ALL, most, bounds)
        else:
            ids = self._matching(_narrowed(expression, bounds), 0, ALL, most)
        if self._scope.sees_all or bounds.sessions is not None:
            return len(ids)
        return sum(self._count_visible(batch) for batch in batches(ids))

    def _unmatched(self, low: int, high: int, size: int, bounds: Bounds, *, newest_first: bool = True) -> list[int]:
        where = Condition()
        if bounds.sessions is not None:
            where.add_membership("session_id", bounds.sessions)
        return self._ids(where, low, high, size, "messages", "id", newest_first=newest_first)

    def _matching(self, expression: str, low: int, high: int, size: int, *, newest_first: bool = True) -> list[int]:
        where = Condition()
        where.add(f"{TABLE} MATCH :expression", expression=expression)
        with index_errors():
            return self._ids(where, low, high, size, TABLE, "rowid", newest_first=newest_first)

    def _ids(
        self, where: Condition, low: int, high: int, size: int, table: str, name: str, *, newest_first: bool
    ) -> list[int]:
        where.add(f"{name} >= :low AND {name} <= :high", low=low, high=high)
        order = "DESC" if newest_first else "ASC"
        sql = f"SELECT {name} FROM {table} WHERE {where.sql} ORDER BY {name} {order} LIMIT :size"
        return [row[0] for row in self._db.rows(sql, where.parameters | {"size": size})]


def _span(bounds: Bounds) -> Span:
    since = ALWAYS.since if bounds.since is None else bounds.since
    return Span(since, ALWAYS.until if bounds.until is None else bounds.until)


def _narrowed(expression: str, bounds: Bounds) -> str:
    """An expression that matches only what is within bounds, as far as the marks tell."""
    parts = [f"{{{'content tools' if bounds.in_tools else 'content'}}} : ({expression})"]
    if bounds.sessions is not None:
        parts.append(_either("marks", map(_session, bounds.sessions)))
    if bounds.roles:
        parts.append(_either("marks", map(_role, bounds.roles)))
    if bounds.of_people is False:
        parts.append(_either("marks", [_BY_ITSELF]))
    wanted = " AND ".join(parts)
    return f"({wanted}) NOT {_either('marks', [_BY_ITSELF])}" if bounds.of_people else wanted


def _session(session_id: str) -> str:
    return "s" + blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _role(role: str) -> str:
    return "r" + role.encode("utf-8", "surrogatepass").hex()


def _either(column: str, tokens: Iterable[str]) -> str:
    return f"{column} : ({' OR '.join(tokens)})"
