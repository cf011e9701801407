"""Search as dictionaries, for programs."""

import time
from datetime import datetime
from typing import Any

from segue.core.query import parse
from segue.core.scope import Scope
from segue.core.text import cut
from segue.ports.store import Store, Transaction
from segue.sessions.searching import Answer, Hit, Wish, search

TIME = 0.25
"""Seconds after which the best so far is the answer."""
_CONTEXT = 200


def answer(store: Store, scope: Scope, query: str, wish: Wish, seconds: float = TIME) -> Answer:
    """What a query asks for, within a time."""
    deadline = time.monotonic() + seconds
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return store.read(scope, search, parse(query), wish, time.time(), zone, lambda: deadline - time.monotonic())


def searching_rows(store: Store, scope: Scope, query: str, wish: Wish) -> list[dict[str, Any]]:
    found = answer(store, scope, query, wish)
    return store.read(scope, lambda tx: [as_row(tx, hit) for hit in found.hits])


def as_row(tx: Transaction, hit: Hit) -> dict[str, Any]:
    """A hit with what was said before and after it."""
    row = hit.found._asdict()
    for name in ("content", "tool_calls", "kind", "tags"):
        del row[name]
    around = tx.messages.of(hit.found.session_id, after=hit.found.seq - 2, limit=3)
    context = [
        {"role": message.role, "content": cut(message.content or "", _CONTEXT)}
        for message in around
        if abs(message.seq - hit.found.seq) == 1
    ]
    return row | {"snippet": hit.snippet, "score": hit.score, "context": context}
