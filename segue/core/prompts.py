"""What our agent is told before anything else. Written once, when a conversation begins, and never changed in it."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.text import one_line


class Place(NamedTuple):
    """Where a conversation begins."""

    began: datetime
    source: str
    cwd: str | None


_RULES = """\
You are a personal agent. You answer in the language you are spoken to in, briefly, in Markdown.

Earlier conversations are kept. When somebody speaks of something that is not in this one, use session_search before
you ask them to repeat it. When you learn something that will matter later, write it down with memory. Do not say that
you did something that you did not do; when the outcome of a tool is unknown, find out before you go on."""


def system_prompt(place: Place, tools: Sequence[str]) -> str:
    """The same bytes for the same place and tools."""
    return f"{_rules(tools)}\n\n{_where(place)}"


def _rules(tools: Sequence[str]) -> str:
    lines = _RULES
    if "session_search" not in tools:
        lines = lines.partition("\n\nEarlier conversations")[0]
    return lines


def _where(place: Place) -> str:
    zone = place.began.tzname() or "UTC"
    told = f"This conversation began on {place.began:%A, %d %B %Y} at {place.began:%H:%M} {zone}, on {place.source}."
    return told if place.cwd is None else f"{told} The working directory is {one_line(place.cwd)}."
