"""What stands in the events of Matrix.

Events are the dictionaries that a homeserver sends, decrypted where they were not plain. They come from anybody, so
nothing is believed of their shape.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ENCRYPTED = "m.room.encrypted"
POLLS = ("m.poll.start", "org.matrix.msc3381.poll.start")
MEDIA = frozenset({"m.image", "m.file", "m.audio", "m.video"})
_LONGEST_ID = 255
_NOTHING_SAID = "m.key.verification."

Event = Mapping[str, Any]


class Media(NamedTuple):
    """A file that a message tells of."""

    uri: str
    name: str | None
    kind: str | None
    size: int | None
    sealed: Mapping[str, Any] | None = None
    """How it is decrypted, when it was encrypted."""


def content_of(event: Event) -> Mapping[str, Any]:
    return mapping(event.get("content"))


def msgtype_of(content: Mapping[str, Any]) -> str | None:
    return text_of(content.get("msgtype"))


def is_message(event: Event) -> bool:
    """Whether somebody says something with it."""
    if "state_key" in event or not isinstance(event.get("event_id"), str):
        return False
    content, kind = content_of(event), event.get("type")
    if kind == "m.room.message":
        said = msgtype_of(content)
        return said is not None and not said.startswith(_NOTHING_SAID)
    return kind == ENCRYPTED or ((kind == "m.sticker" or kind in POLLS) and bool(content))


def replaced_by(event: Event) -> str | None:
    """The message that this is a new version of."""
    relation = _relation(event)
    return id_of(relation.get("event_id")) if relation.get("rel_type") == "m.replace" else None


def answered_by(event: Event) -> str | None:
    """The message that this answers by pointing at it. In a thread, old clients are told of one that nobody chose."""
    relation = _relation(event)
    if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back", False) is not False:
        return None
    return id_of(mapping(relation.get("m.in_reply_to")).get("event_id"))


def thread_of(event: Event) -> str | None:
    """The message that its thread began with."""
    relation = _relation(event)
    return id_of(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else None


def redacted_by(event: Event) -> str | None:
    """The message that this takes back."""
    if event.get("type") != "m.room.redaction":
        return None
    return id_of(content_of(event).get("redacts")) or id_of(event.get("redacts"))


def media_of(event: Event) -> Media | None:
    """The file that comes with a message."""
    content = newest(event)
    if event.get("type") != "m.room.message" or msgtype_of(content) not in MEDIA:
        return None
    sealed, info = mapping(content.get("file")), mapping(content.get("info"))
    uri = text_of(sealed.get("url")) or text_of(content.get("url")) or ""
    name, size = text_of(content.get("filename")) or text_of(content.get("body")), info.get("size")
    measured = size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None
    return Media(uri, name, text_of(info.get("mimetype")), measured, sealed or None)


def since_we_came(events: Sequence[Event], me: str) -> Sequence[Event]:
    """Without what was said before we were there: we come with an invitation, or else when we join."""
    came = 0
    for number, event in enumerate(events):
        if not _is_ours(event, me):
            continue
        was = mapping(mapping(event.get("unsigned")).get("prev_content")).get("membership")
        now = content_of(event).get("membership")
        if (now == "invite" and was != "invite") or (now == "join" and was not in ("invite", "join")):
            came = number
    return events[came:]


def is_arrival(event: Event, me: str) -> bool:
    """Whether it may be the moment at which we came."""
    return _is_ours(event, me) and content_of(event).get("membership") in ("invite", "join")


def newest(event: Event) -> Mapping[str, Any]:
    """What a message says now: a new version carries it within."""
    content = content_of(event)
    return mapping(content.get("m.new_content")) or content if replaced_by(event) else content


def _relation(event: Event) -> Mapping[str, Any]:
    return mapping(content_of(event).get("m.relates_to"))


def _is_ours(event: Event, me: str) -> bool:
    return event.get("type") == "m.room.member" and event.get("state_key") == me


def events_in(said: object) -> list[Event]:
    """Those of a list that are events."""
    return [one for one in said if isinstance(one, Mapping)] if isinstance(said, list) else []


def mapping(said: object) -> Mapping[str, Any]:
    return said if isinstance(said, Mapping) else {}


def text_of(said: object) -> str | None:
    return said if isinstance(said, str) else None


def id_of(said: object) -> str | None:
    """The name of an event, if it can be asked for."""
    return said if isinstance(said, str) and 0 < len(said) <= _LONGEST_ID and said.isprintable() else None
