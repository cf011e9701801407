"""What is being worked on: which turn of which conversation in which lane. Lines of the log say so.

It goes along with everything that is done for the turn, so that whoever notes something knows what it was about. What a
turn has begun and does not end with it, such as the connection to a tool, is nobody's afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

FIELDS = "segue_fields"
"""The attribute of a log record that holds more fields for a line in JSON."""


class Work(NamedTuple):
    """A turn at work."""

    lane_key: str
    session_id: str
    turn_id: str
    platform: str
    agent: str


class About(NamedTuple):
    """What lines of the log are about outside of turns."""

    lane_key: str = ""
    session_id: str = ""
    turn_id: str = ""


@dataclass(slots=True)
class _Spell:
    work: Work | About
    is_over: bool = False


_SPELL: ContextVar[_Spell | None] = ContextVar("segue_at_work", default=None)


def find_work() -> Work | None:
    """The turn that this is done for; nothing outside of turns."""
    spell = _SPELL.get()
    return spell.work if spell is not None and not spell.is_over and isinstance(spell.work, Work) else None


def log_context() -> dict[str, str]:
    """Return what a line of the log is about: lane_key, session_id and turn_id, as far as they are known."""
    spell = _SPELL.get()
    if spell is None or spell.is_over:
        return {}
    names = ((name, str(getattr(spell.work, name))) for name in About._fields)
    return {name: value for name, value in names if value}


@contextmanager
def logged_for(lane_key: str | None = None, session_id: str | None = None) -> Iterator[None]:
    """Add a lane or a session to every line that is logged inside."""
    with _spell(About(lane_key or "", session_id or "")):
        yield


@contextmanager
def at_work(work: Work) -> Iterator[Work]:
    """What is done inside, and by tasks that begin inside, is done for a turn."""
    with _spell(work):
        yield work


@contextmanager
def _spell(work: Work | About) -> Iterator[None]:
    spell = _Spell(work)
    token = _SPELL.set(spell)
    try:
        yield
    finally:
        spell.is_over = True
        _SPELL.reset(token)
