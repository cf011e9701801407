"""Pasted text: without control characters, and when it is long, out of the way until the message is sent."""

from segue.core.text import count, printable, size

_MOST_LINES = 20
_MOST_CHARACTERS = 2_000


class Pastes:
    """What stands in the line in place of long pastes, and the pastes."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def take(self, pasted: str) -> str:
        """What to put into the line."""
        text = printable(pasted)
        lines = text.count("\n") + 1
        if lines <= _MOST_LINES and len(text) <= _MOST_CHARACTERS:
            return text
        sign = f"[paste {len(self._kept) + 1}: {count(lines, 'line')}, {size(len(text.encode(errors='replace')))}]"
        self._kept[sign] = text
        return sign

    def unfold(self, line: str) -> str:
        """The line with the pastes in place of their signs."""
        pieces = [line]
        for sign, text in self._kept.items():  # split, so that a sign inside of a paste stays what it is
            pieces = [part for piece in pieces for part in _split(piece, sign, text)]
        return "".join(pieces)

    def forget(self) -> None:
        self._kept.clear()


class _Pasted(str):
    __slots__ = ()


def _split(piece: str, sign: str, text: str) -> list[str]:
    if isinstance(piece, _Pasted) or sign not in piece:
        return [piece]
    before, _, after = piece.partition(sign)
    return [before, _Pasted(text), after]
