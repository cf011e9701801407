"""Conversations found by what was said in them, while somebody types."""

from collections.abc import Collection
from typing import NamedTuple

from segue.config import zone_here
from segue.core.matching import Page, matches, text_of
from segue.core.query import Prefix, Query, Word, parse
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.searching import Ask, consult
from segue.ports.store import Narrowing, Store, Transaction
from segue.sessions.searching import CUT, INCOMPLETE, REBUILDING, Hit, Wish, by_conversation

Passages = dict[str, list[Hit]]
"""Where it was said, by session: the newest part of each conversation and the part itself; the best first."""

_AT_ONCE = 200  # messages
_ENOUGH = 200  # sessions of the list
_OF_EVERY_ANSWER = (CUT, REBUILDING, INCOMPLETE)


class Said(NamedTuple):
    """What was found, and what is to be known about it."""

    passages: Passages
    notes: list[str]


def passages(store: Store, typed: str, kinds: tuple[str, ...], listed: Collection[str]) -> Said:
    """Whatever says what was typed in sessions of some kinds; the last word may not be finished yet.

    It goes on until enough of the listed sessions are found, however much one of them says it.
    """
    query = as_typed(typed)
    return consult(store, OWNER_AT_CONSOLE, query, lambda tx, ask: _gathered(tx, ask, parse(query), kinds, listed))


def as_typed(typed: str) -> str:
    """The query of somebody who is still typing."""
    last = typed.split()[-1]
    tree = parse(last).tree
    finished = typed.rstrip()
    return f"{finished}*" if isinstance(tree, Word) and isinstance(parse(f"{last}*").tree, Prefix) else finished


def _gathered(tx: Transaction, ask: Ask, query: Query, kinds: tuple[str, ...], listed: Collection[str]) -> Said:
    answer = ask(Wish(limit=_AT_ONCE, narrowing=Narrowing(kinds=kinds)))
    found: Passages = {}
    seen: dict[str, None] = {}
    while True:
        _add(found, by_conversation(tx, answer.hits))
        seen |= dict.fromkeys(hit.found.session_id for hit in answer.hits)
        has_more = len(answer.hits) == _AT_ONCE and _is_meant(tx, query, answer.hits[0])
        if not has_more or sum(session_id in listed for session_id in found) >= _ENOUGH:
            return Said(found, answer.notes)
        further = ask(Wish(limit=_AT_ONCE, narrowing=Narrowing(kinds=kinds, exclude_sessions=tuple(seen))))
        if not further.hits or not _is_meant(tx, query, further.hits[0]):
            return Said(found, [note for note in further.notes if note in _OF_EVERY_ANSWER])
        answer = further


def _is_meant(tx: Transaction, query: Query, hit: Hit) -> bool:
    """Whether it has all that was typed, and is not just the next best."""
    session_id = hit.found.session_id
    found = hit.found._replace(tags=tuple(tx.sessions.tags([session_id]).get(session_id, ())))
    page = Page(text_of(found, in_tools=True))  # what a tool said is only found where it is asked for
    return query.tree is None or matches(query.tree, found, page, zone_here())


def _add(found: Passages, conversations: Passages) -> None:
    for tip, hits in conversations.items():
        for hit in hits:
            for session_id in dict.fromkeys((tip, hit.found.session_id)):
                found.setdefault(session_id, []).append(hit)
