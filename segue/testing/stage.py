"""A platform as its own server would be: it brings what people say until that is confirmed, and keeps what it is sent.

It can be as unkind as real ones are: bring things again under another number, lose an answer, be busy, be away.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from segue.core.sources import SessionSource

_GLANCE = 0.005

Update = dict[str, Any]
"""A number, and a message: source, message_id, text, edit and so on, ready for JSON."""


@dataclass(slots=True)
class Posted:
    """Something that arrived."""

    route: dict[str, Any]
    text: str
    key: str
    message_id: str
    versions: list[str] = field(default_factory=list)
    """What it said before it was edited."""
    moments: list[float] = field(default_factory=list)
    """When it was posted, and each time it was edited, by a clock that does not go back."""
    file: dict[str, Any] | None = None


class Busy(Exception):
    """The platform takes nothing at the moment."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Try again in {seconds:g} s.")
        self.seconds = seconds


class Stage:
    """What happens on a platform. Nothing here knows who reads it."""

    def __init__(self, *, has_key: bool = True, redelivery: float = 0.0, seed: int = 0) -> None:
        self._numbers = itertools.count(1)
        self._messages = itertools.count(1)
        self._random = random.Random(seed)
        self._waiting: dict[int, Update] = {}
        self._keys: dict[str, Posted] = {}
        self.has_key = has_key
        self.redelivery = redelivery
        """Which share of what was confirmed is brought once more, under another number."""
        self.looks = 0
        """How often somebody has asked what there is."""
        self.said: list[Update] = []
        self.handed_out: set[str] = set()
        self.confirmed: set[str] = set()
        self.posted: list[Posted] = []
        self.before_post: Callable[[Posted], None] = _nothing
        """May raise `Busy`."""

    def say(self, source: SessionSource, text: str, *, message_id: str | None = None, edit: str = "") -> str:
        """Somebody says something; what the message is called."""
        name = message_id or f"m{next(self._messages)}"
        update = {"source": source.to_dict(), "message_id": name, "text": text, "edit": edit}
        self.said.append(update)
        self._bring(update)
        return name

    def waiting(self) -> list[tuple[int, Update]]:
        """What has not been confirmed, in order."""
        self.looks += 1
        for update in self._waiting.values():
            self.handed_out.add(update["message_id"])
        return sorted(self._waiting.items())

    async def arrival(self, seconds: float) -> None:
        """Wait until there is something."""
        now = asyncio.get_running_loop().time
        until = now() + seconds
        while not self._waiting and now() < until:
            await asyncio.sleep(_GLANCE)

    def confirm(self, number: int) -> None:
        update = self._waiting.pop(number, None)
        if update is None:
            return
        self.confirmed.add(update["message_id"])
        if self._random.random() < self.redelivery:
            self._bring(update)

    def post(self, route: dict[str, Any], text: str, key: str, file: dict[str, Any] | None = None) -> str:
        """Take what is sent; with a key that is known, what is there already."""
        if self.has_key and key in self._keys:
            return self._keys[key].message_id
        posted = Posted(route, text, key, f"p{len(self.posted) + 1}", file=file)
        self.before_post(posted)
        posted.moments.append(time.monotonic())
        self.posted.append(posted)
        self._keys[key] = posted
        return posted.message_id

    def edit(self, message_id: str, text: str) -> None:
        posted = next(one for one in self.posted if one.message_id == message_id)
        posted.versions.append(posted.text)
        posted.moments.append(time.monotonic())
        posted.text = text

    def posted_to(self, chat_id: str) -> list[str]:
        """What can be read in a chat."""
        return [posted.text for posted in self.posted if posted.route.get("chat_id") == chat_id]

    def _bring(self, update: Update) -> None:
        self._waiting[next(self._numbers)] = update


def _nothing(_posted: Posted) -> None: ...
