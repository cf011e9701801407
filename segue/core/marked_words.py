"""The words of one paragraph of Markdown, and how Markdown is read at all."""

import re
from collections.abc import Callable, Collection, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from segue.core.marked_text import Kind, Mark, Marked

DEEPEST = 40
"""Levels; what is nested deeper is nobody's Markdown."""
_HIDDEN_BY_BACKSLASH = frozenset("*_`~#>|")
_KEPT_WITH_BACKSLASH = frozenset("[]()<!")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_NAME = re.compile(r"\w+")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"maxNesting": DEEPEST + 10})
    parser.disable(["code", "lheading", "reference", "html_block"])
    parser.disable(["newline", "entity", "html_inline"])
    parser.disable(["inline", "text_join"])  # the words of a block are read when it is written
    parser.inline.ruler.at("escape", _escape)
    return parser


def _escape(state: StateInline, silent: bool) -> bool:
    """A sign behind a backslash is a character like others."""
    pair = state.src[state.pos : state.pos + 2]
    if len(pair) < 2 or pair[0] != "\\" or pair[1] not in _HIDDEN_BY_BACKSLASH | _KEPT_WITH_BACKSLASH:
        return False
    if not silent:
        state.pending += pair[1] if pair[1] in _HIDDEN_BY_BACKSLASH else pair
    state.pos += 2
    return True


PARSER = _parser()


def words(source: str, schemes: Collection[str]) -> Marked:
    """The words of one block."""
    tokens: list[Token] = []
    PARSER.inline.parse(source, PARSER, {}, tokens)
    return _Sentence(schemes).write(tokens)


class _Sentence:
    """Writes words."""

    def __init__(self, schemes: Collection[str]) -> None:
        self._schemes = schemes
        self._text = ""
        self._marks: list[Mark] = []
        self._open: list[Callable[[], None]] = []
        """What is to be done when that ends which has begun last."""

    def write(self, tokens: Sequence[Token]) -> Marked:
        for at, token in enumerate(tokens):
            match token.type:
                case "em_open" | "strong_open" | "s_open":
                    self._open.append(self._opened(token, tokens[at + 1 : at + 3]))
                case "link_open":
                    self._open.append(self._leading(str(token.attrs.get("href", ""))))
                case "em_close" | "strong_close" | "s_close" | "link_close":
                    self._open.pop()()
                case "image":
                    close = self._leading(str(token.attrs.get("src", "")))
                    self._text += words(token.content, ()).text or "image"
                    close()
                case "code_inline":
                    close = self._marking(Kind.CODE)
                    self._text += token.content
                    close()
                case _:
                    self._text += token.content
        return Marked(self._text, tuple(self._marks))

    def _opened(self, token: Token, ahead: Sequence[Token]) -> Callable[[], None]:
        if self._is_plain(token, ahead):
            self._text += token.markup
            return lambda: self._add(token.markup)
        return self._marking({"em": Kind.ITALIC, "strong": Kind.BOLD, "s": Kind.STRIKE}[token.tag])

    def _is_plain(self, token: Token, ahead: Sequence[Token]) -> bool:
        """Whether the signs are meant as they stand: in a product, or around a name as Python has them."""
        if token.markup.startswith("*"):
            return self._text[-1:].isascii() and self._text[-1:].isalnum()
        is_name = len(ahead) == 2 and ahead[1].type == "strong_close" and _NAME.fullmatch(ahead[0].content)
        return token.markup == "__" and bool(is_name)

    def _leading(self, target: str) -> Callable[[], None]:
        scheme = _SCHEME.match(target)
        if scheme and scheme[1].lower() in self._schemes:
            return self._marking(Kind.LINK, target)
        start = len(self._text)
        address = target.removeprefix("mailto:")
        return lambda: self._add("" if self._text[start:] in (target, address) else f" ({address})")

    def _marking(self, kind: Kind, argument: str = "") -> Callable[[], None]:
        start = len(self._text)
        return lambda: self._marks.append(Mark(start, len(self._text), kind, argument))

    def _add(self, text: str) -> None:
        self._text += text
