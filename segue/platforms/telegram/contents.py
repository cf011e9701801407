"""What a message says: its words, the file that came with it, and in brackets whatever is neither."""

from collections.abc import Callable
from typing import NamedTuple

from segue.core.text import one_line, shorten, storable
from segue.platforms.telegram.fields import Said, map_of, maps_of, number_of, text_of

_LONGEST = 200
_UNBRACKETED = str.maketrans("", "", "[]")

_FILES = (
    ("animation", "animation.mp4", "video/mp4"),  # before the document that it is, too
    ("document", "document", None),
    ("audio", "audio.mp3", "audio/mpeg"),
    ("voice", "voice.ogg", "audio/ogg"),
    ("video", "video.mp4", "video/mp4"),
    ("video_note", "video-note.mp4", "video/mp4"),
)
_NAMED = {"game": "title", "invoice": "title", "checklist": "title", "story": "", "paid_media": "", "giveaway": ""}


class Media(NamedTuple):
    """A file that somebody sent, and where it can be had."""

    file_id: str
    name: str
    kind: str | None
    size: int | None


class Words(NamedTuple):
    """What was written, and which parts of it are more than words."""

    text: str
    entities: list[Said]


def words_of(message: Said) -> Words:
    """As it was written, in the message or below its file."""
    if text_of(message, "text"):
        return Words(text_of(message, "text"), maps_of(message, "entities"))
    return Words(text_of(message, "caption"), maps_of(message, "caption_entities"))


def all_of(message: Said) -> str:
    """Everything that can be said of it in words."""
    return "\n".join(filter(None, [_linked(words_of(message)), _described(message)]))


def part(text: str, entity: Said) -> str:
    """What an entity stands on; it counts UTF-16 units."""
    start, length = number_of(entity, "offset") or 0, number_of(entity, "length") or 0
    units = text.encode("utf-16-le", "surrogatepass")[2 * max(start, 0) : 2 * max(start + length, 0)]
    return units.decode("utf-16-le", "surrogatepass")


def media_of(message: Said) -> Media | None:
    """The file, if there is one; of a photo the largest of its sizes."""
    if sizes := maps_of(message, "photo"):
        largest = max(sizes, key=lambda one: ((number_of(one, "width") or 0), number_of(one, "file_size") or 0))
        return _media(largest, "photo.jpg", "image/jpeg")
    for field, name, kind in _FILES:
        if found := map_of(message, field):
            return _media(found, name, kind)
    return None


def plain(text: str) -> str:
    """What others chose, as it can stand in brackets."""
    return shorten(one_line(storable(text)).translate(_UNBRACKETED), _LONGEST)


def _linked(words: Words) -> str:
    """The words, with where they lead when that is not what they say."""
    text = words.text.encode("utf-16-le", "surrogatepass")
    links = [one for one in words.entities if text_of(one, "type") == "text_link"]
    for link in sorted(links, key=_end, reverse=True):  # from behind, so that what stands before stays in its place
        url = one_line(storable(text_of(link, "url")))
        if url and _end(link) > 0 and url.rstrip("/") != part(words.text, link).rstrip("/"):
            at = 2 * _end(link)
            text = text[:at] + f" ({url})".encode("utf-16-le", "surrogatepass") + text[at:]
    return text.decode("utf-16-le", "surrogatepass")


def _end(entity: Said) -> int:
    return (number_of(entity, "offset") or 0) + (number_of(entity, "length") or 0)


def _media(said: Said, name: str, kind: str | None) -> Media | None:
    if not text_of(said, "file_id"):
        return None
    told = text_of(said, "file_name") or name
    return Media(text_of(said, "file_id"), told, text_of(said, "mime_type") or kind, number_of(said, "file_size"))


def _described(message: Said) -> str:
    """In brackets, what has no words of its own."""
    for field, describe in _DESCRIBED.items():
        if found := map_of(message, field):
            return f"[{describe(found)}]"
    named = next((field for field in _NAMED if map_of(message, field)), None)
    if named is None:
        return ""
    title = plain(text_of(map_of(message, named), _NAMED[named]))
    return f"[{named.replace('_', ' ')}{f': {title}' if title else ''}]"


def _venue(venue: Said) -> str:
    parts = [plain(text_of(venue, "title")), plain(text_of(venue, "address")), _place(map_of(venue, "location"))]
    return f"venue: {', '.join(filter(None, parts))}"


def _place(location: Said) -> str:
    degrees = [location.get(name) for name in ("latitude", "longitude")]
    return ", ".join(f"{one:.6g}" for one in degrees if isinstance(one, int | float))


def _contact(contact: Said) -> str:
    name = " ".join(filter(None, [text_of(contact, "first_name"), text_of(contact, "last_name")]))
    return f"contact: {', '.join(filter(None, [plain(name), plain(text_of(contact, 'phone_number'))]))}"


def _poll(poll: Said) -> str:
    options = [plain(text_of(option, "text")) for option in maps_of(poll, "options")]
    return f"poll: {' / '.join([plain(text_of(poll, 'question')), *options])}"


_DESCRIBED: dict[str, Callable[[Said], str]] = {
    "sticker": lambda sticker: f"sticker {plain(text_of(sticker, 'emoji'))}".rstrip(),
    "venue": _venue,  # before the location that it has, too
    "location": lambda location: f"location: {_place(location)}",
    "contact": _contact,
    "poll": _poll,
    "dice": lambda dice: f"dice {plain(text_of(dice, 'emoji'))}: {number_of(dice, 'value') or 0}",
}
