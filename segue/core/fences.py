"""Fences of code, as Markdown reads them: three or more backticks or tildes at the beginning of a line."""

import re
from typing import NamedTuple

_OPENING = re.compile(r"(?P<closing>[ \t]*(?:(?P<ticks>`{3,})|~{3,}))(?P<info>[^\n]*)")


class Fence(NamedTuple):
    """What begins a block of code."""

    opening: str
    """The whole line, with what it says about the code."""
    closing: str
    """The line that ends it."""

    def is_closed_by(self, line: str) -> bool:
        marks, wanted = line.strip(), self.closing.lstrip()
        return len(marks) >= len(wanted) and not marks.strip(wanted[0])


class Line(NamedTuple):
    """A line of a text, and where it stands."""

    start: int
    end: int
    """Without the line end."""
    fence: Fence | None = None
    """The one that is open behind it."""
    is_opening: bool = False
    is_closing: bool = False

    @property
    def is_fence(self) -> bool:
        return self.is_opening or self.is_closing


def lines_of(text: str) -> list[Line]:
    """Every line of a text. A fence that nobody closes is open to the end."""
    lines: list[Line] = []
    fence: Fence | None = None
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if fence is None:
            fence = opened_by(line)
            lines.append(Line(start, end, fence, is_opening=fence is not None))
        else:
            is_closing = fence.is_closed_by(line)
            fence = None if is_closing else fence
            lines.append(Line(start, end, fence, is_closing=is_closing))
        start = end + 1
    return lines


def opened_by(line: str) -> Fence | None:
    """The fence that a line opens, if no other is open."""
    found = _OPENING.match(line)
    if found is None or (found["ticks"] and "`" in found["info"]):  # that would be code within a line
        return None
    return Fence(line.rstrip(), found["closing"])


def open_fence(text: str) -> Fence | None:
    """The fence that is open at the end of a text."""
    return lines_of(text)[-1].fence
