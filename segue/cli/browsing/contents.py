"""Conversations found by what was said in them, while somebody types."""

from segue.core.query import Prefix, Word, parse
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.searching import answer
from segue.ports.store import Store, Transaction
from segue.sessions import finding
from segue.sessions.searching import Hit, Wish

Passages = dict[str, list[Hit]]
"""Where it was said, by session: the newest part of each conversation and the part itself; the best first."""

_MOST = 200


def passages(store: Store, typed: str) -> Passages:
    """Whatever says what was typed; the last word may not be finished yet."""
    hits = answer(store, OWNER_AT_CONSOLE, as_typed(typed), Wish(limit=_MOST)).hits
    return store.read(OWNER_AT_CONSOLE, _by_session, hits)


def as_typed(typed: str) -> str:
    """The query of somebody who is still typing."""
    last = typed.split()[-1]
    tree = parse(last).tree
    return f"{typed}*" if isinstance(tree, Word) and isinstance(parse(f"{last}*").tree, Prefix) else typed


def _by_session(tx: Transaction, hits: list[Hit]) -> Passages:
    found: Passages = {}
    for hit in hits:
        if tx.sessions.find(hit.found.session_id) is not None:  # it may have gone meanwhile
            for session_id in {hit.found.session_id, finding.find_tip(tx, hit.found.session_id)}:
                found.setdefault(session_id, []).append(hit)
    return found
