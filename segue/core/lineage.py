"""Conversations that outgrew one session: a session, its compressed child, that one's child, and so on.

Only real links count. A title that looks alike makes nobody a relative.
"""

from collections.abc import Iterable, Mapping
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
    current, seen = start, {start}
    while below := [child for child in children.get(current, []) if child.id not in seen]:
        current = max(below, key=lambda child: (child.started_at, child.id)).id
        seen.add(current)
    return current


def root_of(start: str, parents: Mapping[str, str | None]) -> str:
    """The oldest ancestor that is still there."""
    current, seen = start, {start}
    while (parent := parents.get(current)) is not None and parent in parents and parent not in seen:
        current = parent
        seen.add(current)
    return current
