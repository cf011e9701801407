"""Past conversations for somebody who asks in plain words: found, named and read, in one transaction.

A question is looked for by the words that say something, then as it stands, then by the roots of its rarest words. All
that is found is compared by how much of the question the whole conversation has. What this agent itself said, and what
it was only asked, repeats the past and is passed over; what it was told can be found like anything else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from segue.core.errors import Ambiguous, IndexDamaged
from segue.core.extracts import Extract, Spoken, answering, roots_of, share_of
from segue.core.messages import Message, State
from segue.core.query import Or, Prefix, Query, parse
from segue.core.recollection import FEW_CHARACTERS
from segue.core.requests import Days, is_asked
from segue.core.sessions import Kind, Listed, Session
from segue.core.stopwords import says_nothing, telling_words
from segue.core.tokens import fold
from segue.ports.store import Filter, Narrowing, Transaction
from segue.sessions.finding import find_conversation, find_parts, find_tip, find_titled, get_session
from segue.sessions.listing import list_sessions
from segue.sessions.recalling import Recollection, recall
from segue.sessions.searching import INCOMPLETE, REBUILDING, Hit

PROVIDER = "offline"
"""Who said it, in the rows of this agent's own replies."""
BEST = 3
_CANDIDATES = 6
_ROUNDS = 4
_ROOTS = 3
_MOST_ROOTS = 32  # of a long question are compared
_LONG = 4  # characters of a root that can stand for a word
_HITS = 3  # of a conversation are read for a passage
_COUNTED = 1000
_SHORTEST_BEGINNING = 4  # of a title or an id that somebody typed
_TITLES = 1000  # of the last conversations are looked at
_OF_THE_TITLE = 0.5
"""How much of a question a title has to have for its conversation to be found by it."""
_LATELY = 20  # messages that show whether this agent took part


class Moment(NamedTuple):
    """When somebody asks, where, and for how many seconds more one may look."""

    now: float
    zone: tzinfo
    time_left: Callable[[], float]


class Remembered(NamedTuple):
    """A conversation that fits a question."""

    session: Session
    passage: Extract
    share: float
    """How much of the question the conversation has, its title included."""
    named: float
    """And how much of it the title alone."""
    is_told_to_us: bool = False
    """Whether nobody but this agent answered."""


class Memory(NamedTuple):
    conversations: list[Remembered]
    notes: list[str]

    @property
    def clear(self) -> Remembered | None:
        """The one that is meant, if only one can be: it alone has all the words, in its title or anywhere."""
        named = [one for one in self.conversations if one.named >= 1]
        whole = named or [one for one in self.conversations if one.share >= 1]
        return whole[0] if len(whole) == 1 else None


def remember(tx: Transaction, text: str, moment: Moment, current: str, days: Days | None = None) -> Memory:
    """The conversations that answer a question best, the best first, and what should be said of the search."""
    if says_nothing(text):
        return Memory([], [])
    words = telling_words(text)
    roots = roots_of(words)[:_MOST_ROOTS]
    narrowing = _within(days, moment)
    found: dict[str, _Candidate] = {}
    notes: list[str] = []
    for query in _queries(tx, text, words, roots):
        for one in _recalled(tx, query, moment, current, narrowing, notes):
            found.setdefault(one.session.id, one).hits.extend(one.hits)
    for one in _titled(tx, roots, current, narrowing):
        found.setdefault(one.session.id, one)
    judged = [_remembered(tx, one, roots) for one in found.values() if _has_any(one, words, roots)]
    judged.sort(key=lambda one: (one.session.kind != Kind.INTERACTIVE, -one.share, one.is_told_to_us))
    return Memory(judged[:BEST], list(dict.fromkeys(notes)))


def recent(tx: Transaction, current: str, moment: Moment, days: Days | None, limit: int) -> list[Listed]:
    """The conversations that people had last, but for the present one."""
    span = _within(days, moment)
    wanted = Filter(kinds=(Kind.INTERACTIVE,), active_since=span.since, inactive_since=span.until, archived=None)
    here = _here(tx, current)
    return [one for one in list_sessions(tx, wanted, limit + len(here)) if one.id not in here][:limit]


def latest(tx: Transaction, current: str, moment: Moment) -> str | None:
    """The conversation before this one that more was said in than questions to this agent."""
    others = recent(tx, current, moment, None, 20)
    return next((one.id for one in others if not _is_ours_alone(tx, one.id)), None)


def named(tx: Transaction, words: str) -> str | None:
    """The conversation with this id or title, or the only one whose title, or id, begins so."""
    for wanted in dict.fromkeys([words.strip(" `'\""), " ".join(telling_words(words))]):
        if tx.sessions.find(wanted):
            return find_tip(tx, wanted)
        try:
            found = find_titled(tx, wanted)
        except Ambiguous:
            return None
        if found := found or _beginning(tx, wanted):
            return find_tip(tx, found)
    return None


def _beginning(tx: Transaction, wanted: str) -> str | None:
    if len(wanted) < _SHORTEST_BEGINNING:
        return None
    found = list_sessions(tx, Filter(archived=None, beginning=wanted), 2)
    return found[0].id if len(found) == 1 else None


def said_here(tx: Transaction, text: str, current: str) -> str:
    """What the present conversation itself has of a question, before it was asked; nothing when it has none of it."""
    roots = () if says_nothing(text) else roots_of(telling_words(text))[:_MOST_ROOTS]
    if not roots or tx.sessions.find(current) is None:
        return ""
    said = [one for one in _theirs(tx.messages.of(current)) if one.content and text not in one.content]
    passage = answering([spoken for one in said if (spoken := _spoken(one))], roots)
    return passage.text if passage.share else ""


def spoken_in(tx: Transaction, session_id: str) -> list[Spoken]:
    """What people and agents said in a conversation, from its beginning."""
    return [
        spoken
        for part in find_parts(tx, session_id)
        for message in tx.messages.of(part.id, every_state=True)
        if (spoken := _spoken(message))
    ]


def place_in(said: Sequence[Spoken], about: str) -> int | None:
    """The message that has most of some words, if any has one."""
    roots = roots_of(telling_words(about)) if about else ()
    shares = [share_of(roots, one.text) for one in said]
    return shares.index(max(shares)) if any(shares) else None


def says_enough(text: str, words: int) -> bool:
    """Whether a question has so many words that a passage can be told by them."""
    return len(roots_of(telling_words(text))) >= words


class _Candidate(NamedTuple):
    session: Session
    text: str
    hits: list[Hit]
    is_told_to_us: bool = False


def _queries(tx: Transaction, text: str, words: Sequence[str], roots: Sequence[str]) -> Iterator[Query]:
    told = " ".join(words)
    yield parse(told)
    if told != text:
        yield parse(text)
    if rarest := _rarest(tx, [root for root in roots if len(root) >= _LONG and root.isalpha()]):
        yield Query(rarest[0] if len(rarest) == 1 else Or(tuple(rarest)))


def _rarest(tx: Transaction, roots: Iterable[str]) -> list[Prefix]:
    try:
        counted = [(tx.search.frequency(Prefix(root), in_tools=False, most=_COUNTED), Prefix(root)) for root in roots]
    except IndexDamaged:
        return []  # without an index every word is looked through for, and twice is no better than once
    return [prefix for frequency, prefix in sorted(counted) if frequency][:_ROOTS]


def _recalled(
    tx: Transaction, query: Query, moment: Moment, current: str, narrowing: Narrowing, notes: list[str]
) -> list[_Candidate]:
    """What a query finds that people or models said; what was said to this agent alone does not hide the rest."""
    kept: dict[str, _Candidate] = {}
    for _ in range(_ROUNDS):
        found = recall(tx, query, *moment, current=current, limit=_CANDIDATES, narrowing=narrowing, size=FEW_CHARACTERS)
        notes += [note for note in found.notes if note in (INCOMPLETE, REBUILDING)]
        candidates = [_candidate(tx, one) for one in found.recollections]
        kept |= {one.session.id: one for one in candidates if one.hits}
        others = [one for one in candidates if one.hits and not one.is_told_to_us]
        if len(others) >= BEST or len(others) == len(candidates):
            break
        repeated = [part.id for one in candidates if one not in others for part in find_parts(tx, one.session.id)]
        narrowing = narrowing._replace(exclude_sessions=(*narrowing.exclude_sessions, *repeated))
    return list(kept.values())


def _candidate(tx: Transaction, one: Recollection) -> _Candidate:
    hits = [hit for hit in one.hits[: 2 * _HITS] if not _is_ours(tx, hit)]
    lately = _answers(tx, one.session.id)
    if PROVIDER not in lately:
        return _Candidate(one.session, one.text, hits)
    return _Candidate(one.session, _text_of(tx, one.session.id), hits, set(lately) == {PROVIDER})


def _has_any(one: _Candidate, words: Sequence[str], roots: Sequence[str]) -> bool:
    """Whether a conversation has anything of what was asked, be it part of a word."""
    text = f"{one.session.title or ''}\n{one.text}"
    folded = fold(text)
    return share_of(roots, text) > 0 or any(fold(word.strip('"~*?!.,')) in folded for word in words)


def _titled(tx: Transaction, roots: Sequence[str], current: str, narrowing: Narrowing) -> list[_Candidate]:
    """Conversations whose titles have the words, whatever was said in them."""
    if not roots:
        return []
    wanted = Filter(archived=None, active_since=narrowing.since, inactive_since=narrowing.until, min_messages=1)
    shares = {one.id: share_of(roots, one.title) for one in list_sessions(tx, wanted, _TITLES) if one.title}
    here = _here(tx, current)
    fits = [one for one, share in shares.items() if share >= _OF_THE_TITLE and one not in here]
    best = sorted(fits, key=lambda one: -shares[one])[:_CANDIDATES]
    return [_Candidate(get_session(tx, one), _text_of(tx, one), []) for one in best]


def _is_ours(tx: Transaction, hit: Hit) -> bool:
    """Whether this agent said it, or was only asked it."""
    said = tx.messages.of(hit.found.session_id, every_state=True, after=hit.found.seq - 1, limit=2)
    return bool(said) and said[0] not in _theirs(said)


def _theirs(said: Sequence[Message]) -> list[Message]:
    """What of a conversation this agent neither said nor was only asked."""
    behind = [*said[1:], None]
    return [one for one, after in zip(said, behind, strict=True) if not (_is_reply(one) or _is_request(one, after))]


def _is_reply(message: Message) -> bool:
    return message.role == "assistant" and message.provider == PROVIDER


def _is_request(message: Message, after: Message | None) -> bool:
    return message.role == "user" and after is not None and _is_reply(after) and is_asked(message.content or "")


def _answers(tx: Transaction, session_id: str) -> list[str | None]:
    """Who answered lately."""
    return [one.provider for one in tx.messages.last(session_id, _LATELY) if one.role == "assistant"]


def _is_ours_alone(tx: Transaction, session_id: str) -> bool:
    """Whether nothing was said lately but questions to this agent, and its answers."""
    said = tx.messages.last(session_id, _LATELY)
    return any(map(_is_reply, said)) and not any(one.role in ("user", "assistant") for one in _theirs(said))


def _text_of(tx: Transaction, session_id: str) -> str:
    """All that can be found in a conversation, as one text."""
    parts = [_theirs(tx.messages.of(part.id, every_state=True)) for part in find_parts(tx, session_id)]
    return "\n".join(spoken.text for part in parts for message in part if (spoken := _spoken(message)))


def _remembered(tx: Transaction, one: _Candidate, roots: Sequence[str]) -> Remembered:
    title = one.session.title or ""
    passage = answering(_near(tx, one.hits[:_HITS]), roots)
    share, named = share_of(roots, f"{title}\n{one.text}"), share_of(roots, title)
    return Remembered(one.session, passage, share, named, one.is_told_to_us)


def _near(tx: Transaction, hits: Sequence[Hit]) -> list[Spoken]:
    """The messages that were found, with the one before and the one behind each."""
    found = {
        (message.session_id, message.seq): message
        for hit in hits
        for message in _theirs(
            tx.messages.of(hit.found.session_id, every_state=True, after=hit.found.seq - 2, limit=4)[:4]
        )
        if message.seq <= hit.found.seq + 1
    }
    return [spoken for _, message in sorted(found.items()) if (spoken := _spoken(message))]


def _spoken(message: Message) -> Spoken | None:
    is_said = message.role in ("user", "assistant") and message.state != State.UNDONE
    return Spoken(message.role, message.content) if is_said and message.content else None


def _within(days: Days | None, moment: Moment) -> Narrowing:
    if days is None:
        return Narrowing()
    today = datetime.fromtimestamp(moment.now, moment.zone).date()
    since, until = today - timedelta(days.first), today - timedelta(days.last - 1)
    begins = [datetime(day.year, day.month, day.day, tzinfo=moment.zone).timestamp() for day in (since, until)]
    return Narrowing(since=begins[0], until=begins[1])


def _here(tx: Transaction, current: str) -> set[str]:
    return set(find_conversation(tx, current)) if tx.sessions.find(current) else set()
