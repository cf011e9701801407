"""Where something is to be delivered, as people write it.

`telegram:123456789` is a chat, `telegram:group:-100123` one of which the type is said, too, and `telegram` the home
channel.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.keys import RESERVED
from segue.core.sources import API_SERVER, UNATTENDED, SessionSource

CHAT_TYPES = ("dm", "group", "channel", "thread")
_PLATFORM = re.compile("[a-z][a-z0-9_]*")
_NO_PLACE = UNATTENDED | RESERVED | {API_SERVER}


class Route(NamedTuple):
    platform: str
    chat_id: str = ""
    """Empty for the home channel."""
    chat_type: str = ""
    """Empty when it was not said; then it is one person's, as long as nobody knows better."""

    def __str__(self) -> str:
        return ":".join(part for part in (self.platform, self.chat_type, self.chat_id) if part)

    @property
    def source(self) -> SessionSource:
        """The chat that is named."""
        return SessionSource(platform=self.platform, chat_id=self.chat_id, chat_type=self.chat_type or "dm")


Places = Callable[[Route], Awaitable[SessionSource | None]]
"""The chat that a route means; nothing when it is a home channel that nobody has chosen yet."""


def parse_route(text: str) -> Route:
    """The route that somebody wrote. Behind the platform, and a type if one is said, everything is the chat's id."""
    platform, colon, chat_id = text.partition(":")
    chat_type, has_type, rest = chat_id.partition(":")
    chat_type, chat_id = (chat_type, rest) if has_type and chat_type in CHAT_TYPES else ("", chat_id)
    if not _PLATFORM.fullmatch(platform) or platform in _NO_PLACE or (colon and not chat_id.strip()):
        raise Invalid(
            f"{text!r} is no place to deliver to: write a platform and a chat, as in telegram:123456789 or"
            " telegram:group:-100123, or only the platform for its home channel."
        )
    return Route(platform, chat_id.strip(), chat_type)


def as_last_seen(chat: SessionSource, said: SessionSource | None) -> SessionSource:
    """A chat that somebody named, with what its last message tells of it: what kind it is, and who is alone there."""
    if said is None:
        return chat
    is_alone, is_thread = said.chat_type == "dm", said.chat_type == "thread"
    has_own_id = is_thread and said.parent_chat_id is not None
    return replace(
        chat,
        chat_type="group" if is_thread and not has_own_id else said.chat_type,
        thread_id=chat.thread_id or (said.thread_id if has_own_id else None),
        parent_chat_id=said.parent_chat_id,
        guild_id=said.guild_id,
        user_id=said.user_id if is_alone else None,
        user_id_alt=said.user_id_alt if is_alone else None,
        user_name=said.user_name if is_alone else None,
    )
