"""Numbered lines of a file, read only as far as they are wanted."""

import codecs
from typing import NamedTuple, Protocol

from segue.core.text import cut, size
from segue.ports.tool import ToolFailed

LONGEST_LINE = 2_000
MOST_CHARACTERS = 50_000
MOST_BYTES = 256_000_000
"""As far into a file as lines are counted."""
READ_AT_ONCE = 64 * 1024
_LONGEST_BYTES = LONGEST_LINE * 4 + 4  # as many as that many characters can have, and the end of the line


class Stream(Protocol):
    """Bytes with a buffer that can be looked into."""

    def peek(self, size: int = ..., /) -> bytes: ...
    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


class Excerpt(NamedTuple):
    """Some lines of a file."""

    lines: list[str]
    following: int
    """The number of the line behind them."""
    has_more: bool


class LineReader:
    """The lines of a stream, one after the other; of a long one only the beginning is kept."""

    def __init__(self, stream: Stream, most_bytes: int = MOST_BYTES) -> None:
        self._stream = stream
        self._most_bytes = most_bytes
        self._left = most_bytes
        self.passed = 0
        """Lines so far."""

    def excerpt(self, first: int, count: int) -> Excerpt:
        """So many lines from that one on, or as many of them as there is room for."""
        self._pass_to(first)
        lines: list[str] = []
        room = MOST_CHARACTERS
        while len(lines) < count and (line := self._next()) is not None:
            numbered = f"{self.passed:>6}\t{_text(line, is_first=self.passed == 1)}"
            room -= len(numbered) + 1
            if room < 0:
                return Excerpt(lines, self.passed, has_more=True)
            lines.append(numbered)
        return Excerpt(lines, self.passed + 1, has_more=bool(self._stream.peek(1)))

    def _pass_to(self, first: int) -> None:
        """Leave the lines before one behind, many at once as long as it is far away."""
        is_whole = True
        while chunk := self._stream.peek():
            ends = chunk.count(b"\n")
            if self.passed + ends >= first - 1:
                break
            self.passed += ends
            is_whole = chunk.endswith(b"\n")
            self._count(self._stream.read(len(chunk)))
        if not chunk and not is_whole:
            self.passed += 1  # the last line, which nothing ended
        while self.passed < first - 1 and self._next() is not None:
            pass

    def _next(self) -> bytes | None:
        line = piece = self._read(_LONGEST_BYTES)
        if not line:
            return None
        while piece and not piece.endswith(b"\n"):
            piece = self._read(READ_AT_ONCE)
        self.passed += 1
        return line

    def _read(self, most: int) -> bytes:
        return self._count(self._stream.readline(most))

    def _count(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise ToolFailed(
                f"Lines are counted up to {size(self._most_bytes)} into a file, and line {self.passed + 1:,} is there;"
                " use `tail`, `sed` or `cut` in the terminal."
            )
        return piece


def _text(line: bytes, *, is_first: bool) -> str:
    if is_first:
        line = line.removeprefix(codecs.BOM_UTF8)
    text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
    return text if len(text) <= LONGEST_LINE else f"{cut(text, LONGEST_LINE)}… [the line goes on]"
