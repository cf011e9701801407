"""The full-text index of SQLite, and messages found through it.

The index holds tokens and no text: `messages` has the text. It follows the messages in small batches, each its own
transaction, so that nothing that goes wrong with it can keep a message from being stored. Messages behind the last
batch are looked through one by one, so that nothing is missed.
"""

from segue.core.errors import IndexDamaged
from segue.core.tokens import fold, is_dense, tokens_of
from segue.ports.store import Stretch
from segue.storage.search import SqlSearch, texts
from segue.storage.search_index import TABLE, create_index, index_errors
from segue.storage.search_query import FTS5
from segue.storage.sql import Condition

_MERGED_PAGES = 64
_PROBED = 200  # characters


class SqliteSearch(SqlSearch):
    spelling = FTS5

    def is_whole(self) -> bool:
        held = f"SELECT count(*) FROM {TABLE}_docsize d WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = d.id)"
        taken = "SELECT count(*) FROM messages WHERE id <= :indexed_to"
        try:
            with index_errors():
                held_count = self._db.rows(held, {})[0][0]
                self._db.rows(f"SELECT count(*) FROM {TABLE} WHERE {TABLE} MATCH :any", {"any": '"a" *'})
        except IndexDamaged:
            return False
        return bool(held_count == self._db.rows(taken, {"indexed_to": self._taken_in()})[0][0])

    def _indexed_to(self, last: int, *, is_remaking: bool) -> int:  # noqa: ARG002
        return self._taken_in()

    def _knows(self, message_id: int) -> bool:
        if not self._db.rows("SELECT 1 FROM sqlite_schema WHERE name = :name", {"name": TABLE}):
            return False
        sql = "SELECT role, content, tool_calls FROM messages WHERE id = :id"
        rows = self._db.rows(sql, {"id": message_id})
        said, output = texts(*rows[0]) if rows else ("", "")
        tokens = tokens_of(fold((said or output)[:_PROBED]))
        if len(tokens) < 2:
            return True
        try:
            around = Stretch(message_id - 1, message_id + 1, is_indexed=True)
            return self._ids(f'"{tokens[0]}"', around, 1, in_tools=True) == [message_id]
        except IndexDamaged:
            return False

    def _index(self, messages: list[tuple[int, str, str]]) -> None:
        words = set[str]()
        with index_errors():
            for message_id, said, output in messages:
                tokens = [tokens_of(fold(text)) for text in (said, output)]
                parameters = {"id": message_id, "said": " ".join(tokens[0]), "output": " ".join(tokens[1])}
                self._db.run(f"INSERT INTO {TABLE} (rowid, content, tools) VALUES (:id, :said, :output)", parameters)
                words |= {*tokens[0], *tokens[1]}
            self._db.run(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('merge', {_MERGED_PAGES})", {})
        self._add_words(words)

    def _empty(self) -> None:
        self._db.run(f"DROP TABLE IF EXISTS {TABLE}", {})
        self._db.run("DELETE FROM search_words", {})
        create_index(self._db)

    def _ids(self, expression: str | None, stretch: Stretch, size: int, in_tools: bool) -> list[int]:
        where = Condition()
        if expression is None:
            return self._ids_in_order(where, stretch, size, "messages", "id")
        columns = "content tools" if in_tools else "content"
        where.add(f"{TABLE} MATCH :expression", expression=f"{{{columns}}} : ({expression})")
        with index_errors():
            return self._ids_in_order(where, stretch, size, TABLE, "rowid")

    def _add_words(self, words: set[str]) -> None:
        for word in words:
            if len(word) > 2 and not is_dense(word[0]):
                self._db.run("INSERT INTO search_words (word) VALUES (:word) ON CONFLICT DO NOTHING", {"word": word})
