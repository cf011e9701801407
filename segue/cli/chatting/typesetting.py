"""Blocks of Markdown as lines for a terminal, each laid out once."""

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from segue.cli.chatting.blocks import Block, Kind
from segue.cli.chatting.paper import Paper
from segue.core.text import one_line, printable

if TYPE_CHECKING:
    from segue.cli.chatting.colouring import Colouring

_LONGEST_MARKDOWN = 20_000  # characters; what is longer is shown as it is
_RULE = "─"
_SIGNS = " \n•▌"


class Typesetter:
    """Keeps the distances between blocks, and knows in which language the code is."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._colouring: Colouring | None = None
        self._has_gap = False
        self._has_begun = False

    def set(self, block: Block) -> str:
        """The lines of a block; empty lines are shown only between two of them, and one is enough."""
        if block.kind is Kind.BLANK:
            self._has_gap = self._has_begun
            return ""
        lines = self._lines(block)
        gap = "\n" if self._has_gap and lines else ""
        self._has_gap = self._has_gap and not lines
        self._has_begun = self._has_begun or bool(lines)
        return gap + lines

    def _lines(self, block: Block) -> str:
        match block.kind:
            case Kind.FENCE:
                self._colouring = _colouring(block.info)
                return self._ruled(one_line(block.info), block.indent)
            case Kind.END:
                return self._ruled("", block.indent)
            case Kind.CODE:
                return self._code(block)
            case _:
                return self._words(block)

    def _ruled(self, label: str, indent: int) -> str:
        start = " " * min(indent, self._paper.width // 2)
        room = min(self._paper.width, 60) - len(start)
        line = Text(f"{start}{_RULE * 2} {label} " if label else start, style="dim", no_wrap=True, overflow="ellipsis")
        line.append(_RULE * max(room - line.cell_len + len(start), 0))
        return self._paper.render(line)

    def _words(self, block: Block) -> str:
        text = printable(block.text)
        if len(text) > _LONGEST_MARKDOWN:
            return self._paper.render(Text(text.rstrip("\n")))
        from segue.cli.chatting.markdown import Words  # takes its time, and is needed only when an answer comes

        indent = min(block.indent, self._paper.width // 2)
        words = Words(_moved_left(text, block.indent))
        lines = self._paper.render(Padding(words, (0, 0, 0, indent)) if indent else words)
        shown = lines.strip("\n")  # rich begins and ends some blocks with empty lines
        if not shown.strip(_SIGNS) and text.strip():  # and gives up on what is nested too deeply
            return self._paper.render(Text(text.rstrip("\n")))
        return f"{shown}\n"

    def _code(self, block: Block) -> str:
        """Never broken by us, so that it can be copied."""
        lines = printable(block.text).expandtabs(4).removesuffix("\n").split("\n")
        text = Text("\n".join(lines)) if self._colouring is None else self._colouring.lines(lines)
        text.no_wrap, text.overflow = True, "ignore"
        return self._paper.render(text)


def _colouring(info: str) -> "Colouring | None":
    if not info:
        return None
    from segue.cli.chatting.colouring import Colouring  # loads Pygments, and most answers have no code

    return Colouring(info.split(maxsplit=1)[0])


def _moved_left(text: str, indent: int) -> str:
    lines = text.split("\n")
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines)
