"""One life of a gateway: it begins where the last one ended, runs, and leaves nothing half done."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.lifecycle import Interruption
from segue.gateway.answering import Office
from segue.gateway.connecting import Connection
from segue.gateway.desk import Desk
from segue.gateway.lanes import Lanes
from segue.sessions.accepting import Accepted
from segue.sessions.backgrounding import mark_lost
from segue.sessions.recovering import interrupt_left, interrupt_own

_log = logging.getLogger(__name__)

LEAVING_SECONDS = 2.0
"""For what has to stop at once."""


@dataclass(slots=True)
class Gateway:
    """Its parts: where messages arrive, where they are answered, and the platforms on both ends."""

    door: Door
    presence: Presence
    desk: Desk
    office: Office
    lanes: Lanes
    connections: Sequence[Connection]
    drain_seconds: float = 30.0

    async def run(self, stop: asyncio.Event, reason: Interruption = Interruption.SHUTDOWN_DRAIN) -> None:
        """Live until told to stop."""
        await self.presence.begin()
        await self._recover()
        working = [asyncio.create_task(connection.run()) for connection in self.connections]
        working.append(asyncio.create_task(self.lanes.look()))
        try:
            await stop.wait()
        finally:
            await self._leave(working, reason)

    def close(self) -> None:
        """Nothing more is read or written."""
        self.door.close()
        self.desk.close_door()

    def accepted(self, accepted: Accepted) -> None:
        """A message has been put down."""
        if not accepted.is_new:
            return
        key = accepted.entry.lane_key
        running = self.office.running_in(key)
        if accepted.interrupts:
            self.office.stop(key, "A newer message took its place.")
        elif accepted.is_steering and running is not None:
            running.ears.hear(accepted.entry)
        self.lanes.wake(key)

    def sent(self) -> None:
        """Something is to be sent."""
        for connection in self.connections:
            connection.delivery.wake()

    async def _recover(self) -> None:
        """Mark what a gateway that died has left; the lanes themselves go on when they are looked at."""
        now = time.time()
        interrupted = await self.door.write(interrupt_left, self.presence.is_gone, now)
        await self.door.write(mark_lost, self.presence.is_gone, now)
        if interrupted:
            _log.warning("%d answers were cut off; they are carried on.", len(interrupted))

    async def _leave(self, working: "list[asyncio.Task[None]]", reason: Interruption) -> None:
        """Take nothing more in, let turns come to their end for a while, and leave the rest for the next life."""
        await self.desk.close()
        if not await self.lanes.finish(self.drain_seconds):
            await self.door.write(interrupt_own, self.presence.run, reason, time.time())
            self.office.abandon_all()
            await asyncio.wait_for(self.lanes.ended(), LEAVING_SECONDS)
        await self._send_the_rest()
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        await self.presence.end()

    async def _send_the_rest(self) -> None:
        """What was said last is sent, if that takes no longer than a moment; the rest waits for the next life."""
        self.sent()
        deadline = time.monotonic() + LEAVING_SECONDS
        await asyncio.sleep(0.05)
        while time.monotonic() < deadline and not all(one.delivery.is_idle() for one in self.connections):
            await asyncio.sleep(0.05)
