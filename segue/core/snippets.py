"""The words around a match, with the match marked."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from segue.core.matching import Needle
from segue.core.text import ELLIPSIS, cut, printable
from segue.core.tokens import fold, is_dense, is_letter

OPENING, CLOSING = ">>>", "<<<"
_WIDTH = 160
_BEFORE = 50
_LOOKED_AT = 200_000  # characters
_SPACES = re.compile(r"\s+")
_RUN = re.compile("[\x00-\x7f]+|[^\x00-\x7f]+")


def snippet(text: str, needles: Iterable[Needle], width: int = _WIDTH) -> str:
    """A line of the text that shows where the needles are."""
    line = _SPACES.sub(" ", printable(text[:_LOOKED_AT])).strip()
    spans = _spans(line, list(needles))
    if not spans:
        return cut(line, width) + (ELLIPSIS if len(line) > width else "")
    start = _best_start(spans, width)
    end = min(len(line), max(start + width, max((b for a, b in spans if a < start + width <= b), default=0)))
    shown = [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]
    pieces, at = [ELLIPSIS if start else ""], start
    for first, last in shown:
        pieces += [line[at:first], OPENING, line[first:last], CLOSING]
        at = last
    return "".join([*pieces, line[at:end], ELLIPSIS if end < len(line) else ""])


def unmarked(marked: str) -> str:
    """A snippet without its marks."""
    return "".join(text for text, _ in stretches(marked))


def stretches(marked: str) -> Iterable[tuple[str, bool]]:
    """The pieces of a snippet, and of each whether it is a match."""
    first, *pieces = marked.split(OPENING)
    yield first, False
    for piece in pieces:
        match, closing, rest = piece.partition(CLOSING)
        if closing:
            yield match, True
            yield rest, False
        else:
            yield OPENING + piece, False


def _spans(line: str, needles: list[Needle]) -> list[tuple[int, int]]:
    """Where the needles are in the line, apart from each other and in order."""
    folded, origin = _mapped(line)
    found = sorted(
        (origin[at], _end_of_sign(line, origin[at + len(sought.text) - 1] + 1))
        for sought in {sought for needle in needles for sought in _sought(needle)}
        for at in _places(sought, folded)
    )
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


class _Sought(NamedTuple):
    """A text that is marked, and whether it must be a whole word at either side."""

    text: str
    begins: bool = True
    ends: bool = True


def _sought(needle: Needle) -> list[_Sought]:
    if needle.part:
        return [_Sought(needle.part, begins=False, ends=False)]
    *firsts, last = needle.literals or needle.tokens.words or ("",)
    return [one for one in [*map(_Sought, firsts), _Sought(last, ends=not needle.tokens.is_open)] if one.text]


def _places(sought: _Sought, folded: str) -> Iterable[int]:
    word = sought.text
    begins = sought.begins and is_letter(word[0]) and not is_dense(word[0])
    ends = sought.ends and is_letter(word[-1]) and not is_dense(word[-1])
    at = folded.find(word)
    while at >= 0:
        before, after = folded[at - 1 : at] if at else "", folded[at + len(word) : at + len(word) + 1]
        if not (begins and is_letter(before)) and not (ends and is_letter(after)):
            yield at
        at = folded.find(word, at + 1)


def _end_of_sign(line: str, end: int) -> int:
    """The place behind a sign with all that is written above and below it."""
    while end < len(line) and unicodedata.combining(line[end]):
        end += 1
    return end


def _mapped(line: str) -> tuple[str, list[int]]:
    """The folded line, and for each of its characters the one it comes from."""
    pieces: list[str] = []
    origin: list[int] = []
    for run in _RUN.finditer(line):
        if run[0].isascii():
            pieces.append(run[0].lower())
            origin += range(*run.span())
        else:
            folded = [fold(character) for character in run[0]]
            pieces += folded
            origin += [at for at, characters in enumerate(folded, run.start()) for _ in characters]
    return "".join(pieces), origin


def _best_start(spans: list[tuple[int, int]], width: int) -> int:
    """Where to begin so that as many matches as possible are seen; the first such place."""
    starts = [start for start, _ in spans]
    seen = [bisect_left(starts, start + width - _BEFORE, at) - at for at, start in enumerate(starts)]
    return max(0, starts[seen.index(max(seen))] - _BEFORE)
