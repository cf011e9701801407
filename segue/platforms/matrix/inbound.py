"""What a Matrix room brings, as the gateway takes it: events in, messages out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from segue.core.inbound import ORIGINAL, Inbound, Quote
from segue.core.sources import SessionSource
from segue.platforms.matrix.events import (
    ENCRYPTED,
    MEDIA,
    POLLS,
    Event,
    answered_by,
    content_of,
    is_message,
    mapping,
    media_of,
    msgtype_of,
    newest,
    replaced_by,
    text_of,
    thread_of,
)
from segue.platforms.matrix.settings import localpart_of

PLATFORM = "matrix"
UNREADABLE = "[a message that could not be decrypted]"
_NOTICES = frozenset({"m.notice", "m.server_notice"})
_FALLBACK = re.compile(r"> (?:\* )?<@[^>\n]*>[^\n]*\n(?:>[^\n]*\n)*\n?")
"""What old clients put before an answer: the words that are answered, quoted."""


class Room(NamedTuple):
    """What is known of a room."""

    id: str
    name: str | None = None
    members: int = 0
    """Who joined and who is invited."""
    names: Mapping[str, str] = {}
    """What people call themselves there."""
    is_closed: bool = True
    """Whether nobody comes in without being invited."""

    @property
    def chat_type(self) -> str:
        return "dm" if self.members == 2 and self.is_closed else "group"  # they and we


class Me(NamedTuple):
    user_id: str
    name: str | None = None
    """What we call ourselves."""


# Where and by whom


def place_of(room: Room, thread: str | None = None) -> SessionSource:
    return SessionSource(
        platform=PLATFORM, chat_id=room.id, chat_name=room.name, chat_type=room.chat_type, thread_id=thread
    )


def source_of(event: Event, room: Room, thread: str | None = None) -> SessionSource:
    sender = str(event.get("sender", ""))
    return SessionSource(
        platform=PLATFORM,
        chat_id=room.id,
        chat_name=room.name,
        chat_type=room.chat_type,
        user_id=sender,
        user_name=room.names.get(sender) or localpart_of(sender),
        thread_id=thread,
        message_id=text_of(event.get("event_id")),
        is_bot=msgtype_of(newest(event)) in _NOTICES,
    )


def inviter_of(room_id: str, events: Sequence[Event], me: Me) -> SessionSource | None:
    """Who invites us into a room, and as what."""
    for event in events:
        if event.get("type") == "m.room.member" and event.get("state_key") == me.user_id:
            is_direct = content_of(event).get("is_direct") is True
            room = Room(room_id, _name_in(events), 2 if is_direct else 0, names_in(events), _is_closed(events))
            return source_of(event, room)
    return None


# What is said


def inbound_from(
    event: Event,
    room: Room,
    me: Me,
    original: Event | None = None,
    answered: Event | None = None,
) -> Inbound | None:
    """A message; None when it says nothing. `original` is what it is a version of, `answered` what it answers.

    A version of what is not to be had is a message of its own.
    """
    if not is_message(event):
        return None
    replaced = replaced_by(event) if original is not None else None  # of what nobody has, nobody knows the author
    if replaced and original is not None and original.get("sender") != event.get("sender"):
        return None  # nobody changes what others have said
    first = original if replaced and original is not None else event
    is_own = event.get("sender") == me.user_id
    text = unaddressed(_words(event, room, is_answer=answered_by(first) is not None), me)
    return Inbound(
        source_of(event, room, thread_of(first)),
        message_id=replaced or event["event_id"],
        text=text,
        edit=event["event_id"] if replaced else ORIGINAL,
        quote=None if answered is None else _quote(answered, room),
        is_mention=room.chat_type == "dm" or _is_for(event, me) or (answered or {}).get("sender") == me.user_id,
        is_own=is_own,
    )


def unreadable_from(event: Event, room: Room) -> Inbound | None:
    """What is told of a message without a key: in a chat of two, that there is one."""
    if room.chat_type != "dm" or replaced_by(event):
        return None
    return Inbound(source_of(event, room, thread_of(event)), event["event_id"], UNREADABLE, is_mention=True)


def read_later(inbound: Inbound, event_id: str) -> Inbound:
    """A message that was told of before, and whose key has come at last: these are its words."""
    return inbound._replace(edit=f"decrypted:{event_id}") if inbound.edit == ORIGINAL else inbound


def unaddressed(text: str, me: Me) -> str:
    """A command without the name of ours that it begins with; anything else as it is."""
    found = re.match(rf"\s*@?(?:{'|'.join(map(re.escape, _names(me)))})[:,]?\s+(?=/)", text, re.IGNORECASE)
    return text[found.end() :] if found else text


def _words(event: Event, room: Room, *, is_answer: bool) -> str:
    content, kind = newest(event), event.get("type")
    body = text_of(content.get("body")) or ""
    if is_answer:
        found = _FALLBACK.match(body)
        body = body[found.end() :] if found else body
    if kind == ENCRYPTED:
        return UNREADABLE
    if kind == "m.sticker":
        return f"[sticker: {body}]"
    if kind in POLLS:
        return _poll(content)
    match msgtype_of(content):
        case "m.emote":
            sender = str(event.get("sender", ""))
            return f"* {room.names.get(sender) or localpart_of(sender)} {body}"
        case "m.location":
            return f"[location: {body}, {text_of(content.get('geo_uri')) or 'nowhere'}]"
        case said if said in MEDIA:
            name = text_of(content.get("filename"))
            return body if name is not None and name != body else ""
    return body


def _poll(content: Mapping[str, Any]) -> str:
    poll = next((mapping(content[kind]) for kind in POLLS if kind in content), None)
    poll = poll or mapping(content.get("m.poll")) or mapping(content.get("org.matrix.msc3381.poll.start"))
    answers = poll.get("answers")
    offered = [_plain(one) for one in answers if isinstance(one, Mapping)] if isinstance(answers, list) else []
    return f"[poll: {_plain(mapping(poll.get('question')))} {' / '.join(filter(None, offered))}]"


def _plain(said: Mapping[str, Any]) -> str:
    """Words as polls write them, in one of several spellings."""
    found = said.get("org.matrix.msc1767.text") or said.get("body") or said.get("m.text")
    if isinstance(found, list):
        found = next((one.get("body") for one in found if isinstance(one, Mapping)), None)
    return text_of(found) or ""


def _quote(answered: Event, room: Room) -> Quote:
    sender = str(answered.get("sender", ""))
    text = _words(answered, room, is_answer=answered_by(answered) is not None)
    media = media_of(answered)
    return Quote(room.names.get(sender) or localpart_of(sender), text or (media.name if media else None) or "")


def _is_for(event: Event, me: Me) -> bool:
    """Whether it mentions us, as clients say it or in its words."""
    content = newest(event)
    mentioned = mapping(content.get("m.mentions")).get("user_ids")
    if isinstance(mentioned, list) and me.user_id in mentioned:
        return True
    return _is_named(text_of(content.get("body")) or "", me)


def _is_named(body: str, me: Me) -> bool:
    """Whether we are addressed in words. A name can be a word like any other, and then it takes more than the word."""
    local = re.escape(localpart_of(me.user_id))
    anywhere = [rf"(?i:{re.escape(me.user_id)})", rf"(?i:@{local})"]
    if me.name:
        name = re.escape(me.name)
        anywhere += [
            rf"(?i:@{name})",
            *([rf"(?i:{name})"] if " " in me.name else [name] if _is_proper(me.name) else []),
        ]
    before = rf"\s*(?i:{'|'.join(map(re.escape, _names(me)))})(?:[:,]|\s+/)"
    found = re.search(rf"(?<!\w)(?:{'|'.join(anywhere)})(?!\w)", body)
    return found is not None or re.match(before, body) is not None


def _is_proper(name: str) -> bool:
    """Whether it is written as no other word is."""
    return name != name.lower()


def _names(me: Me) -> list[str]:
    """What people call us, the longest first."""
    return sorted(filter(None, (me.user_id, localpart_of(me.user_id), me.name)), key=len, reverse=True)


def names_in(events: Sequence[Event]) -> dict[str, str]:
    """What people call themselves, as the state of a room says it."""
    members = (event for event in events if event.get("type") == "m.room.member")
    named = ((text_of(one.get("state_key")), text_of(content_of(one).get("displayname"))) for one in members)
    return {user: name for user, name in named if user and name}


def _is_closed(events: Sequence[Event]) -> bool:
    rules = (content_of(event).get("join_rule") for event in events if event.get("type") == "m.room.join_rules")
    return all(rule == "invite" for rule in rules)


def _name_in(events: Sequence[Event]) -> str | None:
    named = (content_of(event).get("name") for event in events if event.get("type") == "m.room.name")
    return next((name for name in named if isinstance(name, str) and name), None)
