"""Code in colours, line by line as it comes."""

from rich.syntax import Syntax
from rich.text import Text

_CONTEXT = 40  # lines of a string or comment that is still open
_LONGEST = 50_000  # characters at once
_OPEN = ("String", "Comment")


class Colouring:
    """The code of one block."""

    def __init__(self, language: str) -> None:
        self._lexer = Syntax("", language).lexer
        self._theme = Syntax.get_theme("ansi_dark")
        self._before: list[str] = []

    def lines(self, new: list[str]) -> Text:
        """The next lines of the block. What came before matters only when it has left a string or a comment open."""
        start = sum(len(line) + 1 for line in self._before)
        code = "\n".join([*self._before, *new])
        if self._lexer is None or len(code) > _LONGEST:
            return Text(code[start:])
        text, at, last = Text(), 0, ""
        for token, piece in self._lexer.get_tokens(f"{code}\n"):
            if at + len(piece) > start:
                text.append(piece[max(start - at, 0) :], self._theme.get_style_for_token(token))
            at, last = at + len(piece), str(token)
        text.right_crop(1)  # the last line end, which is nobody's
        is_open = any(kind in last for kind in _OPEN)
        self._before = [*self._before, *new][-_CONTEXT:] if is_open else []
        return text
