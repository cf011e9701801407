"""Messages that came without their keys: they wait until the keys come, also through a restart."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import Event
from segue.platforms.matrix.keyring import Keyring

MOST = 200
MOST_EACH = 20
"""Of one sender; their older ones are given up."""


class Waits(NamedTuple):
    room_id: str
    event: Event
    is_told: bool
    """Whether it was passed on that there is a message."""


class Waiting:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._messages = keyring.waiting()
        self._is_kept = True

    def add(self, room_id: str, event: Event, *, is_told: bool) -> None:
        """It waits from now on, if it does not already."""
        if all(one["event"].get("event_id") != event.get("event_id") for one in self._messages):
            added = {"room_id": room_id, "event": dict(event), "is_told": is_told}
            self._change(_within([*self._messages, added]))

    def keyed(self, client: Client) -> Iterator[Waits]:
        """Those whose keys are there now, in their order."""
        for one in list(self._messages):
            if client.is_keyed(one["room_id"], one["event"]):
                yield Waits(one["room_id"], one["event"], one.get("is_told", True))

    def done(self, event: Event) -> None:
        self._change([one for one in self._messages if one["event"].get("event_id") != event.get("event_id")])

    async def keep(self) -> None:
        """Put down what waits. Until the place moves whatever came without a key is read again, so once is enough."""
        if not self._is_kept:
            await asyncio.to_thread(self._keyring.keep_waiting, self._messages)
            self._is_kept = True

    def _change(self, messages: list[dict[str, Any]]) -> None:
        self._messages = messages
        self._is_kept = False


def _within(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many as may wait. Whoever has most of them loses the oldest, and nobody else's are pushed out."""
    ((busiest, number),) = Counter(map(_sender, messages)).most_common(1)
    if number <= MOST_EACH and len(messages) <= MOST:
        return messages
    oldest = next(at for at, one in enumerate(messages) if _sender(one) == busiest)
    return messages[:oldest] + messages[oldest + 1 :]


def _sender(message: dict[str, Any]) -> str:
    return str(message["event"].get("sender"))
