"""An update of Telegram becomes a message: where it was said, by whom, whether it is addressed to us, and what it says.

Nothing here asks Telegram for anything. Updates are read as they come, and what they lack or have too much of is no
reason to leave a message aside; only one without a chat or a number of its own is none.
"""

import hashlib
import json
import re
from typing import NamedTuple

from segue.core.inbound import ORIGINAL, Inbound, Quote
from segue.core.sources import SessionSource
from segue.platforms.telegram.contents import Media, all_of, media_of, part, plain, words_of
from segue.platforms.telegram.fields import Said, map_of, number_of, text_of
from segue.platforms.telegram.outbound import GENERAL, PLATFORM

KINDS = ("message", "edited_message", "channel_post", "edited_channel_post")
"""The updates that are asked for."""
_CHAT_TYPES = {"private": "dm", "group": "group", "supergroup": "group", "channel": "channel"}
_START = re.compile(r"/start(?:@\w+)?(?:\s.*)?", re.DOTALL)
_TOPIC_MADE = "forum_topic_created"


class Ourselves(NamedTuple):
    """The bot, as Telegram knows it."""

    id: int
    username: str


class Message(NamedTuple):
    """Something that somebody said; its file is still to be fetched."""

    inbound: Inbound
    media: Media | None = None
    album: str | None = None
    """What several messages have in common that were sent as one."""


class Renamed(NamedTuple):
    """A chat or a topic has a name."""

    source: SessionSource


class Moved(NamedTuple):
    """A group has become another one."""

    old: str
    new: str


def read_update(update: Said, us: Ourselves) -> Message | Renamed | Moved | None:
    """What an update tells; nothing when it is of no kind that we know."""
    kind = next((kind for kind in KINDS if map_of(update, kind)), None)
    if kind is None:
        return None
    message = map_of(update, kind)
    chat_id, number = number_of(map_of(message, "chat"), "id"), number_of(message, "message_id")
    if chat_id is None or number is None or text_of(map_of(message, "chat"), "type") not in _CHAT_TYPES:
        return None
    if (moved_to := number_of(message, "migrate_to_chat_id")) is not None:
        return Moved(str(chat_id), str(moved_to))
    if renamed := _renamed(message):
        return Renamed(renamed)
    is_edit = kind.startswith("edited")
    if is_edit and "live_period" in map_of(message, "location"):
        return None  # somebody who shares where they are goes on walking
    return _message(message, us, is_edit=is_edit)


def _message(message: Said, us: Ourselves, *, is_edit: bool) -> Message | None:
    text, media = all_of(message), media_of(message)
    if not text and media is None:
        return None
    is_private = text_of(map_of(message, "chat"), "type") == "private"
    forwarded = _forwarded(message)
    if is_private and not forwarded and _START.fullmatch(text):
        text = "/help"  # how everybody begins to talk to a bot, by a button that says nothing else
    inbound = Inbound(
        source_of(message),
        message_id=str(number_of(message, "message_id")),
        text="\n".join(filter(None, [forwarded, text])),
        edit=_version(message) if is_edit else ORIGINAL,
        quote=_quote(message),
        is_mention=is_private or _is_addressed(message, us),
        is_own=number_of(map_of(message, "from"), "id") == us.id,
        is_verbatim=bool(forwarded),
    )
    return Message(inbound, media, text_of(message, "media_group_id") or None)


def source_of(message: Said) -> SessionSource:
    """Where a message was said, and by whom."""
    chat = map_of(message, "chat")
    chat_type = _CHAT_TYPES[text_of(chat, "type")]
    sender, is_chat = _sender(message)
    user_id = number_of(sender, "id")
    return SessionSource(
        platform=PLATFORM,
        chat_id=str(number_of(chat, "id")),
        chat_name=_name(chat) or None,
        chat_type=chat_type,
        user_id=None if user_id is None else str(user_id),
        user_name=_name(sender) or None,
        thread_id=_thread(message),
        chat_topic=_topic(message) or None,
        is_bot=sender.get("is_bot") is True and not is_chat,
    )


def _sender(message: Said) -> tuple[Said, bool]:
    """Who speaks, and whether that is a chat: a channel, or a group for one of its admins."""
    sender_chat = map_of(message, "sender_chat")
    if sender_chat:
        return sender_chat, True
    sender = map_of(message, "from")
    return (sender, False) if sender else (map_of(message, "chat"), True)


def _name(who: Said) -> str:
    full = " ".join(filter(None, [text_of(who, "first_name"), text_of(who, "last_name")]))
    return text_of(who, "title") or full or text_of(who, "username")


def _thread(message: Said) -> str | None:
    """The topic. What Telegram calls a thread outside of topics is only who answers whom."""
    number = number_of(message, "message_thread_id")
    if message.get("is_topic_message") is True and number is not None:
        return str(number)
    return GENERAL if map_of(message, "chat").get("is_forum") is True and not _is_private(message) else None


def _topic(message: Said) -> str:
    """The name of the topic, where the message that began it comes along."""
    replied = map_of(message, "reply_to_message")
    return text_of(map_of(message, _TOPIC_MADE), "name") or text_of(map_of(replied, _TOPIC_MADE), "name")


def _renamed(message: Said) -> SessionSource | None:
    """Where a service message tells a new name."""
    title = text_of(message, "new_chat_title")
    topic = text_of(map_of(message, _TOPIC_MADE), "name") or text_of(map_of(message, "forum_topic_edited"), "name")
    if not title and not topic:
        return None
    chat = {**map_of(message, "chat"), **({"title": title} if title else {})}
    told = {**message, "chat": chat, **({_TOPIC_MADE: {"name": topic}} if topic else {})}
    return source_of(told)


def _is_private(message: Said) -> bool:
    return text_of(map_of(message, "chat"), "type") == "private"


def _is_addressed(message: Said, us: Ourselves) -> bool:
    replied = map_of(message, "reply_to_message")
    if _TOPIC_MADE not in replied and number_of(map_of(replied, "from"), "id") == us.id:
        return True
    words = words_of(message)
    return any(_names_us(words.text, entity, us) for entity in words.entities)


def _names_us(text: str, entity: Said, us: Ourselves) -> bool:
    said, name = part(text, entity), us.username.casefold()
    match text_of(entity, "type"):
        case "mention":
            return bool(name) and said.casefold() == f"@{name}"
        case "text_mention":
            return number_of(map_of(entity, "user"), "id") == us.id
        case "bot_command":
            _, at, bot = said.partition("@")
            return bot.casefold() == name if at else number_of(entity, "offset") == 0
    return False


def _quote(message: Said) -> Quote | None:
    """What it answers, if somebody chose to: each message in a topic is an answer to the one that began it."""
    replied = map_of(message, "reply_to_message")
    if not replied or _TOPIC_MADE in replied:
        return None
    media = media_of(replied)
    text = text_of(map_of(message, "quote"), "text") or all_of(replied) or (media.name if media else "")
    return Quote(_name(_sender(replied)[0]), text) if text else None


def _forwarded(message: Said) -> str:
    """Who said it first, when somebody passes on what another has said."""
    origin = map_of(message, "forward_origin")
    if not origin:
        return ""
    known = [map_of(origin, name) for name in ("sender_user", "sender_chat", "chat")]
    name = next(filter(None, map(_name, known)), "") or text_of(origin, "sender_user_name")
    return f"[forwarded from {plain(name) or 'somebody'}]"


def _version(message: Said) -> str:
    """What tells an edit from others, also from one in the same second."""
    media = media_of(message)
    said = json.dumps([all_of(message), words_of(message).entities, media and media.file_id], sort_keys=True)
    return f"{number_of(message, 'edit_date') or 0}:{hashlib.sha256(said.encode()).hexdigest()[:12]}"
