"""What a person would read of an HTML page, with the addresses of its links."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:  # not installed everywhere
    from selectolax.lexbor import LexborNode

_UNREAD = frozenset({"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "button",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
    }
    | {"figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section"}
    | {"summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul", *_HEADINGS}
)
_APART = frozenset({"p", "pre", "table", "ul", "ol", "dl", "blockquote", "title", *_HEADINGS})
_MARKS = _HEADINGS | {"li": "- "}
_CELLS = frozenset({"td", "th"})
_EMPTY = frozenset({"br", "hr"})
"""Elements that have no end."""
_TEXT = "-text"
_SPACES = re.compile(r"\s+")
_GAPS = re.compile(r" *\n(?:[ \n]*\n)?")
_MAX_LINK = 500


class _Reader:
    """Collects the text of elements as they begin and end."""

    def __init__(self, base: str) -> None:
        self.pieces: list[str] = []
        self._base = base
        self._links: list[tuple[str, int]] = []
        self._preformatted = 0

    def begin(self, tag: str, node: "LexborNode") -> None:
        if tag in _BLOCKS:
            self._break(tag)
            self.pieces += [mark] if (mark := _MARKS.get(tag)) else []
            self._preformatted += tag == "pre"
        elif tag in _CELLS:
            self.pieces.append("| " if self._is_at_the_start else " | ")
        elif tag == "a":
            self._links.append((node.attributes.get("href") or "", len(self.pieces)))
        elif tag == "img" and (alternative := node.attributes.get("alt")):
            self.pieces.append(f"[{alternative}]")

    def end(self, tag: str) -> None:
        if tag == "a":
            self._end_link()
        elif tag in _BLOCKS and tag not in _EMPTY:
            self._preformatted -= tag == "pre"
            self._break(tag)

    def text(self, text: str) -> None:
        text = text if self._preformatted else _SPACES.sub(" ", text)
        if text != " " or not self._is_at_the_start:
            self.pieces.append(text)

    @property
    def _is_at_the_start(self) -> bool:
        return not self.pieces or self.pieces[-1].endswith("\n")

    def _break(self, tag: str) -> None:
        """Begin a line, and leave one free around what stands apart."""
        if not self._is_at_the_start:
            self.pieces.append("\n")
        if tag in _APART:
            self.pieces.append("\n")

    def _end_link(self) -> None:
        target, began = self._links.pop()
        try:
            url = urljoin(self._base, target.strip())
        except ValueError:
            return
        is_worth_it = url.startswith(("http://", "https://", "mailto:")) and not target.startswith("#")
        if target and is_worth_it and len(url) <= _MAX_LINK and "".join(self.pieces[began:]).strip():
            self.pieces.append(f" ({url})")


def text_of(html: str, base: str) -> str:
    """Return the readable text of a page. Takes memory and time by its size; whoever made it may want to waste both."""
    from selectolax.lexbor import LexborHTMLParser

    reader = _Reader(base)
    root = LexborHTMLParser(html).root
    if root is not None:
        _walk(root, reader)
    return _GAPS.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", "".join(reader.pieces)).strip()


def _walk(root: "LexborNode", reader: _Reader) -> None:
    """Read a tree in its order, however deep it is."""
    node: LexborNode = root
    while True:
        tag = node.tag or ""
        below = None
        if tag == _TEXT:
            reader.text(node.text_content or "")
        elif tag not in _UNREAD and node.is_element_node:
            reader.begin(tag, node)
            below = node.first_child
            if below is None:
                reader.end(tag)
        if below is not None:
            node = below
            continue
        while node.next is None:
            above = node.parent
            if above is None or node.mem_id == root.mem_id or above.mem_id == root.mem_id:
                return
            node = above
            reader.end(node.tag or "")
        node = node.next
