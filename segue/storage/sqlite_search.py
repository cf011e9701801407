"""The full-text index of SQLite, and messages found through it.

The index holds tokens and no text: `messages` has the text. It follows the messages in small batches, each its own
transaction, so that nothing that goes wrong with it can keep a message from being stored. Messages behind the last
batch are looked through one by one, so that nothing is missed.

Beside the words of a message stand its marks: tokens for its session and its role, and one for what runs by itself. So
a search in one person's few sessions, among a million messages of others, is one question to the index.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from segue.core.errors import IndexDamaged
from segue.core.sessions import Kind
from segue.core.tokens import fold, is_dense, tokens_of
from segue.ports.store import Stretch
from segue.storage.search import Bounds, Entry, SqlSearch
from segue.storage.search_index import TABLE, create_index, index_errors
from segue.storage.search_query import FTS5
from segue.storage.sql import Condition

_MERGED_PAGES = 64
_SHORTEST_KNOWN_WORD = 3
_BY_ITSELF = "automatic"


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
            around = Stretch(message_id - 1, message_id + 1, is_indexed=True)
            return self._matching(_either("marks", [_role(rows[0][0])]), around, 1) == [message_id]
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
        for word in prepared.words:
            self._db.run("INSERT INTO search_words (word) VALUES (:word) ON CONFLICT DO NOTHING", {"word": word})

    def _empty(self) -> None:
        self._db.run(f"DROP TABLE IF EXISTS {TABLE}", {})
        self._db.run("DELETE FROM search_words", {})
        create_index(self._db)

    def _ids(self, expression: str | None, stretch: Stretch, size: int, bounds: Bounds) -> list[int]:
        if expression is None:
            where = Condition()
            if bounds.sessions is not None:
                where.add_membership("session_id", bounds.sessions)
            return self._ids_in_order(where, stretch, size, "messages", "id")
        parts = [f"{{{'content tools' if bounds.in_tools else 'content'}}} : ({expression})"]
        if bounds.sessions is not None:
            parts.append(_either("marks", map(_session, bounds.sessions)))
        if bounds.roles:
            parts.append(_either("marks", map(_role, bounds.roles)))
        if bounds.of_people is False:
            parts.append(_either("marks", [_BY_ITSELF]))
        wanted = " AND ".join(parts)
        if bounds.of_people:
            wanted = f"({wanted}) NOT {_either('marks', [_BY_ITSELF])}"
        return self._matching(wanted, stretch, size)

    def _matching(self, expression: str, stretch: Stretch, size: int) -> list[int]:
        where = Condition()
        where.add(f"{TABLE} MATCH :expression", expression=expression)
        with index_errors():
            return self._ids_in_order(where, stretch, size, TABLE, "rowid")


def _session(session_id: str) -> str:
    return "s" + blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _role(role: str) -> str:
    return "r" + role.encode("utf-8", "surrogatepass").hex()


def _either(column: str, tokens: Iterable[str]) -> str:
    return f"{column} : ({' OR '.join(tokens)})"
