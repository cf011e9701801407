"""Markdown on paper, by rich, with nothing of it lost: tags, images and references are shown as they were written."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table").disable("reference")


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class Words(Markdown):
    """One block. Line ends stay where they were written, and the address of a link is seen."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _PARSER.parse(text)
        for token in self.parsed:
            if token.children:
                token.children = list(_plainer(token.children))


def _plainer(tokens: Iterable[Token]) -> Iterator[Token]:
    """The same words without what rich would leave out or say twice."""
    tokens = list(tokens)
    bare = _bare_links(tokens)
    for at, token in enumerate(tokens):
        if token.type == "softbreak":
            yield Token("hardbreak", "br", 0)
        elif token.type == "image":
            yield Token("text", "", 0, content=f"🖼 {token.content} ({token.attrs.get('src', '')})")
        elif token.type == "text":
            yield Token("text", "", 0, content=_BREAK.sub("\n", token.content))
        elif at not in bare:
            yield token


def _bare_links(tokens: list[Token]) -> set[int]:
    """Where links begin and end whose words are their address."""
    bare: set[int] = set()
    for at, token in enumerate(tokens[:-2]):
        if token.type == "link_open" and tokens[at + 2].type == "link_close":
            is_bare = token.markup == "autolink" or tokens[at + 1].content == token.attrs["href"]
            bare |= {at, at + 2} if is_bare else set()
    return bare
