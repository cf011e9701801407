"""Messages found by what they say. Strictly first; then, when nothing fits, by parts of words, and by some of them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, tzinfo
from enum import StrEnum
from functools import cached_property
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple

from segue.core.errors import IndexDamaged
from segue.core.matching import Found, Needle, Page, is_found, matches, needle_of, text_of
from segue.core.messages import SUMMARY_SEQ
from segue.core.query import And, Field, Node, Not, Only, Or, Part, Phrase, Prefix, Query, Term, Word, terms_of
from segue.core.ranking import Weighed, rarity, score
from segue.core.sessions import Kind
from segue.core.snippets import snippet
from segue.core.tokens import fold, is_dense, tokens_of
from segue.ports.store import FEW_SESSIONS, Chunk, Narrowing, Transaction
from segue.sessions.finding import find_ancestors, find_tip

RANKED = 200
"""As many of the newest matches are compared with each other; older ones of a very common word are not."""
_COUNTED = 1000
_LOOSE = 600
_WEIGHED_CHARACTERS = 50_000

REBUILDING = "The search index is damaged or being made anew, and searching is slow; `segue doctor --reindex` mends it."
INCOMPLETE = "The search is incomplete: time ran out before everything was looked at. A more specific query finds more."
CUT = "Only the beginning of the question was used: it was too long."


class Sort(StrEnum):
    RANK = "rank"
    NEW = "new"
    OLD = "old"


class Wish(NamedTuple):
    """How somebody wants the answer."""

    limit: int = 20
    offset: int = 0
    sort: Sort = Sort.RANK
    narrowing: Narrowing = Narrowing()


class Hit(NamedTuple):
    found: Found
    score: float
    snippet: str


class Answer(NamedTuple):
    hits: list[Hit]
    notes: list[str]
    is_damaged: bool

    @property
    def is_incomplete(self) -> bool:
        """Whether it was cut off by time, so that there may be more, or anything at all."""
        return INCOMPLETE in self.notes


class Search:
    """One search in one transaction: what is looked for, where, and for how long."""

    def __init__(
        self, tx: Transaction, query: Query, wish: Wish, now: float, zone: tzinfo, time_left: Callable[[], float]
    ) -> None:
        self._tx, self._wish, self._now, self._zone, self._time_left = tx, wish, now, zone, time_left
        self._narrowing, self._tree = _narrowed(query.tree, wish.narrowing, zone)
        self._in_tools = query.in_tools or "tool" in self._narrowing.roles
        self._asks_for_tags = _has_tags(self._tree)
        self._state = tx.search.state()
        self._is_damaged = not self._state.is_well
        self._is_complete = True
        self._compared = RANKED
        self._frequencies: dict[Needle, int] = {}
        self._notes = [CUT] if query.is_cut else []

    def answer(self) -> Answer:
        """Everything that is meant, the best first."""
        terms = list(terms_of(self._tree))
        found = self._gather(self._tree, self._most + 1)
        if not found and self._tree is not None:
            found, terms = self._otherwise(terms)
        if len(found) > self._most and self._compared == RANKED:
            found.pop()
            if self._wish.sort is Sort.RANK:
                self._notes.append(f"Very many messages fit; only the newest {self._most:,} were compared.")
        hits = self._hits(found, self._weighed(terms))
        is_rebuilding = self._is_damaged or self._state.is_remaking
        notes = [*self._notes, *[REBUILDING] * is_rebuilding, *[INCOMPLETE] * (not self._is_complete)]
        return Answer(hits, notes, self._is_damaged)

    @property
    def _most(self) -> int:
        wanted = self._wish.offset + self._wish.limit
        return max(wanted, RANKED) if self._wish.sort is Sort.RANK else wanted

    def _otherwise(self, terms: list[Term]) -> tuple[list[Found], list[Term]]:
        """Nothing has all of it: a word may be a part of one, a tool may have said it, or nobody all of it at once."""
        found, others = self._by_parts()
        if found:
            return found, others
        if not self._in_tools and (outputs := self._count_outputs()):
            self._notes.append(f"{outputs} more in the output of tools: add in:tools.")
        for attempt in (self._across_messages, self._loosely):
            found, others = attempt()
            if found:
                return found, others
        return [], terms

    def _by_parts(self) -> tuple[list[Found], list[Term]]:
        """Words that no message has which may be seen, taken as parts of words."""
        nodes = self._tree.nodes if isinstance(self._tree, And) else (self._tree,)
        unused = [node for node in nodes if isinstance(node, Word) and self._is_unused(node)]
        if not unused:
            return [], []
        tree = _together([Part(node.text) if node in unused else node for node in nodes if node is not None])
        found = self._gather(tree, self._most)
        if found:
            words = ", ".join(f"'{node.text}'" for node in unused)
            self._notes.append(f"No message has the word {words}; these have it as a part of another.")
        return found, list(terms_of(tree))

    def _is_unused(self, word: Word) -> bool:
        """Whether it is a word, and no message that may be seen has it."""
        needle = needle_of(word)
        if not needle.tokens.words or not self._frequency(word):
            return bool(needle.tokens.words)
        is_certain = needle.is_exact and len(needle.tokens.words) == 1
        return not is_certain and self._is_complete and next(self._all(word, Narrowing()), None) is None

    def _across_messages(self) -> tuple[list[Found], list[Term]]:
        """Conversations in which each word was said, if not in one message."""
        nodes = self._tree.nodes if isinstance(self._tree, And) else ()
        terms = [node for node in nodes if isinstance(node, Word | Phrase | Prefix)]
        if len(terms) < 2 or len(terms) < len(nodes):
            return [], []
        narrowing = self._narrowing
        for term in sorted(terms, key=self._frequency):
            having = {one.session_id for one in islice(self._all(term, narrowing), _COUNTED)}
            narrowing = narrowing._replace(sessions=tuple(sorted(having)))
            if not 0 < len(having) <= FEW_SESSIONS:
                return [], []
        found = list(islice(self._all(Or(tuple(terms)), narrowing), _LOOSE))
        if found:
            self._compared = _LOOSE
            self._notes.append("No message has all of it; these conversations do.")
        return found, list(terms)

    def _loosely(self) -> tuple[list[Found], list[Term]]:
        """Messages that have some of the words, the rarest ones above all."""
        words = list(dict.fromkeys(token for term in terms_of(self._tree) for token in _tokens(term)))
        weighed = [(self._frequency(Word(word)), Word(word)) for word in words] if len(words) > 1 else []
        known = sorted((one for one in weighed if one[0]), key=lambda one: one[0])
        chosen: list[Node] = []
        total = 0
        for frequency, word in known:
            total += frequency
            if chosen and total > _LOOSE:
                break
            chosen.append(word)
        if not chosen:
            return [], []
        found = self._gather(chosen[0] if len(chosen) == 1 else Or(tuple(chosen)), _LOOSE)
        if found:
            self._compared = _LOOSE
            self._notes.append("No message has all of it; these have some of the words.")
        return found, [word for _, word in known]

    def _count_outputs(self) -> str:
        """How many tools said it; nothing when none did."""
        self._in_tools = True
        found = len(self._gather(self._tree, RANKED + 1))
        self._in_tools = False
        return f"More than {RANKED}" if found > RANKED else f"{found}" if found else ""

    def _frequency(self, term: Term) -> int:
        """In how many messages a term is, those that wait for the index included."""
        needle = needle_of(term)
        if needle not in self._frequencies:
            self._frequencies[needle] = self._counted(term) if self._time_left() > 0 else 1
        return self._frequencies[needle]

    def _counted(self, term: Term) -> int:
        waiting = sum(is_found(needle_of(term), page) for page in self._waiting)
        try:
            return waiting + self._tx.search.frequency(term, in_tools=self._in_tools, most=_COUNTED)
        except IndexDamaged:
            return waiting or 1

    @cached_property
    def _waiting(self) -> list[Page]:
        waiting = self._tx.search.unindexed(_COUNTED)
        return [Page(text_of(found, in_tools=self._in_tools)) for found in waiting]

    def _weighed(self, terms: list[Term]) -> list[Weighed]:
        if len(terms) == 1:
            return [Weighed(needle_of(terms[0]), 1.0)]
        return [Weighed(needle_of(term), rarity(self._frequency(term), self._messages)) for term in terms]

    @cached_property
    def _messages(self) -> int:
        """How many there are that may be seen."""
        if self._tx.scope.sees_all:
            return max(self._state.last_id, 1)
        return max(sum(one.messages for one in self._tx.sessions.by_source()), 1)

    def _gather(self, tree: Node | None, most: int) -> list[Found]:
        """The first that are meant; people's before those of what runs by itself."""
        if self._narrowing.kinds or self._wish.sort is not Sort.RANK:
            return list(islice(self._all(tree, self._narrowing), most))
        people = list(islice(self._all(tree, self._narrowing._replace(kinds=(Kind.INTERACTIVE,))), most))
        others = self._all(tree, self._narrowing._replace(exclude_kinds=(Kind.INTERACTIVE,)))
        return people + list(islice(others, most - len(people)))

    def _all(self, tree: Node | None, narrowing: Narrowing) -> Iterator[Found]:
        """Whatever is meant, in the order of time; from the messages themselves where the index is of no use."""
        told: set[int] = set()
        try:
            yield from self._through(tree, narrowing, told)
        except IndexDamaged:
            self._is_damaged = True
            yield from self._through(tree, narrowing, told)

    def _through(self, tree: Node | None, narrowing: Narrowing, told: set[int]) -> Iterator[Found]:
        chunks = self._tx.search.walk(
            tree,
            narrowing,
            in_tools=self._in_tools,
            time_left=self._time_left,
            newest_first=self._wish.sort is not Sort.OLD,
            uses_index=not self._is_damaged,
        )
        for chunk in chunks:
            for found in self._meant(tree, chunk):
                if found.id not in told:
                    told.add(found.id)
                    yield found
            if chunk.is_cut:
                self._is_complete = False

    def _meant(self, tree: Node | None, chunk: Chunk) -> Iterator[Found]:
        """Those that are meant when one looks at them, as long as there is time."""
        for found in self._tagged(chunk.found):
            if found.id <= chunk.certain_to:
                yield found
                continue
            if self._time_left() <= 0:
                self._is_complete = False
                return
            text = text_of(found, in_tools=self._in_tools)
            if text and (tree is None or matches(tree, found, Page(text), self._zone)):
                yield found

    def _tagged(self, found: list[Found]) -> list[Found]:
        if not self._asks_for_tags:
            return found
        tags = self._tx.sessions.tags({one.session_id for one in found})
        return [one._replace(tags=tuple(tags.get(one.session_id, ()))) for one in found]

    def _hits(self, found: list[Found], terms: list[Weighed]) -> list[Hit]:
        first, last = self._wish.offset, self._wish.offset + self._wish.limit
        if self._wish.sort is Sort.RANK:
            scored = self._ranked(found[: self._compared], terms) + [(one, 0.0) for one in found[self._compared :]]
        else:
            found.sort(key=_AGE, reverse=self._wish.sort is Sort.NEW)
            scored = [(one, 0.0) for one in found]
        return [self._hit(one, points, terms) for one, points in scored[first:last]]

    def _ranked(self, found: list[Found], terms: list[Weighed]) -> list[tuple[Found, float]]:
        scores = {one.id: self._score(one, terms) for one in found}
        for summary in sorted((one for one in found if one.seq == SUMMARY_SEQ), key=_AGE):
            scores[summary.id] = min(scores[summary.id], self._least_of_summarised(summary, found, scores))
        return sorted(((one, scores[one.id]) for one in found), key=_standing)

    def _least_of_summarised(self, summary: Found, found: list[Found], scores: dict[int, float]) -> float:
        """The lowest score of what a summary is of, so that it does not stand above the words themselves."""
        session = self._tx.sessions.find(summary.session_id)
        earlier = {part.id for part in find_ancestors(self._tx, session)} if session else set()
        return min((scores[one.id] for one in found if one.session_id in earlier), default=inf)

    def _score(self, found: Found, terms: list[Weighed]) -> float:
        if self._time_left() <= 0:
            return 0.0
        folded = fold(text_of(found, in_tools=self._in_tools)[:_WEIGHED_CHARACTERS])
        return score(found, folded, fold(found.title or ""), terms, self._now)

    def _hit(self, found: Found, points: float, terms: list[Weighed]) -> Hit:
        text = text_of(found, in_tools=self._in_tools)
        return Hit(found, points, snippet(text, [term.needle for term in terms]))


def search(
    tx: Transaction, query: Query, wish: Wish, now: float, zone: tzinfo, time_left: Callable[[], float]
) -> Answer:
    """What was said that a query asks for. `time_left` tells for how many seconds more it may look."""
    return Search(tx, query, wish, now, zone, time_left).answer()


def by_conversation(tx: Transaction, hits: Iterable[Hit]) -> dict[str, list[Hit]]:
    """Hits by the newest part of their conversation, in the order of the best of each."""
    tips: dict[str, str] = {}
    found: dict[str, list[Hit]] = {}
    for hit in hits:
        part = hit.found.session_id
        if part not in tips:
            tips[part] = find_tip(tx, part)
        found.setdefault(tips[part], []).append(hit)
    return found


def _standing(scored: tuple[Found, float]) -> tuple[bool, float, bool, float, int]:
    """People's before what runs by itself, the best first, a summary behind its equals; then the newest."""
    found, points = scored
    is_summary = found.seq == SUMMARY_SEQ
    sign = 1 if is_summary else -1  # a summary of a summary is the newer one
    return found.kind != Kind.INTERACTIVE, -points, is_summary, sign * found.timestamp, sign * found.id


_AGE: Callable[[Found], tuple[float, int]] = attrgetter("timestamp", "id")


def _has_tags(node: Node | None) -> bool:
    match node:
        case And(nodes) | Or(nodes):
            return any(map(_has_tags, nodes))
        case Not(inner):
            return _has_tags(inner)
        case Only(Field.TAG):
            return True
    return False


def _tokens(term: Term) -> list[str]:
    """The words of a term; of a script without spaces its pairs."""
    tokens = tokens_of(fold(term.text))
    pairs = [token for token in tokens if len(token) > 1 or not is_dense(token)]
    return pairs or tokens


def _together(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def _narrowed(tree: Node | None, given: Narrowing, zone: tzinfo) -> tuple[Narrowing, Node | None]:
    """What the query narrows as a whole, for the database to do; and what is left of it."""
    nodes = list(tree.nodes) if isinstance(tree, And) else [] if tree is None else [tree]
    rest: list[Node] = []
    for node in nodes:
        narrowed = _narrowing(node, given, zone) if isinstance(node, Only) else None
        if narrowed is None:
            rest.append(node)
        else:
            given = narrowed
    return given, _together(rest) if rest else None


def _narrowing(only: Only, given: Narrowing, zone: tzinfo) -> Narrowing | None:
    value = only.value
    match only.field:
        case Field.SOURCE if not given.sources:
            return given._replace(sources=(value,))
        case Field.ROLE if not given.roles:
            return given._replace(roles=(value,))
        case Field.AFTER if given.since is None:
            return given._replace(since=_beginning_of(value, zone))
        case Field.BEFORE if given.until is None:
            return given._replace(until=_beginning_of(value, zone))
        case Field.SESSION if not given.session_prefix:
            return given._replace(session_prefix=value)
        case Field.TAG if given.tag is None:
            return given._replace(tag=value)
    return None


def _beginning_of(day: str, zone: tzinfo) -> float:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), zone).timestamp()
