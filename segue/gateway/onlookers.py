"""Whoever looks on while an answer is written: nothing that happens in a turn waits for them.

What is shown here is not kept. Whoever has missed something reads it in the rows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from segue.core.events import Event
from segue.core.inbox import Entry

MOST_KEPT = 10_000
"""Events of which nobody has taken notice yet."""


class Seen(NamedTuple):
    """Something that happens in a turn; nothing more of it when the turn is over."""

    turn_id: str
    event: Event | None


class Onlooker:
    """Somebody who watches a lane."""

    def __init__(self) -> None:
        self._seen: deque[Seen] = deque(maxlen=MOST_KEPT)
        self._woken = asyncio.Event()

    def notice(self, seen: Seen) -> None:
        self._seen.append(seen)
        self._woken.set()

    async def wait(self, seconds: float) -> list[Seen]:
        """What has happened since, as soon as something does; nothing if all is quiet for a while."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return []
        self._woken.clear()
        seen = list(self._seen)
        self._seen.clear()
        return seen


class Onlookers:
    """Those of a gateway, by the lane that each of them watches."""

    def __init__(self) -> None:
        self._by_lane: dict[str, set[Onlooker]] = {}

    @contextmanager
    def watching(self, lane_key: str) -> Iterator[Onlooker]:
        onlooker = Onlooker()
        self._by_lane.setdefault(lane_key, set()).add(onlooker)
        try:
            yield onlooker
        finally:
            here = self._by_lane[lane_key]
            here.discard(onlooker)
            if not here:
                del self._by_lane[lane_key]

    @contextmanager
    def showing(self, entry: Entry, turn_id: str) -> Iterator[Callable[[Event], None]]:
        """Show what happens in the turn that answers a message to whoever watches its lane."""

        def tell(event: Event | None) -> None:
            for onlooker in self._by_lane.get(entry.lane_key, ()):
                onlooker.notice(Seen(turn_id, event))

        try:
            yield tell
        finally:
            tell(None)
