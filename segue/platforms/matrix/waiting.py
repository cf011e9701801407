"""Messages that came without their keys: they wait until the keys come, also through a restart."""

from collections.abc import Iterator
from typing import Any

from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import Event
from segue.platforms.matrix.keyring import Keyring

MOST = 200
"""Older ones are given up."""


class Waiting:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._messages = keyring.waiting()

    def add(self, room_id: str, event: Event) -> None:
        """It waits from now on, if it does not already."""
        if all(one["event"].get("event_id") != event.get("event_id") for one in self._messages):
            self._keep([*self._messages, {"room_id": room_id, "event": dict(event)}][-MOST:])

    def keyed(self, client: Client) -> Iterator[tuple[str, Event]]:
        """Those whose keys are there now, in their order."""
        for one in list(self._messages):
            if client.is_keyed(one["room_id"], one["event"]):
                yield one["room_id"], one["event"]

    def done(self, event: Event) -> None:
        self._keep([one for one in self._messages if one["event"].get("event_id") != event.get("event_id")])

    def _keep(self, messages: list[dict[str, Any]]) -> None:
        self._keyring.keep_waiting(messages)
        self._messages = messages
