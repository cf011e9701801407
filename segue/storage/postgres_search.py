"""Words in PostgreSQL: the same tokens in a column of the message itself, stored and found in one transaction.

A `tsvector` without places says which tokens a message has, which is all that a candidate needs: whether words stand
next to each other is judged by the text. Whoever stores a message waits for it, so of a very long one only the
beginning is taken in; it says that it may have any word, and is looked at whatever is asked.
"""

from collections.abc import Callable
from math import inf

from segue.core.matching import Found, Needle, Page, is_found, needle_of, searched
from segue.core.messages import Draft
from segue.core.query import Term
from segue.core.sessions import Kind
from segue.core.tokens import fold, tokens_of
from segue.ports.store import Chunk
from segue.storage.search import Asked, Bounds, Entry, SqlSearch
from segue.storage.search_query import TSQUERY
from segue.storage.sql import Condition, Executor, visible
from segue.storage.time_order import Key, Loaded, Part, Source, key_of

_LONGEST = 200_000  # characters of a message that are taken in
_LONGEST_WORD = 2_000  # bytes, and a little less than the server takes
_MOST_BYTES = 900_000  # of all its words
_SURELY_WHOLE = _LONGEST_WORD // 4  # characters of a text in which every word is taken in

FORGET_WORDS = """
    DELETE FROM search_words WHERE NOT EXISTS (
      SELECT 1 FROM (SELECT DISTINCT unnest(tsvector_to_array(words)) AS word FROM messages) known
      WHERE known.word = search_words.word)"""
"""The words of messages that are no more."""

CHUNK = 201
"""Messages that are loaded at once: as many as are ranked, and one that tells whether there are more."""

_ANY_WORD = "\ue001"


class PostgresSearch(SqlSearch):
    spelling = TSQUERY

    def _chunk(self, part: Part, read: Callable[[list[int]], list[Found]], certain_to: int) -> Chunk:
        chunk = super()._chunk(part, read, certain_to)
        return chunk._replace(certain_to=0) if certain_to and self._has_partly_taken_in(chunk) else chunk

    def _has_partly_taken_in(self, chunk: Chunk) -> bool:
        """Whether one of the messages may have been proposed for a word that it does not have."""
        long = [one.id for one in chunk.found if len(one.content or "") + len(one.tool_calls or "") > _SURELY_WHOLE]
        if not long:
            return False
        where = Condition()
        where.add_membership("id", long)
        sql = f"SELECT 1 FROM messages WHERE {where.sql} AND words @@ CAST(:any AS tsquery) LIMIT 1"
        return bool(self._db.rows(sql, where.parameters | {"any": f"'{_ANY_WORD}'"}))

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

    def _sources(self, asked: Asked) -> list[Source]:
        sources: list[Source] = []
        for expression, is_indexed in ((asked.expression, True), (None, False)):
            where = self._where(expression, asked.bounds)
            if asked.state.is_remaking:
                where.add(f"m.id {'<=' if is_indexed else '>'} :indexed_to", indexed_to=asked.state.indexed_to)
            elif not is_indexed:
                continue  # everything is in the index
            sources.append(KeysetSource(self._db, where, newest_first=asked.newest_first))
        return sources

    def _count(self, term: Term, bounds: Bounds, most: int) -> int:
        where = self._where(self._render(term).expression, bounds)
        tokens = needle_of(term).tokens
        if len(tokens.words) > 1:
            return self._count_together(Needle(tokens), where, most)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM messages m WHERE {where.sql} LIMIT :most) found"
        return int(self._db.rows(sql, where.parameters | {"most": most})[0][0])

    def _count_together(self, needle: Needle, where: Condition, most: int) -> int:
        """How many messages have tokens next to each other, which their text tells alone."""
        sql = f"SELECT m.role, m.content, m.tool_calls FROM messages m WHERE {where.sql} LIMIT :most"
        rows = self._db.rows(sql, where.parameters | {"most": most})
        return sum(is_found(needle, Page(searched(*row))) for row in rows)

    def _where(self, expression: str | None, bounds: Bounds) -> Condition:
        where = Condition()
        if expression is not None:
            where.add("m.words @@ CAST(:expression AS tsquery)", expression=f"({expression}) | '{_ANY_WORD}'")
            if not bounds.in_tools:
                where.add("m.role <> 'tool'")
        if bounds.sessions is not None:
            where.add_membership("m.session_id", bounds.sessions)
        elif not self._scope.sees_all:  # what they may see is found by their sessions, whatever others have said
            own = visible(self._scope)
            where.add(f"m.session_id = ANY (ARRAY(SELECT id FROM sessions WHERE {own.sql}))", **own.parameters)
        if bounds.roles:
            where.add_membership("m.role", bounds.roles)
        if bounds.of_people is not None:
            sign = "=" if bounds.of_people else "<>"
            where.add(f"(SELECT s.kind FROM sessions s WHERE s.id = m.session_id) {sign} '{Kind.INTERACTIVE}'")
        if bounds.since is not None:
            where.add("m.timestamp >= :since", since=bounds.since)
        if bounds.until is not None:
            where.add("m.timestamp < :until", until=bounds.until)
        return where

    def _all_words_with(self, part: str) -> list[str] | None:
        """The words are everybody's; whoever may not see everything has their own messages looked through instead."""
        return super()._all_words_with(part) if self._scope.sees_all else None


class KeysetSource:
    """Messages in the order of time, each chunk behind the last message of the one before."""

    def __init__(self, executor: Executor, where: Condition, *, newest_first: bool) -> None:
        self._db = executor
        self._where = where
        self._newest_first = newest_first
        self._last: tuple[float, int] | None = None
        self.bound: Key | None = (inf, 0)

    def load(self) -> list[Loaded]:
        where, (order, beyond) = self._where.sql, ("DESC", "<") if self._newest_first else ("ASC", ">")
        place: dict[str, float] = {"size": CHUNK}
        if self._last is not None:
            where += f" AND (m.timestamp, m.id) {beyond} (:last_timestamp, :last_id)"
            place |= dict(zip(("last_timestamp", "last_id"), self._last, strict=True))
        sql = f"""
            SELECT m.timestamp, m.id FROM messages m WHERE {where}
            ORDER BY m.timestamp {order}, m.id {order} LIMIT :size"""
        rows = self._db.rows(sql, self._where.parameters | place)
        loaded = [Loaded(key_of(*row, newest_first=self._newest_first), row[1]) for row in rows]
        self.bound = None
        if len(rows) == CHUNK:
            self._last = rows[-1]
            first, number = loaded[-1].key
            self.bound = (first, number - 1)
        return loaded


def words_of(message: Draft) -> dict[str, str]:
    """The column that a message is found by."""
    return {"words": _lexemes(searched(message.role, message.content, message.tool_calls))}


def _lexemes(text: str) -> str:
    is_whole = len(text) <= _LONGEST
    taken: dict[str, None] = {}
    left = _MOST_BYTES
    for token in tokens_of(fold(text[:_LONGEST])):
        if token in taken:
            continue
        size = len(token.encode("utf-8", "replace"))
        if size > _LONGEST_WORD or size > left:
            is_whole = False
            continue
        taken[token] = None
        left -= size
    words = taken if is_whole else {**taken, _ANY_WORD: None}
    return " ".join(f"'{token}'" for token in words)
