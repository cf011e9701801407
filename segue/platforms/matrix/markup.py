"""Markdown as the HTML that Matrix knows: its own tags and no others, links to the web and to mail alone.

What a text says in HTML of its own is shown as it is written. An image would have to lie on a Matrix server, so it
becomes a link.
"""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

_LINK = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)
_BARE = frozenset({"paragraph_open", "paragraph_close", "inline"})
_KEPT = frozenset({"href", "start", "class"})
"""Attributes that clients keep; a class is the language of a block of code, and an empty href leads nowhere."""


def html_from(text: str) -> str | None:
    """The text as HTML; None when it is as good without."""
    reader = _reader()
    tokens = reader.parse(text)
    if all(token.type in _BARE for token in tokens) and _words(tokens) == _squeezed(text):
        return None
    for token in _all(tokens):
        token.attrs = {name: value for name, value in token.attrs.items() if name in _KEPT and value != ""}
    return str(reader.renderer.render(tokens, reader.options, {})).rstrip("\n")


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    reader.disable(["image"])
    setattr(reader, "validateLink", _is_link)  # noqa: B010 - where the library asks
    return reader


def _is_link(target: str) -> bool:
    return _LINK.fullmatch(target) is not None


def _all(tokens: list[Token]) -> list[Token]:
    return [one for token in tokens for one in (token, *(token.children or []))]


def _words(tokens: list[Token]) -> str | None:
    """What plain paragraphs say; None when something in them is more than words."""
    found: list[str] = []
    for token in tokens:
        for child in token.children or []:
            if child.type not in ("text", "softbreak"):
                return None
            found.append(child.content or " ")
        found.append(" ")
    return _squeezed("".join(found))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
