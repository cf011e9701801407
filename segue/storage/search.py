"""Messages found through the words of a database, whichever it is: what both have in common.

An engine's own search says how its index proposes messages; their text is read from `messages`, which has it once.
"""

from abc import abstractmethod

from segue.core.matching import Found, calls_of
from segue.core.query import Node, Term
from segue.core.scope import Scope
from segue.ports.store import Chunk, IndexState, Narrowing, Search, Stretch
from segue.storage.search_query import Rendered, Spelling, render
from segue.storage.sql import ALL, LAST_CHARACTER, Condition, Executor, batches, visible

_REMAKING = "search:remaking"
_INDEXED_TO = "search:indexed_to"
_MOST_WORDS = 200
_LONGEST_OUTPUT = 1_000_000  # characters of a tool's output

_COLUMNS = """m.id, m.session_id, m.seq, m.role, m.timestamp, m.content, m.tool_calls, m.tool_name,
    s.source, s.model, s.started_at, s.title, s.kind"""


class SqlSearch(Search):
    spelling: Spelling

    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def chunk(self, tree: Node | None, stretch: Stretch, size: int, narrowing: Narrowing, *, in_tools: bool) -> Chunk:
        rendered = Rendered(None, is_exact=tree is None)
        if tree is not None and stretch.is_indexed:
            rendered = render(tree, self._words_with, self.spelling)
        ids = self._ids(rendered.expression, stretch, size, in_tools)
        found = self._found(ids, narrowing, stretch.newest_first)
        return Chunk(found, rendered.is_exact, ids[-1] if len(ids) == size else None)

    def frequency(self, term: Term, *, in_tools: bool, most: int) -> int:
        rendered = render(term, self._words_with, self.spelling)
        return len(self._ids(rendered.expression, Stretch(0, ALL, is_indexed=True), most, in_tools))

    def state(self) -> IndexState:
        last = int(self._db.rows("SELECT COALESCE(MAX(id), 0) FROM messages", {})[0][0])
        is_remaking = self._fact(_REMAKING) is not None
        indexed_to = min(self._indexed_to(last, is_remaking=is_remaking), last)
        return IndexState(indexed_to, last, self._knows(indexed_to), is_remaking)

    def index_more(self, most: int) -> int:
        sql = """
            SELECT id, role, content, tool_calls FROM messages WHERE id > :after ORDER BY id LIMIT :most"""
        rows = self._db.rows(sql, {"after": self._taken_in(), "most": most})
        if len(rows) < most:
            self._db.run("DELETE FROM state_meta WHERE key = :key", {"key": _REMAKING})
        if rows:
            self._index([(message_id, *texts(*said)) for message_id, *said in rows])
            self._note(_INDEXED_TO, str(rows[-1][0]))
        return len(rows)

    def begin_again(self) -> None:
        self._empty()
        self._note(_INDEXED_TO, "0")
        self._note(_REMAKING, "1")

    @abstractmethod
    def _ids(self, expression: str | None, stretch: Stretch, size: int, in_tools: bool) -> list[int]:
        """The first messages of a stretch that an expression proposes; without one, simply the first."""

    @abstractmethod
    def _indexed_to(self, last: int, *, is_remaking: bool) -> int:
        """The last message that is found through the index."""

    @abstractmethod
    def _knows(self, message_id: int) -> bool:
        """Whether the index is there and finds the last message that it took in."""

    @abstractmethod
    def _index(self, messages: list[tuple[int, str, str]]) -> None:
        """Take messages into the index: each an id, what was said, and what a tool answered."""

    @abstractmethod
    def _empty(self) -> None:
        """Leave nothing in the index."""

    def _ids_in_order(self, where: Condition, stretch: Stretch, size: int, source: str, name: str) -> list[int]:
        where.add(f"{name} > :above AND {name} < :below", above=stretch.above, below=stretch.below)
        order = "DESC" if stretch.newest_first else "ASC"
        sql = f"SELECT {name} FROM {source} WHERE {where.sql} ORDER BY {name} {order} LIMIT :size"
        return [row[0] for row in self._db.rows(sql, where.parameters | {"size": size})]

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

    def _fact(self, key: str) -> str | None:
        rows = self._db.rows("SELECT value FROM state_meta WHERE key = :key", {"key": key})
        return rows[0][0] if rows else None

    def _note(self, key: str, value: str) -> None:
        sql = """
            INSERT INTO state_meta (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"key": key, "value": value})

    def _taken_in(self) -> int:
        return int(self._fact(_INDEXED_TO) or 0)


def texts(role: str, content: str | None, calls: str | None) -> tuple[str, str]:
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
    if narrowing.exclude_sessions:
        where.add_membership("m.session_id", narrowing.exclude_sessions, negated=True)
    if narrowing.tag is not None:
        tagged = "EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = :tag)"
        where.add(tagged, tag=narrowing.tag)
    return where
