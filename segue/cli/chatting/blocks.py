"""Markdown that is still being written, taken apart into blocks that will not change any more.

A block is given out as soon as the lines after it can no longer become part of it, so it can be rendered once and for
all. An item of a list is a block of its own, and so is every line of code: neither waits for the end of the whole.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

_LONGEST = 64_000  # characters; what has no end in sight is given out as it is

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_ITEM = re.compile(r"(?P<indent> *)(?:[-*+]|(?P<number>\d{1,9})[.)])(?P<words>\s.*|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_QUOTE = re.compile(r" {0,3}>")


class Kind(StrEnum):
    """What a block is."""

    BLANK = "blank"
    WORDS = "words"
    """A paragraph, a heading, a table, a quotation or a rule."""
    ITEM = "item"
    """Of a list, with what is nested in it."""
    FENCE = "fence"
    """The line above code."""
    CODE = "code"
    END = "end"
    """The line below code."""


class Block(NamedTuple):
    """A piece of a text, as it was written."""

    kind: Kind
    text: str
    indent: int = 0
    """How far to the right it stands, because it belongs to an item of a list."""
    info: str = ""
    """Of code: the language, and what else the fence says."""


class Fence(NamedTuple):
    mark: str
    indent: int

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        if len(bare) < len(self.mark) or bare.strip(self.mark[0]):
            return False
        return len(line) - len(line.lstrip(" ")) <= self.indent + 3


class Blocks:
    """Takes a text piece by piece and gives it back block by block. All blocks and the rest together are the text."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._open: list[str] = []
        self._open_as = Block(Kind.WORDS, "")
        self._open_size = 0
        self._fence: Fence | None = None
        self._is_in_list = False

    def add(self, text: str) -> list[Block]:
        """The blocks that are certain now."""
        *lines, rest = text.split("\n")
        found: list[Block] = []
        for line in lines:
            self._line.append(line)
            whole = "".join(self._line)
            self._line.clear()
            found += self._take(whole.rstrip("\r"), whole + "\n")
        if rest:
            self._line.append(rest)
        return _merged(found)

    def rest(self) -> str:
        """What may still change."""
        return "".join([*self._open, *self._line])

    def finish(self) -> list[Block]:
        """The blocks that are left when nothing more comes."""
        last = "".join(self._line)
        self._line.clear()
        found = self._take(last.rstrip("\r"), last) if last else []
        found += self._close()
        if self._fence is not None:
            found.append(Block(Kind.END, ""))
        self._fence, self._is_in_list = None, False
        return _merged(found)

    def _take(self, line: str, raw: str) -> list[Block]:
        if self._fence is not None:
            return self._take_code(self._fence, line, raw)
        if not line.strip():
            return [*self._close(), Block(Kind.BLANK, raw)]
        if (match := _FENCE.match(line)) and self._may_stand(len(match["indent"])):
            self._fence = Fence(match["fence"], len(match["indent"]))
            return [*self._close(), Block(Kind.FENCE, raw, self._fence.indent, match["info"].strip())]
        if self._open_as.kind is Kind.WORDS and self._open and _UNDERLINE.match(line):
            return [*self._append(raw), *self._close()]
        if _HEADING.match(line) or _RULE.match(line):
            self._is_in_list = False
            return [*self._close(), Block(Kind.WORDS, raw)]
        if (match := _ITEM.match(line)) and self._begins_item(match):
            self._is_in_list = True
            return self._begin(Block(Kind.ITEM, raw, len(match["indent"])))
        return self._take_words(line, raw)

    def _take_code(self, fence: Fence, line: str, raw: str) -> list[Block]:
        if fence.is_closed_by(line):
            self._fence = None
            return [Block(Kind.END, raw, fence.indent)]
        return [Block(Kind.CODE, raw, fence.indent)]

    def _take_words(self, line: str, raw: str) -> list[Block]:
        is_quote = _QUOTE.match(line) is not None
        if self._open and not (is_quote and self._open_as.info != "quote"):
            return self._append(raw)
        indent = len(line) - len(line.lstrip(" "))
        self._is_in_list = self._is_in_list and indent > 1
        return self._begin(Block(Kind.WORDS, raw, indent * self._is_in_list, "quote" if is_quote else ""))

    def _may_stand(self, indent: int) -> bool:
        """Further to the right it would be code by itself, or the words of the line before."""
        return self._is_in_list or indent < 4

    def _begins_item(self, match: re.Match[str]) -> bool:
        indent, is_open = len(match["indent"]), bool(self._open)
        if is_open and self._open_as.kind is Kind.ITEM:
            return indent <= self._open_as.indent
        if is_open and (match["number"] not in (None, "1") or not match["words"].strip()):
            return False  # a paragraph goes on: a year at the beginning of a line is no list
        return self._may_stand(indent)

    def _begin(self, block: Block) -> list[Block]:
        closed = self._close()
        self._open_as = block._replace(text="")
        return closed + self._append(block.text)

    def _append(self, raw: str) -> list[Block]:
        self._open.append(raw)
        self._open_size += len(raw)
        return self._close() if self._open_size > _LONGEST else []

    def _close(self) -> list[Block]:
        if not self._open:
            return []
        block = self._open_as._replace(text="".join(self._open), info="")
        self._open, self._open_size = [], 0
        return [block]


def _merged(blocks: Iterable[Block]) -> list[Block]:
    """Lines of code that came together are one block."""
    merged: list[Block] = []
    for kind, group in groupby(blocks, key=lambda block: block.kind):
        together = list(group)
        if kind is Kind.CODE:
            together = [together[0]._replace(text="".join(block.text for block in together))]
        merged += together
    return merged
