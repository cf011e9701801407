"""A text with marks on it, and how such texts are put together.

Marks are told by the characters between which they stand. Of two that touch, one contains the other; none is empty.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple


class Kind(StrEnum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    PRE = "pre"
    """A block of code; its argument is the language, if that was said."""
    LINK = "link"
    """Its argument is where it leads."""
    QUOTE = "quote"


class Mark(NamedTuple):
    start: int
    end: int
    kind: Kind
    argument: str = ""


class Marked(NamedTuple):
    """A text and how it looks."""

    text: str
    marks: tuple[Mark, ...] = ()


def whole(piece: Marked, kind: Kind, argument: str = "") -> Marked:
    return Marked(piece.text, (Mark(0, len(piece.text), kind, argument), *piece.marks))


def joined(pieces: Iterable[Marked]) -> Marked:
    """Pieces, each on lines of its own."""
    texts: list[str] = []
    marks: list[Mark] = []
    at = 0
    for piece in pieces:
        texts.append(piece.text)
        marks += [mark._replace(start=mark.start + at, end=mark.end + at) for mark in piece.marks]
        at += len(piece.text) + 1
    return Marked("\n".join(texts), tuple(marks))


def indented(piece: Marked, first: str, others: str) -> Marked:
    """A piece behind a sign. Blocks of code stay where they are."""
    code = [mark for mark in piece.marks if mark.kind is Kind.PRE]
    starts = [0, *(found.end() for found in re.finditer("\n", piece.text))]
    free = [
        at
        for at in starts[1:]
        if piece.text[at : at + 1] not in ("", "\n") and not any(mark.start <= at <= mark.end for mark in code)
    ]
    added = {0: first, **dict.fromkeys(free, others)}
    lines = (added.get(at, "") + line for at, line in zip(starts, piece.text.split("\n"), strict=True))

    places = sorted(added)
    before = [0, *accumulate(len(added[at]) for at in places)]

    def moved(place: int, *, is_end: bool) -> int:
        passed = bisect_left(places, place) if is_end else bisect_right(places, place)
        return place + before[passed]

    marks = (
        mark._replace(start=moved(mark.start, is_end=False), end=moved(mark.end, is_end=True)) for mark in piece.marks
    )
    return Marked("\n".join(lines), tuple(marks))


def tidy(marks: Iterable[Mark]) -> Iterator[Mark]:
    """In order, those outside first; what stands within its like says nothing."""
    around: list[Mark] = []
    for mark in sorted((one for one in marks if one.end > one.start), key=lambda one: (one.start, -one.end)):
        around = [one for one in around if one.end >= mark.end and one.start <= mark.start and one.end > mark.start]
        if any(one.kind is mark.kind for one in around):
            continue
        around.append(mark)
        yield mark
