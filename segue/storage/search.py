"""Messages found through the words of a database, whichever it is: what both have in common.

An engine's own search says how its index proposes messages; their text is read from `messages`, which has it once.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple

from segue.core.matching import Found, searched
from segue.core.query import Node, Term
from segue.core.scope import Scope
from segue.core.sessions import Kind
from segue.ports.store import FEW_SESSIONS, Chunk, IndexState, Narrowing, Search, Waiting
from segue.storage.search_query import Rendered, Spelling, render
from segue.storage.sql import LAST_CHARACTER, Condition, Executor, batches, visible
from segue.storage.time_order import Part, Source, in_order

_REMAKING = "search:remaking"
_INDEXED_TO = "search:indexed_to"
_MOST_WORDS = 200
_MOST_CHARACTERS = 300_000
"""Of a batch: what is taken in at once must not take long, for others wait."""

_COLUMNS = """m.id, m.session_id, m.seq, m.role, m.timestamp, m.content, m.tool_calls, m.tool_name,
    s.source, s.model, s.started_at, s.title, s.kind"""


class Bounds(NamedTuple):
    """Where the index has to look."""

    in_tools: bool
    sessions: tuple[str, ...] | None = None
    """Only in these, when there are few."""
    roles: tuple[str, ...] = ()
    of_people: bool | None = None
    """Only in what people say, or only in what runs by itself."""
    since: float | None = None
    until: float | None = None


class Asked(NamedTuple):
    """What is looked for in the index, and in which order it is to come."""

    expression: str | None
    """None when the index cannot tell."""
    state: IndexState
    bounds: Bounds
    read: Callable[[list[int]], list[Found]]
    newest_first: bool


class Entry(NamedTuple):
    """A message as the index takes it in."""

    id: int
    session_id: str
    role: str
    kind: str
    text: str


class SqlSearch(Search):
    spelling: Spelling

    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope
        self._rendered: dict[str, Rendered] = {}
        self._words: dict[str, list[str] | None] = {}
        self._few: dict[Narrowing, tuple[str, ...] | None] = {}
        self._known_state: IndexState | None = None

    def walk(
        self,
        tree: Node | None,
        narrowing: Narrowing,
        *,
        in_tools: bool,
        time_left: Callable[[], float],
        newest_first: bool = True,
        uses_index: bool = True,
    ) -> Iterator[Chunk]:
        sessions = self._few_sessions(narrowing)
        if sessions == ():
            return
        rendered = Rendered(None, is_exact=False)
        if tree is not None and uses_index:
            rendered = self._render(tree)
        bounds = Bounds(in_tools, sessions, narrowing.roles, _of_people(narrowing), narrowing.since, narrowing.until)
        state = self.state() if uses_index else self.state()._replace(indexed_to=0, is_remaking=True)
        certain_to = state.indexed_to if rendered.is_exact else 0
        read = partial(self._found, narrowing=narrowing)
        sources = self._sources(Asked(rendered.expression, state, bounds, read, newest_first))
        for part in in_order(sources, time_left):
            yield self._chunk(part, read, certain_to)

    def frequency(self, term: Term, *, in_tools: bool, most: int) -> int:
        sessions = self._few_sessions(Narrowing())
        if sessions == ():
            return 0
        return self._count(term, Bounds(in_tools, sessions), most)

    def unindexed(self, most: int) -> list[Found]:
        where = Condition()
        where.add("id > :after", after=self.state().indexed_to)
        if (sessions := self._few_sessions(Narrowing())) is not None:
            where.add_membership("session_id", sessions)
        sql = f"SELECT id FROM messages WHERE {where.sql} ORDER BY id DESC LIMIT :most"
        return self._found([row[0] for row in self._db.rows(sql, where.parameters | {"most": most})], Narrowing())

    def state(self) -> IndexState:
        if self._known_state is None:
            self._known_state = self._read_state()
        return self._known_state

    def _read_state(self) -> IndexState:
        last = int(self._db.rows("SELECT COALESCE(MAX(id), 0) FROM messages", {})[0][0])
        is_remaking = self._fact(_REMAKING) is not None
        indexed_to = min(self._indexed_to(last, is_remaking=is_remaking), last)
        return IndexState(indexed_to, last, self._knows(indexed_to), is_remaking)

    def count_waiting(self, most: int) -> int:
        sql = """
            SELECT COALESCE(SUM(size), 0) FROM (
              SELECT COALESCE(LENGTH(content), 0) + COALESCE(LENGTH(tool_calls), 0) AS size FROM messages
              WHERE id > :after ORDER BY id LIMIT :most) AS next"""
        return int(self._db.rows(sql, {"after": self._taken_in(), "most": most})[0][0])

    def waiting(self, most: int) -> Waiting:
        after = self._taken_in()
        entries = list(self._entries(after, most))
        prepared = self._prepared(entries)
        is_last = not entries or not self._db.rows(
            "SELECT 1 FROM messages WHERE id > :id LIMIT 1", {"id": entries[-1].id}
        )
        return Waiting(after, entries[-1].id if entries else after, is_last, prepared)

    def take_in(self, waiting: Waiting) -> None:
        self._known_state = None
        if self._taken_in() != waiting.after:
            return  # somebody else was faster
        self._index(waiting.prepared)
        self._note(_INDEXED_TO, str(waiting.upto))
        if waiting.is_last:
            self._db.run("DELETE FROM state_meta WHERE key = :key", {"key": _REMAKING})

    def begin_again(self) -> None:
        self._known_state = None
        self._empty()
        self._note(_INDEXED_TO, "0")
        self._note(_REMAKING, "1")

    @abstractmethod
    def _sources(self, asked: "Asked") -> list[Source]:
        """Every message that an expression proposes, and every one that the index does not have."""

    @abstractmethod
    def _count(self, term: Term, bounds: Bounds, most: int) -> int:
        """How many messages have a term, as far as that can be told from their tokens."""

    @abstractmethod
    def _indexed_to(self, last: int, *, is_remaking: bool) -> int:
        """The last message that is found through the index."""

    @abstractmethod
    def _knows(self, message_id: int) -> bool:
        """Whether the index is there and finds the last message that it took in."""

    @abstractmethod
    def _prepared(self, entries: list[Entry]) -> object:
        """What takes time before messages can be taken in, and needs no lock."""

    @abstractmethod
    def _index(self, prepared: object) -> None:
        """Take prepared messages into the index."""

    @abstractmethod
    def _empty(self) -> None:
        """Leave nothing in the index."""

    def _render(self, node: Node) -> Rendered:
        key = repr(node)  # equal tuples of different kinds are different nodes
        if key not in self._rendered:
            self._rendered[key] = render(node, self._words_with, self.spelling)
        return self._rendered[key]

    def _entries(self, after: int, most: int) -> Iterator[Entry]:
        """The next messages, as many as are taken in at once."""
        sql = """
            SELECT m.id, m.session_id, m.role, COALESCE(s.kind, ''), m.content, m.tool_calls
            FROM messages m LEFT JOIN sessions s ON s.id = m.session_id WHERE m.id > :after ORDER BY m.id LIMIT :most"""
        characters = 0
        for message_id, session_id, role, kind, content, calls in self._db.stream(sql, {"after": after, "most": most}):
            text = searched(role, content, calls)
            yield Entry(message_id, session_id, role, kind, text)
            characters += len(text)
            if characters > _MOST_CHARACTERS:
                return

    def _chunk(self, part: Part, read: Callable[[list[int]], list[Found]], certain_to: int) -> Chunk:
        """The messages of a part, read where that was not done before."""
        unread = [one.id for one in part.messages if one.found is None]
        read_now = {one.id: one for one in read(unread)} if unread else {}
        found = [one.found or read_now.get(one.id) for one in part.messages]
        return Chunk([one for one in found if one is not None], certain_to, part.is_cut)

    def _add_ids(self, where: Condition, ids: Collection[int]) -> None:
        where.add_membership("m.id", ids)

    def _few_sessions(self, narrowing: Narrowing) -> tuple[str, ...] | None:
        """The only sessions that may have an answer, when they are few enough to be named."""
        asked = narrowing._replace(roles=(), exclude_sessions=())
        if asked not in self._few:
            where = _of_sessions(self._scope, asked)
            sql = f"SELECT s.id FROM sessions s WHERE {where.sql} LIMIT {FEW_SESSIONS + 1}"
            is_bounded = not self._scope.sees_all or asked._replace(kinds=(), exclude_kinds=()) != Narrowing()
            rows = self._db.rows(sql, where.parameters) if is_bounded else []
            is_few = is_bounded and len(rows) <= FEW_SESSIONS
            self._few[asked] = tuple(row[0] for row in rows) if is_few else None
        return self._few[asked]

    def _count_visible(self, ids: Collection[int]) -> int:
        where = visible(self._scope, "s")
        where.add_membership("m.id", ids)
        sql = f"SELECT count(*) FROM messages m JOIN sessions s ON s.id = m.session_id WHERE {where.sql}"
        return int(self._db.rows(sql, where.parameters)[0][0])

    def _found(self, ids: list[int], narrowing: Narrowing) -> list[Found]:
        found: list[Found] = []
        for batch in batches(ids):
            where = _narrowed(self._scope, narrowing)
            self._add_ids(where, batch)
            sql = f"""
                SELECT {_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id
                WHERE {where.sql}"""
            found += (Found(*row) for row in self._db.rows(sql, where.parameters))
        return found

    def _words_with(self, part: str) -> list[str] | None:
        if part not in self._words:
            self._words[part] = self._all_words_with(part)
        return self._words[part]

    def _all_words_with(self, part: str) -> list[str] | None:
        like = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        sql = "SELECT DISTINCT word FROM search_words WHERE word LIKE :like ESCAPE '\\' LIMIT :most"
        rows = self._db.rows(sql, {"like": f"%{like}%", "most": _MOST_WORDS + 1})
        return None if len(rows) > _MOST_WORDS else [row[0] for row in rows]

    def _taken_in(self) -> int:
        return int(self._fact(_INDEXED_TO) or 0)

    def _fact(self, key: str) -> str | None:
        rows = self._db.rows("SELECT value FROM state_meta WHERE key = :key", {"key": key})
        return rows[0][0] if rows else None

    def _note(self, key: str, value: str) -> None:
        sql = """
            INSERT INTO state_meta (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"key": key, "value": value})


def _of_people(narrowing: Narrowing) -> bool | None:
    if narrowing.kinds == (Kind.INTERACTIVE,):
        return True
    if Kind.INTERACTIVE in narrowing.exclude_kinds or (narrowing.kinds and Kind.INTERACTIVE not in narrowing.kinds):
        return False
    return None


def _narrowed(scope: Scope, narrowing: Narrowing) -> Condition:
    where = _of_sessions(scope, narrowing._replace(since=None, until=None))
    where.add("m.state <> 'undone'")
    if narrowing.roles:
        where.add_membership("m.role", narrowing.roles)
    if narrowing.since is not None:
        where.add("m.timestamp >= :since", since=narrowing.since)
    if narrowing.until is not None:
        where.add("m.timestamp < :until", until=narrowing.until)
    if narrowing.exclude_sessions:
        where.add_membership("m.session_id", narrowing.exclude_sessions, negated=True)
    return where


def _of_sessions(scope: Scope, narrowing: Narrowing) -> Condition:
    """The sessions in which a message may be that is meant."""
    where = visible(scope, "s")
    if narrowing.sources:
        where.add_membership("s.source", narrowing.sources)
    if narrowing.exclude_sources:
        where.add_membership("s.source", narrowing.exclude_sources, negated=True)
    if narrowing.kinds:
        where.add_membership("s.kind", narrowing.kinds)
    if narrowing.exclude_kinds:
        where.add_membership("s.kind", narrowing.exclude_kinds, negated=True)
    if narrowing.since is not None:
        where.add("s.last_active_at >= :since", since=narrowing.since)
    if narrowing.sessions:
        where.add_membership("s.id", narrowing.sessions)
    if narrowing.session_prefix:
        prefix = narrowing.session_prefix
        where.add("s.id >= :prefix AND s.id < :end", prefix=prefix, end=prefix + LAST_CHARACTER)
    if narrowing.tag is not None:
        tagged = "EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = :tag)"
        where.add(tagged, tag=narrowing.tag)
    return where
