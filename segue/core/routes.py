"""Where something is to be delivered, as people write it.

`telegram:123456789` is a chat, `telegram:group:-100123` one of which the type is said, too, and `telegram` the home
channel.
"""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.sources import SessionSource

CHAT_TYPES = ("dm", "group", "channel", "thread")
_PLATFORM = re.compile("[a-z][a-z0-9_]*")
_ONE_WAY = frozenset({"cron", "webhook"})


class Route(NamedTuple):
    platform: str
    chat_id: str = ""
    """Empty for the home channel."""
    chat_type: str = ""
    """Empty when it was not said."""

    def __str__(self) -> str:
        return ":".join(part for part in (self.platform, self.chat_type, self.chat_id) if part)

    def source(self, known_type: str | None = None) -> SessionSource:
        """The chat; what somebody wrote says of which type it is, then what is known, and otherwise it is direct."""
        chat_type = self.chat_type or known_type or "dm"
        return SessionSource(platform=self.platform, chat_id=self.chat_id, chat_type=chat_type)


Places = Callable[[Route], Awaitable[SessionSource | None]]
"""The chat that a route means; nothing when it is a home channel that nobody has chosen yet."""


def parse_route(text: str) -> Route:
    """The route that somebody wrote. Behind the platform, and a type if one is said, everything is the chat's id."""
    platform, colon, chat_id = text.partition(":")
    chat_type, has_type, rest = chat_id.partition(":")
    chat_type, chat_id = (chat_type, rest) if has_type and chat_type in CHAT_TYPES else ("", chat_id)
    if not _PLATFORM.fullmatch(platform) or platform in _ONE_WAY or (colon and not chat_id.strip()):
        raise Invalid(
            f"{text!r} is no place to deliver to: write a platform and a chat, as in telegram:123456789 or"
            " telegram:group:-100123, or only the platform for its home channel."
        )
    return Route(platform, chat_id.strip(), chat_type)
