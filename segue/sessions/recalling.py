"""What was said before about something: material for an agent's answer, with or without a model to summarise it."""

from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import NamedTuple

from segue.core.messages import Message, State
from segue.core.query import Query, Term, terms_of
from segue.core.recollection import MOST_CHARACTERS, retold, told
from segue.core.sessions import Kind, Session
from segue.ports.store import Narrowing, Transaction
from segue.sessions.finding import find_ancestors, find_conversation, find_parts
from segue.sessions.searching import INCOMPLETE, REBUILDING, Answer, Hit, Wish, by_conversation, search

_LOOKED_AT = 60
_ROUNDS = 8
_ENDS = 2  # messages shown of the beginning and of the end
_LONGEST_END = 1_000
_ANYWHERE = Narrowing()

Summarise = Callable[[str, "Recollection"], str]
"""Makes a few sentences of a conversation, given what was asked."""
_Conversations = dict[str, list[Hit]]
"""What was found in each conversation, by the id of its newest part; the best first."""


class Recollection(NamedTuple):
    """A past conversation in which something was found."""

    session: Session
    """Its newest part."""
    hits: list[Hit]
    opening: list[str]
    closing: list[str]
    text: str
    summary: str | None = None


class Recall(NamedTuple):
    recollections: list[Recollection]
    notes: list[str]


def recall(
    tx: Transaction,
    query: Query,
    now: float,
    zone: tzinfo,
    time_left: Callable[[], float],
    *,
    current: str | None = None,
    limit: int = 3,
    narrowing: Narrowing = _ANYWHERE,
    size: int = MOST_CHARACTERS,
) -> Recall:
    """The conversations that answer best, people's first; what is being said now is left out with all it started.

    Earlier parts of the conversation that is going on are looked through: of them a model is told a summary alone.

    Of each, the text has at most `size` characters, and its beginning and end together at most half as many.
    """

    def ask(where: Narrowing) -> Answer:
        return search(tx, query, Wish(limit=_LOOKED_AT, narrowing=where), now, zone, time_left)

    here = _told_already(tx, current) if current else []
    found, notes = _gathered(tx, ask, _without(narrowing, here), limit, time_left)
    terms = list(terms_of(query.tree))
    best = sorted(found.items(), key=lambda one: _standing(one[1][0]))[: max(limit, 0)]
    return Recall([_recollection(tx, tip, hits, terms, size) for tip, hits in best], notes)


def _told_already(tx: Transaction, current: str) -> list[str]:
    """The session that asks, and those that its conversation has started."""
    session = tx.sessions.find(current)
    if session is None:
        return []
    earlier = {ancestor.id for ancestor in find_ancestors(tx, session)}
    return [one for one in find_conversation(tx, current) if one not in earlier]


def summarised(asked: str, found: Recall, summarise: Summarise) -> Recall:
    """The same with a summary of each, made outside any transaction: a model takes its time.

    Where none can be made, there is none, and a note says so.
    """
    tried = [one._replace(summary=_summary(asked, one, summarise)) for one in found.recollections]
    lacking = [one.session.title or one.session.id for one in tried if one.summary is None]
    return Recall(tried, _once([*found.notes, *(f"No summary could be made of '{name}'." for name in lacking)]))


def _summary(asked: str, one: Recollection, summarise: Summarise) -> str | None:
    try:
        return summarise(asked, one).strip() or None
    except Exception:  # noqa: BLE001 - whatever a model's maker raises: the other conversations are still worth telling
        return None


def _gathered(
    tx: Transaction,
    ask: Callable[[Narrowing], Answer],
    narrowing: Narrowing,
    limit: int,
    time_left: Callable[[], float],
) -> tuple[_Conversations, list[str]]:
    """Conversations in which something is found. Many hits in one do not hide the next: it is asked for anew."""
    answer = ask(narrowing)
    notes = answer.notes
    found = by_conversation(tx, answer.hits)
    rounds = 1
    while len(answer.hits) == _LOOKED_AT and len(found) < limit:
        if rounds == _ROUNDS or time_left() <= 0:
            return found, _once([*notes, INCOMPLETE])
        rounds += 1
        answer = ask(_without(narrowing, (part.id for tip in found for part in find_parts(tx, tip))))
        if not {*answer.notes} <= {*notes, INCOMPLETE, REBUILDING}:
            break  # nobody else said it, and the search went on to something else
        notes = [*notes, *answer.notes]
        for tip, hits in by_conversation(tx, answer.hits).items():
            found.setdefault(tip, []).extend(hits)
    return found, _once(notes)


def _without(narrowing: Narrowing, session_ids: Iterable[str]) -> Narrowing:
    return narrowing._replace(exclude_sessions=(*narrowing.exclude_sessions, *session_ids))


def _standing(best: Hit) -> tuple[bool, float]:
    """Where a conversation stands among others by its best hit: what runs by itself after people."""
    return best.found.kind != Kind.INTERACTIVE, -best.score


def _once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))


def _recollection(tx: Transaction, tip: str, hits: list[Hit], terms: list[Term], size: int) -> Recollection:
    parts = find_parts(tx, tip)
    messages = [message for part in parts for message in _spoken_in(tx, part.id)]
    places = {(message.session_id, message.seq): at for at, message in enumerate(messages)}
    wanted = [(hit.found.session_id, hit.found.seq) for hit in hits]
    text = retold(messages, [places[one] for one in wanted if one in places], size, terms=terms)
    spoken = [message for message in messages if message.role in ("user", "assistant") and message.content]
    return Recollection(parts[-1], hits, _words(spoken[:_ENDS], size), _words(spoken[-_ENDS:], size), text)


def _spoken_in(tx: Transaction, session_id: str) -> list[Message]:
    """Everything that was said, whether a model is still told of it or not, but for what was undone."""
    return [one for one in tx.messages.of(session_id, every_state=True) if one.state != State.UNDONE]


def _words(messages: list[Message], size: int) -> list[str]:
    most = min(_LONGEST_END, size // (4 * _ENDS))
    return [line for message in messages if (line := told(message, most))]
