"""Where something is to be delivered, as people write it: `telegram:123456789`, or `telegram` for its home channel."""

import re
from collections.abc import Callable
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.sources import SessionSource

Homes = Callable[[str], SessionSource | None]
"""The home channel of a platform; nothing when it has none."""

_PLATFORM = re.compile("[a-z][a-z0-9_]*")
_ONE_WAY = frozenset({"cron", "webhook"})


class Route(NamedTuple):
    platform: str
    chat_id: str = ""
    """Empty for the home channel."""

    def __str__(self) -> str:
        return f"{self.platform}:{self.chat_id}" if self.chat_id else self.platform

    def leads_to(self, homes: Homes) -> SessionSource | None:
        """The chat that is meant; nothing when it is a home channel that nobody has chosen yet."""
        if self.chat_id:
            return SessionSource(platform=self.platform, chat_id=self.chat_id)
        return homes(self.platform)


def parse_route(text: str) -> Route:
    """The route that somebody wrote. Everything behind the first colon is the chat's id."""
    platform, colon, chat_id = text.partition(":")
    if not _PLATFORM.fullmatch(platform) or platform in _ONE_WAY or (colon and not chat_id.strip()):
        raise Invalid(
            f"{text!r} is no place to deliver to: write a platform and a chat, as in telegram:123456789, or only the"
            " platform for its home channel."
        )
    return Route(platform, chat_id.strip())
