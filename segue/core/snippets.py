"""The words around a match, with the match marked."""

import re
from bisect import bisect_left
from collections.abc import Iterable

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
    spans = list(_spans(line, list(needles)))
    if not spans:
        return cut(line, width) + (ELLIPSIS if len(line) > width else "")
    start = _best_start(spans, width)
    end = min(len(line), start + width)
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


def _spans(line: str, needles: list[Needle]) -> Iterable[tuple[int, int]]:
    """Where the needles are in the line, apart from each other and in order."""
    folded, origin = _mapped(line)
    found = sorted(
        (origin[at], origin[at + len(word) - 1] + 1)
        for word in {word for needle in needles for word in _words(needle)}
        for at in _places(word, folded)
    )
    last = 0
    for start, end in found:
        if start >= last:
            yield start, end
            last = end
        elif end > last:
            yield last, end
            last = end


def _words(needle: Needle) -> tuple[str, ...]:
    return (needle.part,) if needle.part else needle.literals or needle.tokens.words


def _places(word: str, folded: str) -> Iterable[int]:
    at = folded.find(word)
    while at >= 0:
        before = folded[at - 1 : at] if at else ""
        if is_dense(word[0]) or not (is_letter(word[0]) and is_letter(before)):
            yield at
        at = folded.find(word, at + 1)


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
