"""What was said before about something: material for an agent's answer, with or without a model to summarise it."""

from collections.abc import Callable
from datetime import tzinfo
from typing import NamedTuple

from segue.core.messages import Message
from segue.core.query import Query
from segue.core.recollection import retold
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.finding import find_parts, find_tip
from segue.sessions.searching import Hit, Wish, search

_LOOKED_AT = 60
_ENDS = 2  # messages shown of the beginning and of the end

Summarise = Callable[[str, "Recollection"], str]
"""Makes a few sentences of a conversation, given what was asked."""


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
) -> Recall:
    """The conversations that answer best, the one that is going on left out."""
    answer = search(tx, query, Wish(limit=_LOOKED_AT), now, zone, time_left)
    here = find_tip(tx, current) if current and tx.sessions.find(current) else None
    grouped: dict[str, list[Hit]] = {}
    for hit in answer.hits:
        tip = find_tip(tx, hit.found.session_id)
        if tip != here:
            grouped.setdefault(tip, []).append(hit)
    return Recall([_recollection(tx, tip, hits) for tip, hits in list(grouped.items())[:limit]], answer.notes)


def summarised(asked: str, found: Recall, summarise: Summarise) -> Recall:
    """The same with a summary of each, made outside any transaction: a model takes its time."""
    return found._replace(recollections=[one._replace(summary=summarise(asked, one)) for one in found.recollections])


def _recollection(tx: Transaction, tip: str, hits: list[Hit]) -> Recollection:
    parts = find_parts(tx, tip)
    messages = [message for part in parts for message in tx.messages.of(part.id)]
    wanted = {(hit.found.session_id, hit.found.seq) for hit in hits}
    matches = [at for at, message in enumerate(messages) if (message.session_id, message.seq) in wanted]
    spoken = [message for message in messages if message.role in ("user", "assistant") and message.content]
    return Recollection(parts[-1], hits, _words(spoken[:_ENDS]), _words(spoken[-_ENDS:]), retold(messages, matches))


def _words(messages: list[Message]) -> list[str]:
    return [retold([message], [0]) for message in messages]
