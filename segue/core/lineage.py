"""Conversations that outgrew one session: a session, its compressed child, that one's child, and so on.

Only real links count. A title that looks alike makes nobody a relative.
"""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple


class Link(NamedTuple):
    """What lineage needs to know of a session."""

    id: str
    parent_session_id: str | None
    started_at: float


def tip_of(start: str, links: Iterable[Link]) -> str:
    """The newest end of the lineage that `start` belongs to, going down from it."""
    children: dict[str, list[Link]] = {}
    for link in links:
        if link.parent_session_id is not None:
            children.setdefault(link.parent_session_id, []).append(link)
    ends, seen, waiting = [], {start}, [Link(start, None, -inf)]
    while waiting:
        current = waiting.pop()
        below = [child for child in children.get(current.id, []) if child.id not in seen]
        seen.update(child.id for child in below)
        waiting += below
        if not below:
            ends.append(current)
    return max(ends, key=lambda end: (end.started_at, end.id)).id
