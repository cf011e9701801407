"""What is being worked on: which turn of which conversation in which lane.

It goes along with everything that is done for the turn, so that whoever notes something knows what it was about. What a
turn has begun and does not end with it, such as the connection to a tool, is nobody's afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple


class Work(NamedTuple):
    """A turn at work."""

    lane_key: str
    session_id: str
    turn_id: str
    platform: str
    agent: str


@dataclass(slots=True)
class _Spell:
    work: Work
    is_over: bool = False


_SPELL: ContextVar[_Spell | None] = ContextVar("segue_at_work", default=None)


def find_work() -> Work | None:
    """The turn that this is done for; nothing outside of turns."""
    spell = _SPELL.get()
    return None if spell is None or spell.is_over else spell.work


@contextmanager
def at_work(work: Work) -> Iterator[Work]:
    """What is done inside, and by tasks that begin inside, is done for a turn."""
    spell = _Spell(work)
    token = _SPELL.set(spell)
    try:
        yield work
    finally:
        spell.is_over = True
        _SPELL.reset(token)
