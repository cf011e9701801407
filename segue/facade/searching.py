"""Search for programs and people: within a time, on one snapshot, and in the days of whoever asks."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from segue.config import zone_here
from segue.core.errors import Invalid
from segue.core.matching import Found
from segue.core.messages import Message, State
from segue.core.query import parse
from segue.core.scope import Scope
from segue.core.text import cut
from segue.ports.store import Store, Transaction
from segue.sessions.searching import CUT, INCOMPLETE, Answer, Hit, Wish, search

TIME = 0.25
"""Seconds after which the best so far is the answer."""
_CONTEXT = 200
_LOOKED_AT = 2  # messages beside a hit, at first

_log = logging.getLogger(__name__)

T = TypeVar("T")
Ask = Callable[[Wish], Answer]


def answer(store: Store, scope: Scope, query: str, wish: Wish, seconds: float | None = None) -> Answer:
    """What a query asks for, within a time."""
    return consult(store, scope, query, lambda _, ask: ask(wish), seconds)


def consult(
    store: Store, scope: Scope, query: str, work: Callable[[Transaction, Ask], T], seconds: float | None = None
) -> T:
    """Let `work` ask a query, more than once if it likes, and read what belongs to the answers, all on one snapshot.

    The time is for everything that it asks, and begins with the snapshot: nobody is told that there was no time to
    look because a connection was waited for.
    """
    asked, zone, now = parse(query), zone_here(), time.time()
    answers: list[Answer] = []

    def read(tx: Transaction) -> T:
        deadline = time.monotonic() + (TIME if seconds is None else seconds)

        def ask(wish: Wish) -> Answer:
            answers.append(search(tx, asked, wish, now, zone, lambda: deadline - time.monotonic()))
            return answers[-1]

        return work(tx, ask)

    done = store.read(scope, read)
    if any(one.is_damaged for one in answers):
        store.begin_index_again()
    return done


def searching_rows(store: Store, scope: Scope, query: str, wish: Wish) -> list[dict[str, Any]]:
    """The answer as dictionaries."""
    for name, number in (("limit", wish.limit), ("offset", wish.offset)):
        if number < 0:
            raise Invalid(f"The {name} of a search is 0 or more, not {number}.")

    def rows(tx: Transaction, ask: Ask) -> list[dict[str, Any]]:
        answered = ask(wish)
        for note in {INCOMPLETE, CUT} & set(answered.notes):  # a list has no other place for it
            _log.warning("A search may have missed something. %s", note)
        return [as_row(tx, hit) for hit in answered.hits]

    return consult(store, scope, query, rows)


def as_row(tx: Transaction, hit: Hit) -> dict[str, Any]:
    """A hit with what was said before and after it."""
    row = hit.found._asdict()
    for name in ("content", "tool_calls", "kind", "tags"):
        del row[name]
    context = [
        {"role": message.role, "content": cut(message.content or "", _CONTEXT)}
        for message in neighbours(tx, hit.found)
        if message is not None
    ]
    return row | {"snippet": hit.snippet, "score": hit.score, "context": context}


def neighbours(tx: Transaction, found: Found) -> tuple[Message | None, Message | None]:
    """The messages before and after one that was found; what was undone is passed over."""
    around = tx.messages.of(found.session_id, every_state=True, after=found.seq - 2, limit=3)
    near = {message.seq - found.seq: message for message in around}
    if (-1 in near or found.seq == 1) and all(message.state != State.UNDONE for message in around):
        return near.get(-1), near.get(1)
    return message_before(tx, found), message_after(tx, found)


def message_before(tx: Transaction, found: Found) -> Message | None:
    """The message before one that was found; what was undone is passed over."""
    end, size = found.seq, _LOOKED_AT
    while end > 0:
        looked_at = tx.messages.of(found.session_id, every_state=True, after=end - size - 1, limit=size)
        if said := [message for message in looked_at if message.seq < end and message.state != State.UNDONE]:
            return said[-1]
        end, size = end - size, size * 2
    return None


def message_after(tx: Transaction, found: Found) -> Message | None:
    """The message after one that was found; what was undone is passed over."""
    end, size = found.seq, _LOOKED_AT
    while looked_at := tx.messages.of(found.session_id, every_state=True, after=end, limit=size):
        if said := [message for message in looked_at if message.state != State.UNDONE]:
            return said[0]
        end, size = looked_at[-1].seq, size * 2
    return None


def names_in(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a program hands them over: one, several or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())
