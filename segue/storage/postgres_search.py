"""Words in PostgreSQL: the same tokens in a column of the message itself, stored and found in one transaction.

A `tsvector` without places says which tokens a message has, which is all that a candidate needs: whether words stand
next to each other is judged by the text. Whoever stores a message waits for it, so of a very long one only the
beginning is taken in; it says that it may have any word, and is looked at whatever is asked.
"""

from segue.core.matching import searched
from segue.core.messages import Draft
from segue.core.query import Node
from segue.core.sessions import Kind
from segue.core.tokens import fold, tokens_of
from segue.ports.store import Chunk, Narrowing, Stretch
from segue.storage.search import Bounds, Entry, SqlSearch
from segue.storage.search_query import TSQUERY
from segue.storage.sql import Condition

_LONGEST = 200_000  # characters of a message that are taken in
_ANY_WORD = "\ue001"


class PostgresSearch(SqlSearch):
    spelling = TSQUERY

    def chunk(self, tree: Node | None, stretch: Stretch, size: int, narrowing: Narrowing, *, in_tools: bool) -> Chunk:
        chunk = super().chunk(tree, stretch, size, narrowing, in_tools=in_tools)
        is_certain = chunk.is_certain and all(len(one.content or "") <= _LONGEST for one in chunk.found)
        return chunk._replace(is_certain=is_certain)

    def is_whole(self) -> bool:
        return not self._db.rows("SELECT 1 FROM messages WHERE words IS NULL LIMIT 1", {})

    def _indexed_to(self, last: int, *, is_remaking: bool) -> int:
        return self._taken_in() if is_remaking else last

    def _knows(self, message_id: int) -> bool:
        rows = self._db.rows("SELECT words IS NOT NULL FROM messages WHERE id = :id", {"id": message_id})
        return not rows or bool(rows[0][0])

    def _prepared(self, entries: list[Entry]) -> object:
        return [{"id": entry.id, "words": _lexemes(entry.text)} for entry in entries]

    def _index(self, prepared: object) -> None:
        assert isinstance(prepared, list)
        for row in prepared:
            self._db.run("UPDATE messages SET words = :words WHERE id = :id", row)

    def _empty(self) -> None:
        self._db.run("DELETE FROM search_words", {})

    def _ids(self, expression: str | None, stretch: Stretch, size: int, bounds: Bounds) -> list[int]:
        where = Condition()
        if expression is not None:
            where.add("m.words @@ CAST(:expression AS tsquery)", expression=f"({expression}) | '{_ANY_WORD}'")
            if not bounds.in_tools:
                where.add("m.role <> 'tool'")
        if bounds.sessions is not None:
            where.add_membership("m.session_id", bounds.sessions)
        if bounds.roles:
            where.add_membership("m.role", bounds.roles)
        if bounds.of_people is not None:
            sign = "=" if bounds.of_people else "<>"
            where.add(f"(SELECT s.kind FROM sessions s WHERE s.id = m.session_id) {sign} '{Kind.INTERACTIVE}'")
        return self._ids_in_order(where, stretch, size, "messages m", "m.id")

    def _all_words_with(self, part: str) -> list[str] | None:
        """The words are everybody's; whoever may not see everything has their own messages looked through instead."""
        return super()._all_words_with(part) if self._scope.sees_all else None


def words_of(message: Draft) -> dict[str, str]:
    """The column that a message is found by."""
    return {"words": _lexemes(searched(message.role, message.content, message.tool_calls))}


def _lexemes(text: str) -> str:
    tokens = set(tokens_of(fold(text[:_LONGEST])))
    if len(text) > _LONGEST:
        tokens.add(_ANY_WORD)
    return " ".join(f"'{token}'" for token in tokens)
