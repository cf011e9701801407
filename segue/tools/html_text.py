"""What a person would read of an HTML page, with the addresses of its links."""

import re
import time
from html.parser import HTMLParser
from urllib.parse import urljoin

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
_FED_AT_ONCE = 16_384
_LONGEST_PENDING = 131_072  # characters of something that does not end
_SECONDS = 5.0
_SPACES = re.compile(r"\s+")
_GAPS = re.compile(r" *\n(?:[ \n]*\n)?")
_LONGEST_LINK = 500


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._base = base
        self._unread: list[str] = []
        self._links: list[tuple[str, int]] = []
        self._is_as_written = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unread:
            if tag == self._unread[-1]:
                self._unread.append(tag)
        elif tag in _UNREAD:
            self._unread.append(tag)
        else:
            self._begin(tag, dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _UNREAD:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unread:
            if tag == self._unread[-1]:
                self._unread.pop()
        elif tag == "a" and self._links:
            self._end_link()
        elif tag in _BLOCKS:
            self._is_as_written -= tag == "pre" and self._is_as_written > 0
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._unread:
            return
        text = data if self._is_as_written else _SPACES.sub(" ", data)
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

    def _begin(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in _BLOCKS:
            self._break(tag)
            self.pieces += [mark] if (mark := _MARKS.get(tag)) else []
            self._is_as_written += tag == "pre"
        elif tag in _CELLS:
            self.pieces.append("| " if self._is_at_the_start else " | ")
        elif tag == "a" and attributes.get("href"):
            self._links.append((attributes["href"] or "", len(self.pieces)))
        elif tag == "img" and (alternative := attributes.get("alt")):
            self.pieces.append(f"[{alternative}]")

    def _end_link(self) -> None:
        said, began = self._links.pop()
        try:
            url = urljoin(self._base, said.strip())
        except ValueError:
            return
        is_worth_it = url.startswith(("http://", "https://", "mailto:")) and not said.startswith("#")
        if is_worth_it and len(url) <= _LONGEST_LINK and "".join(self.pieces[began:]).strip():
            self.pieces.append(f" ({url})")


def text_of(html: str, base: str) -> str:
    """The readable text of a page. Of one that is made to keep its reader busy only the beginning is read."""
    reader = _Reader(base)
    deadline = time.monotonic() + _SECONDS
    for at in range(0, len(html), _FED_AT_ONCE):
        reader.feed(html[at : at + _FED_AT_ONCE])
        if len(reader.rawdata) > _LONGEST_PENDING or time.monotonic() > deadline:
            reader.pieces.append("\n[The page cannot be read any further.]")
            break
    return _GAPS.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", "".join(reader.pieces)).strip()
