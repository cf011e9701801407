"""Markdown as plain text with marks on it, for platforms that say apart what a text is and how it looks.

What is no Markdown comes through as it is: every line, indent and sign of it. Nothing that was said is left out. Where
Markdown and plain text disagree, plain text wins: `2*3*4` and `__init__` are no emphasis, `&nbsp;` is six characters, a
backslash is only left out before a sign that it hides, and what stands four spaces from the edge is no code.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence

from markdown_it.tree import SyntaxTreeNode

from segue.core.marked_text import Kind, Marked, indented, joined, tidy, whole
from segue.core.marked_words import DEEPEST, PARSER, words

WEB = frozenset({"http", "https", "mailto"})
RULE = "———"
BULLET = "•"

_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
_CELL_END = re.compile(r"(?<!\\)\|")
_EDGE = re.compile(r"[ \t>]*")
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def marked(markdown: str, schemes: Collection[str] = WEB) -> Marked:
    """The text that somebody meant. Where a link of another scheme leads is written out."""
    source = markdown.replace("\r\n", "\n").replace("\r", "\n")
    tokens = PARSER.parse(source)
    if any(token.level >= DEEPEST for token in tokens):
        return Marked(source)
    written = _Writer(source, schemes).page(SyntaxTreeNode(tokens))
    return Marked(written.text, tuple(tidy(written.marks)))


class _Writer:
    """Writes the blocks of a text, each where it stood."""

    def __init__(self, source: str, schemes: Collection[str]) -> None:
        self._lines = source.split("\n")
        self._schemes = schemes

    def page(self, root: SyntaxTreeNode) -> Marked:
        """Everything, with the blank lines that were there."""
        pieces: list[Marked] = []
        at = 0
        for node in root.children:
            first, last = self._span(node)
            pieces += [Marked(line) for line in self._lines[at:first]]
            pieces.append(self._outermost(node, first, last))
            at = last
        return joined([*pieces, *(Marked(line) for line in self._lines[at:])])

    def _outermost(self, node: SyntaxTreeNode, first: int, last: int) -> Marked:
        if node.type == "paragraph":
            return self._words("\n".join(self._lines[first:last]))
        if node.type.endswith("_list"):
            line = self._lines[first]
            indent = line[: len(line) - len(line.lstrip())]
            return indented(self._block(node), indent, indent)
        return self._block(node)

    def _inside(self, nodes: Sequence[SyntaxTreeNode]) -> Marked:
        """Blocks within another one."""
        pieces: list[Marked] = []
        at: int | None = None
        for node in nodes:
            first, last = self._span(node)
            pieces += [Marked("")] * (first - (first if at is None else at))
            pieces.append(self._block(node))
            at = last
        return joined(pieces)

    def _block(self, node: SyntaxTreeNode) -> Marked:
        match node.type:
            case "paragraph":
                return self._words("\n".join(line.lstrip() for line in node.children[0].content.split("\n")))
            case "heading":
                return whole(self._words(node.children[0].content), Kind.BOLD)
            case "fence":
                language = _LANGUAGE.match(node.info.strip())
                return whole(Marked(node.content.removesuffix("\n")), Kind.PRE, language[0] if language else "")
            case "hr":
                return Marked(RULE)
            case "blockquote":
                return whole(self._inside(node.children), Kind.QUOTE)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "table":
                return self._table(*self._span(node))
        return Marked("\n".join(self._lines[slice(*self._span(node))]))

    def _list(self, node: SyntaxTreeNode) -> Marked:
        signs = _signs(node)
        pieces: list[Marked] = []
        at = self._span(node)[0]
        for item, sign in zip(node.children, signs, strict=True):
            first, last = self._span(item)
            pieces += [Marked("")] * (first - at)
            pieces.append(indented(_ticked(self._inside(item.children)), f"{sign} ", " " * (len(sign) + 1)))
            at = last
        return joined(pieces)

    def _table(self, first: int, last: int) -> Marked:
        rows = [self._cells(line) for line in (self._lines[first], *self._lines[first + 2 : last])]
        columns = max(map(len, rows))
        rows = [[*row, *[""] * (columns - len(row))] for row in rows]
        widths = [max(_width(row[column]) for row in rows) for column in range(columns)]
        lines = [" | ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.insert(1, "-+-".join("-" * width for width in widths))
        return whole(Marked("\n".join(line.rstrip() for line in lines)), Kind.PRE)

    def _cells(self, line: str) -> list[str]:
        row = line[_end(_EDGE, line) :].strip().removeprefix("|")
        row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
        return [words(cell.strip(), ()).text for cell in _CELL_END.split(row)]

    def _words(self, source: str) -> Marked:
        return words(source, self._schemes)

    def _span(self, node: SyntaxTreeNode) -> tuple[int, int]:
        """The lines of a block, without blank ones behind it."""
        first, last = node.map or (0, 0)
        while last > first + 1 and not self._lines[last - 1].strip(" \t>"):
            last -= 1
        return first, last


def _signs(node: SyntaxTreeNode) -> list[str]:
    """What stands before each item. Numbers are as they were written, unless all are the same."""
    if node.type == "bullet_list":
        return [BULLET] * len(node.children)
    numbers = [item.info for item in node.children]
    if len(numbers) > 1 and len(set(numbers)) == 1:
        numbers = [str(int(numbers[0]) + at) for at in range(len(numbers))]
    return [f"{number}{item.markup}" for number, item in zip(numbers, node.children, strict=True)]


def _ticked(item: Marked) -> Marked:
    box = _TASKS.get(item.text[:4])
    if box is None or any(mark.start < 4 for mark in item.marks):
        return item
    moved = [mark._replace(start=mark.start - 2, end=mark.end - 2) for mark in item.marks]
    return Marked(box + item.text[4:], tuple(moved))


def _width(text: str) -> int:
    """How many columns a text takes on a screen."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0
