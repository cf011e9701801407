"""A long text as several messages.

A text that fits is one message, exactly as it is. Any other is cut where it hurts least: between paragraphs and around
blocks of code, else between lines, sentences or words, else anywhere, but not within what is read as one character.
A block of code that is cut is closed at the end of its message and opened again in the next one. Nothing but white
space is lost at a cut. Where a limit leaves no room for fences, code is cut like everything else.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType

from segue.core.fences import Fence, Line, lines_of, open_fence
from segue.core.text import cut

Measure = Callable[[str], int]
"""How long a text is. Every character counts at least one, and more text is never shorter."""

_WELL_FILLED = 4
"""A message is at least the fourth part of what it could be, if it can be without cutting through a word."""
_LEADING_BLANKS = re.compile(r"(?:\s*\n)?")
_GAP = re.compile(r"\s*\n|\s*")
"""What is left out at a cut: never the indent of a line."""
_WHITE_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"(?<!\d)[.!?…][\"'”’)*_\]]*(?=\s)|[。！？]")
_FENCE_MARK = re.compile(r"`{3}|~{3}")


def characters(text: str) -> int:
    return len(text)


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


MEASURES = MappingProxyType({"characters": characters, "utf-16": utf16_units, "bytes": utf8_bytes})
"""By the name of what a platform counts."""


def chunks(text: str, longest: int, measure: Measure = characters) -> list[str]:
    """The messages that say a text, in order. Only a single character can be longer than `longest`."""
    return list(_pieces(text, longest, measure))


def first_chunk(text: str, longest: int, measure: Measure = characters) -> str:
    """The first of them; empty when there is nothing to say."""
    return next(_pieces(text, longest, measure), "")


def _pieces(text: str, longest: int, measure: Measure) -> Iterator[str]:
    if not text.strip():
        return iter(())
    if measure(text) <= longest:
        return iter((text,))
    return _Knife(text, longest, measure).pieces()


class _Knife:
    """A text that is too long, and where it can be cut."""

    def __init__(self, text: str, longest: int, measure: Measure) -> None:
        self._text, self._longest, self._measure = text, longest, measure
        self._lines = lines_of(text)
        self._starts = [line.start for line in self._lines]
        self._line_ends = _line_ends(text, self._lines)

    def pieces(self) -> Iterator[str]:
        at = _end(_LEADING_BLANKS, self._text, 0)
        fence: Fence | None = None
        while at < len(self._text):
            opening = self._reopening(fence)
            line = self._line_at(at)
            if opening and line.is_closing:  # the message before has been closed already
                end, piece = line.end, ""
            else:
                end, piece = self._cut(opening, at)
            if piece:
                yield piece
            fence = self._line_at(end).fence
            at = _end(_GAP, self._text, end)

    def _reopening(self, fence: Fence | None) -> str:
        """The line with which a block of code goes on, as long as it leaves room for code."""
        if fence is None:
            return ""
        lines = (f"{line}\n" for line in (fence.opening, fence.closing))
        return next((line for line in lines if self._measure(line) <= self._longest // 4), "")

    def _cut(self, opening: str, at: int) -> tuple[int, str]:
        """Where the message that begins here ends, and what it says."""
        reach = self._reach(at, self._longest - self._measure(opening))
        if reach == len(self._text) and self._fits(piece := self._piece(opening, at, reach)):
            return reach, piece
        for ends, least in self._choices(at, reach):
            for end in reversed(ends):
                if self._measure(self._text[at:end]) < least:
                    break
                if self._fits(piece := self._piece(opening, at, end)):
                    return end, piece
        return self._cut_anywhere(opening, at, reach)

    def _choices(self, at: int, reach: int) -> Iterator[tuple[Sequence[int], int]]:
        """Where a message can end, the best places first, and how long it has to be for that."""
        least = self._longest // _WELL_FILLED
        for ends in self._line_ends:
            yield ends[bisect_right(ends, at) : bisect_right(ends, reach)], least
        yield [end for end in self._sentence_ends(at, reach) if end <= reach], least
        yield [end for end in self._word_ends(at, reach) if end > at], 1

    def _sentence_ends(self, at: int, reach: int) -> Iterator[int]:
        for found in _SENTENCE.finditer(self._text, at, reach + 1):
            line = self._line_at(found.end())
            if line.fence is None and not line.is_closing and not self._begins_with_fence(found.end()):
                yield found.end()

    def _word_ends(self, at: int, reach: int) -> Iterator[int]:
        for found in _WHITE_SPACE.finditer(self._text, at, reach + 1):
            if not self._line_at(found.start()).is_opening and not self._begins_with_fence(found.start()):
                yield found.start()

    def _begins_with_fence(self, end: int) -> bool:
        """Whether what stands within a line would be a fence if the next message began with it."""
        following = _end(_GAP, self._text, end)
        is_within_line = self._text[following - 1] != "\n"
        return is_within_line and _FENCE_MARK.match(self._text, following) is not None

    def _cut_anywhere(self, opening: str, at: int, reach: int) -> tuple[int, str]:
        end = reach
        while end > at:
            end = self._outside_character(at, end)
            piece = self._piece(opening, at, end)
            if self._fits(piece):
                return end, piece
            excess = self._measure(piece) - self._longest
            end -= max(1, min(excess, (end - at) // 2))
        end = self._outside_character(at, max(self._reach(at, self._longest), at + 1))
        return end, self._text[at:end].rstrip()

    def _outside_character(self, at: int, end: int) -> int:
        return at + (len(cut(self._text[at : end + 1], end - at)) or end - at)

    def _piece(self, opening: str, at: int, end: int) -> str:
        body = self._text[at:end].rstrip()
        if not body:
            return ""
        fence = open_fence(piece := opening + body)
        return piece if fence is None else f"{piece}\n{fence.closing}"

    def _fits(self, piece: str) -> bool:
        return piece != "" and self._measure(piece) <= self._longest

    def _reach(self, at: int, room: int) -> int:
        """The end of what there is room for."""
        ahead = self._text[at : at + room]
        return at + bisect_right(range(len(ahead) + 1), room, key=lambda end: self._measure(ahead[:end])) - 1

    def _line_at(self, position: int) -> Line:
        return self._lines[bisect_right(self._starts, position) - 1]


def _line_ends(text: str, lines: Sequence[Line]) -> tuple[list[int], list[int], list[int]]:
    """Where lines end: those of paragraphs and around code, others, and those within code."""
    paragraphs: list[int] = []
    others: list[int] = []
    code: list[int] = []
    for line, following in pairwise(lines):
        if line.fence is not None:
            if not line.is_opening:
                code.append(line.end)
        elif line.is_closing or following.is_opening or not text[following.start : following.end].strip():
            paragraphs.append(line.end)
        else:
            others.append(line.end)
    return paragraphs, others, code


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
