"""What is said becomes what Telegram takes: a plain text, and entities that say how it looks. Nothing here sends.

Telegram parses nothing, so nothing that somebody wrote can be wrong Markdown to it. Its rules for entities: offsets in
UTF-16 units, nothing inside code, no quotation in another, of links and code one, and none that begins or ends blank.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from segue.core.attachments import Attachment
from segue.core.chunks import utf16_units
from segue.core.marked_text import Kind, Mark
from segue.core.marks import marked
from segue.core.sources import SessionSource
from segue.core.text import storable
from segue.ports.platform import SendRefused

PLATFORM = "telegram"
LONGEST, LONGEST_CAPTION = 4096, 1024
MOST_ENTITIES = 100
LARGEST_PHOTO = 10_000_000
GENERAL = "1"
"""The topic of a forum that is there from the beginning; it is named by leaving the topic out."""
LINKS = frozenset({"http", "https", "tg"})

_TYPES = {
    Kind.BOLD: "bold",
    Kind.ITALIC: "italic",
    Kind.STRIKE: "strikethrough",
    Kind.CODE: "code",
    Kind.PRE: "pre",
    Kind.LINK: "text_link",
    Kind.QUOTE: "blockquote",
}
_CODE = (Kind.CODE, Kind.PRE)
_STYLES = (Kind.BOLD, Kind.ITALIC, Kind.STRIKE)
_WAYS = {
    **dict.fromkeys(("image/jpeg", "image/png", "image/webp"), "photo"),
    **dict.fromkeys(("audio/mpeg", "audio/mp4", "audio/x-m4a"), "audio"),
    "audio/ogg": "voice",
    "video/mp4": "video",
}

Entity = dict[str, Any]


class Rendered(NamedTuple):
    text: str
    entities: list[Entity]


class Target(NamedTuple):
    """Where something goes."""

    chat_id: int | str
    thread_id: int | None


def rendered(markdown: str, longest: int = LONGEST) -> Rendered:
    """The text of a message. What would become too long that way, or nothing at all, stays as it was written."""
    plain = storable(markdown)
    found = marked(plain, LINKS)
    if not found.text.strip() or utf16_units(found.text) > longest:
        return Rendered(plain, [])
    return Rendered(found.text, _entities(found.text, found.marks))


def target_of(route: SessionSource) -> Target:
    """The chat and the topic in it; of a chat that is no forum, and of what is no number, none."""
    thread = route.thread_id or ""
    is_general = route.chat_type != "dm" and thread == GENERAL
    return Target(_chat_id(route.chat_id), int(thread) if thread.isdecimal() and not is_general else None)


def number_of(message_id: str | None) -> int | None:
    """The number by which Telegram knows a message."""
    return int(message_id) if message_id and message_id.isdecimal() else None


def way_of(file: Attachment) -> str:
    """As what a file is sent. A photo is made small by Telegram, and a large one is refused."""
    way = _WAYS.get(file.kind, "document")
    return "document" if way == "photo" and (file.size or 0) > LARGEST_PHOTO else way


def _chat_id(said: str) -> int | str:
    if said.removeprefix("-").isdecimal():
        return int(said)
    if said.startswith("@"):  # a channel or a group that has a name for everybody
        return said
    raise SendRefused(f"{said!r} is no chat on Telegram: chats have numbers there, and public ones a name with an @.")


def _entities(text: str, marks: Sequence[Mark]) -> list[Entity]:
    units = [0, *accumulate(utf16_units(character) for character in text)]
    told = [mark for mark in _allowed(text, marks) if text[mark.start : mark.end].strip()]
    return [_entity(mark, units) for mark in sorted(told, key=lambda mark: (mark.start, -mark.end))[:MOST_ENTITIES]]


def _allowed(text: str, marks: Sequence[Mark]) -> Iterator[Mark]:
    links = [mark for mark in marks if mark.kind is Kind.LINK]
    code = [mark for mark in marks if mark.kind in _CODE and not any(_is_within(mark, link) for link in links)]
    for mark in marks:
        if mark.kind in _STYLES:
            yield from (_trimmed(text, piece) for piece in _around(mark, code))
        elif mark.kind is Kind.LINK:
            yield _trimmed(text, mark)
        elif mark.kind is Kind.QUOTE or mark in code:
            yield mark


def _around(mark: Mark, code: Iterable[Mark]) -> Iterator[Mark]:
    """A mark without the code that stands in it."""
    at = mark.start
    for one in sorted(code):
        if _is_within(one, mark):
            yield mark._replace(start=at, end=one.start)
            at = one.end
    yield mark._replace(start=at)


def _is_within(inner: Mark, outer: Mark) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _trimmed(text: str, mark: Mark) -> Mark:
    said = text[mark.start : mark.end]
    return mark._replace(start=mark.start + len(said) - len(said.lstrip()), end=mark.start + len(said.rstrip()))


def _entity(mark: Mark, units: Sequence[int]) -> Entity:
    start = units[mark.start]
    entity: Entity = {"type": _TYPES[mark.kind], "offset": start, "length": units[mark.end] - start}
    if mark.kind is Kind.LINK:
        entity["url"] = mark.argument
    elif mark.kind is Kind.PRE and mark.argument:
        entity["language"] = mark.argument
    return entity
