"""The full-text index of SQLite, and messages found through it.

The index holds tokens and no text: `messages` has the text. It follows the messages in small batches, each its own
transaction, so that nothing that goes wrong with it can keep a message from being stored. Messages behind the last
batch are looked through one by one, so that nothing is missed.
"""

from typing import Any

from segue.core.errors import IndexDamaged
from segue.core.matching import Found, calls_of
from segue.core.query import Node, Term
from segue.core.scope import Scope
from segue.core.tokens import fold, is_dense, tokens_of
from segue.ports.store import Chunk, IndexState, Narrowing, Search, Stretch
from segue.storage.search_index import TABLE, create_index, index_errors
from segue.storage.search_query import Rendered, render
from segue.storage.sql import ALL, LAST_CHARACTER, Condition, Executor, batches, visible

_MERGED_PAGES = 64

INDEXED_TO = "search:indexed_to"
_REMAKING = "search:remaking"
_MOST_WORDS = 200
_PROBED = 200  # characters
_LONGEST_OUTPUT = 1_000_000  # characters of a tool's output

_COLUMNS = """m.id, m.session_id, m.seq, m.role, m.timestamp, m.content, m.tool_calls, m.tool_name,
    s.source, s.model, s.started_at, s.title, s.kind"""


class SqlSearch(Search):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def chunk(self, tree: Node | None, stretch: Stretch, size: int, narrowing: Narrowing, *, in_tools: bool) -> Chunk:
        rendered = Rendered(None, is_exact=tree is None)
        if tree is not None and stretch.is_indexed:
            rendered = render(tree, self._words_with)
        ids = self._ids(rendered.expression, stretch, size, in_tools)
        found = self._found(ids, narrowing, stretch.newest_first)
        return Chunk(found, rendered.is_exact, ids[-1] if len(ids) == size else None)

    def frequency(self, term: Term, *, in_tools: bool, most: int) -> int:
        rendered = render(term, self._words_with)
        return len(self._ids(rendered.expression, Stretch(0, ALL, is_indexed=True), most, in_tools))

    def state(self) -> IndexState:
        last = self._db.rows("SELECT COALESCE(MAX(id), 0) FROM messages", {})[0][0]
        indexed_to = min(self._indexed_to(), last)
        return IndexState(indexed_to, last, self._knows(indexed_to), self._fact(_REMAKING) is not None)

    def _knows(self, message_id: int) -> bool:
        """Whether the index is there and finds the last message that it took in."""
        if not self._db.rows("SELECT 1 FROM sqlite_schema WHERE name = :name", {"name": TABLE}):
            return False
        sql = "SELECT role, content, tool_calls FROM messages WHERE id = :id"
        rows = self._db.rows(sql, {"id": message_id})
        said, output = _texts(*rows[0]) if rows else ("", "")
        tokens = tokens_of(fold((said or output)[:_PROBED]))
        if len(tokens) < 2:
            return True
        try:
            around = Stretch(message_id - 1, message_id + 1, is_indexed=True)
            return self._ids(f'"{tokens[0]}"', around, 1, in_tools=True) == [message_id]
        except IndexDamaged:
            return False

    def is_whole(self) -> bool:
        held = f"SELECT count(*) FROM {TABLE}_docsize d WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = d.id)"
        taken = "SELECT count(*) FROM messages WHERE id <= :indexed_to"
        try:
            with index_errors():
                held_count = self._db.rows(held, {})[0][0]
                self._db.rows(f"SELECT count(*) FROM {TABLE} WHERE {TABLE} MATCH :any", {"any": '"a" *'})
        except IndexDamaged:
            return False
        return bool(held_count == self._db.rows(taken, {"indexed_to": self._indexed_to()})[0][0])

    def index_more(self, most: int) -> int:
        sql = """
            SELECT id, role, content, tool_calls FROM messages WHERE id > :after ORDER BY id LIMIT :most"""
        rows = self._db.rows(sql, {"after": self._indexed_to(), "most": most})
        if len(rows) < most:
            self._db.run("DELETE FROM state_meta WHERE key = :key", {"key": _REMAKING})
        if not rows:
            return 0
        words: set[str] = set()
        for message_id, role, content, calls in rows:
            words |= self._index(message_id, *_texts(role, content, calls))
        self._add_words(words)
        with index_errors():
            self._db.run(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('merge', {_MERGED_PAGES})", {})
        self._note(INDEXED_TO, str(rows[-1][0]))
        return len(rows)

    def _index(self, message_id: int, said: str, output: str) -> set[str]:
        tokens = [tokens_of(fold(text)) for text in (said, output)]
        parameters = {"id": message_id, "said": " ".join(tokens[0]), "output": " ".join(tokens[1])}
        with index_errors():
            self._db.run(f"INSERT INTO {TABLE} (rowid, content, tools) VALUES (:id, :said, :output)", parameters)
        return {*tokens[0], *tokens[1]}

    def begin_again(self) -> None:
        self._db.run(f"DROP TABLE IF EXISTS {TABLE}", {})
        self._db.run("DELETE FROM search_words", {})
        create_index(self._db)
        self._note(INDEXED_TO, "0")
        self._note(_REMAKING, "1")

    def _ids(self, expression: str | None, stretch: Stretch, size: int, in_tools: bool) -> list[int]:
        order = "DESC" if stretch.newest_first else "ASC"
        parameters: dict[str, Any] = {"above": stretch.above, "below": stretch.below, "size": size}
        if expression is None:
            sql = f"SELECT id FROM messages WHERE id > :above AND id < :below ORDER BY id {order} LIMIT :size"
        else:
            parameters["expression"] = f"{{content{' tools' if in_tools else ''}}} : ({expression})"
            sql = f"""
                SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH :expression AND rowid > :above AND rowid < :below
                ORDER BY rowid {order} LIMIT :size"""
        with index_errors():
            return [row[0] for row in self._db.rows(sql, parameters)]

    def _found(self, ids: list[int], narrowing: Narrowing, newest_first: bool) -> list[Found]:
        found: list[Found] = []
        for batch in batches(ids):
            where = _narrowed(self._scope, narrowing)
            where.add_membership("m.id", batch)
            sql = f"""
                SELECT {_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id
                WHERE {where.sql} ORDER BY m.id {"DESC" if newest_first else "ASC"}"""
            found += (Found(*row) for row in self._db.rows(sql, where.parameters))
        return found

    def _words_with(self, part: str) -> list[str] | None:
        like = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        sql = "SELECT word FROM search_words WHERE word LIKE :like ESCAPE '\\' LIMIT :most"
        rows = self._db.rows(sql, {"like": f"%{like}%", "most": _MOST_WORDS + 1})
        return None if len(rows) > _MOST_WORDS else [row[0] for row in rows]

    def _add_words(self, words: set[str]) -> None:
        for word in words:
            if len(word) > 2 and not is_dense(word[0]):
                self._db.run("INSERT INTO search_words (word) VALUES (:word) ON CONFLICT DO NOTHING", {"word": word})

    def _indexed_to(self) -> int:
        return int(self._fact(INDEXED_TO) or 0)

    def _fact(self, key: str) -> str | None:
        rows = self._db.rows("SELECT value FROM state_meta WHERE key = :key", {"key": key})
        return rows[0][0] if rows else None

    def _note(self, key: str, value: str) -> None:
        sql = """
            INSERT INTO state_meta (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"key": key, "value": value})


def _texts(role: str, content: str | None, calls: str | None) -> tuple[str, str]:
    """What of a message is always searched, and what only when tools are asked for."""
    if role == "tool":
        return "", (content or "")[:_LONGEST_OUTPUT]
    return ("", "") if role == "system" else (f"{content or ''}\n{calls_of(calls)}" if calls else content or "", "")


def _narrowed(scope: Scope, narrowing: Narrowing) -> Condition:
    where = visible(scope, "s")
    where.add("m.state <> 'undone'")
    if narrowing.sources:
        where.add_membership("s.source", narrowing.sources)
    if narrowing.exclude_sources:
        where.add_membership("s.source", narrowing.exclude_sources, negated=True)
    if narrowing.roles:
        where.add_membership("m.role", narrowing.roles)
    if narrowing.since is not None:
        where.add("m.timestamp >= :since", since=narrowing.since)
    if narrowing.until is not None:
        where.add("m.timestamp < :until", until=narrowing.until)
    if narrowing.session_prefix:
        prefix = narrowing.session_prefix
        where.add("m.session_id >= :prefix AND m.session_id < :end", prefix=prefix, end=prefix + LAST_CHARACTER)
    if narrowing.tag is not None:
        tagged = "EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = :tag)"
        where.add(tagged, tag=narrowing.tag)
    return where
