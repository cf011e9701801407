"""Text in the cells of a terminal, as wide there as it was counted to be.

Terminals disagree about joined emoji, skin tones, flags and what cannot be seen: a cell too many moves the rest of the
line. So a sequence is shown as its first sign and a flag as its letters, which every terminal draws alike.
"""

import re

from rich.cells import set_cell_size

from segue.cli.output import cut
from segue.core.text import one_line, printable

_TAB = " " * 4
_JOINED = re.compile("\u200d[\u2190-\u2bff\U0001f000-\U0001faff]")
_UNSEEN = "\u00ad\u200b\u200d\u2060\u2061\u2062\u2063\u2064\ufeff"
_MODIFIERS = "\ufe0e\ufe0f\u20e3" + "".join(map(chr, range(0x1F3FB, 0x1F400)))
_FLAG_LETTERS = {0x1F1E6 + at: chr(ord("A") + at) for at in range(26)}
_STEADY = dict.fromkeys(map(ord, _UNSEEN + _MODIFIERS), "") | _FLAG_LETTERS


def steady(text: str) -> str:
    """The text without what terminals count differently."""
    return text if text.isascii() else _JOINED.sub("", text.replace("\ufe0f", "")).translate(_STEADY)


def line(text: str) -> str:
    """Stored text on one line, safe to draw."""
    return steady(one_line(text))


def lines(text: str) -> str:
    """Stored text, safe to draw, with its line breaks."""
    return steady(printable(text)).replace("\t", _TAB)


def fitted(text: str, width: int) -> str:
    """Exactly so many cells: cut with an ellipsis, or filled with blanks."""
    return set_cell_size(cut(text, width), width)


def fitted_right(text: str, width: int) -> str:
    """The same for numbers."""
    return cut(text, width).rjust(width)
