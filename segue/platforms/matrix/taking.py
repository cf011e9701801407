"""What one event of a room becomes: a message with what it points at, something withdrawn, or nothing.

Anybody can write an event, so one that makes no sense is left aside, whatever it is: those behind it are heard.
"""

import asyncio
import logging
from collections.abc import Awaitable

from segue.core.errors import StoreError
from segue.core.inbound import Inbound
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import (
    ENCRYPTED,
    Event,
    answered_by,
    content_of,
    is_message,
    media_of,
    redacted_by,
    replaced_by,
    thread_of,
)
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble
from segue.platforms.matrix.inbound import (
    Me,
    Room,
    inbound_from,
    place_of,
    read_later,
    source_of,
    unreadable_from,
)
from segue.platforms.matrix.media import fetched
from segue.platforms.matrix.pacing import Pace
from segue.platforms.matrix.waiting import Waiting, Waits
from segue.ports.files import Files
from segue.ports.platform import Intake

AGAIN = 1.0
"""Seconds after which a homeserver that stumbled is asked once more."""
LONGEST_PAUSE = 30.0
MOST_REDACTED = 100
KEY_REQUESTS = 20
"""In a minute."""

_log = logging.getLogger(__name__)


class Taker:
    def __init__(self, line: Line, client: Client, intake: Intake, files: Files, me: Me, waiting: Waiting) -> None:
        self._line = line
        self._client = client
        self._intake = intake
        self._files = files
        self._me = me
        self._waiting = waiting
        self._key_requests = Pace(KEY_REQUESTS, 60.0)
        self.redacted: dict[str, None] = {}
        """What was taken back lately."""

    async def take(self, event: Event, room: Room) -> None:
        """Pass on what one event says."""
        if (redacted := redacted_by(event)) is not None:
            self._forget(redacted)
            await self._intake.withdraw(source_of(event, room), redacted)
        elif event.get("type") == "m.room.name" and "state_key" in event:
            await self._intake.learn(place_of(room))
        elif is_message(event) and not _is_redacted(event):
            await self._pass_on(self._message(event, room), room)

    async def take_late(self) -> None:
        """Pass on the messages whose keys have come."""
        for waits in self._waiting.keyed(self._client):
            room = self._client.room(waits.room_id)
            await self._pass_on(self._late(waits, room), room)
            self._waiting.done(waits.event)

    async def keep(self) -> None:
        """Put down what is to be passed on later."""
        await self._waiting.keep()

    async def _pass_on(self, judging: Awaitable[Inbound | None], room: Room) -> None:
        try:
            inbound = await judging
        except (StoreError, Trouble, OSError):  # of the homeserver, the store or the disk, and not of the event
            raise
        except Exception as error:  # noqa: BLE001 - or it would stand before all others for ever
            _log.warning("Something said in %s makes no sense, and is left aside: %s.", room.id, type(error).__name__)
            return
        if inbound is not None:
            await self._intake.receive(inbound)

    async def _message(self, event: Event, room: Room) -> Inbound | None:
        opened = self._client.opened(room.id, event)
        return await (self._unreadable(event, room) if opened is None else self._inbound(opened, room))

    async def _late(self, waits: Waits, room: Room) -> Inbound | None:
        opened = self._client.opened(room.id, waits.event)
        inbound = None if opened is None else await self._inbound(opened, room)
        return read_later(inbound, str(waits.event["event_id"])) if inbound and waits.is_told else inbound

    async def _unreadable(self, event: Event, room: Room) -> Inbound | None:
        """It waits for its key, if it matters what its sender says."""
        if event.get("sender") == self._me.user_id:
            return None
        told = unreadable_from(event, room)
        if await self._intake.is_heard(source_of(event, room, thread_of(event)), is_mention=True):
            _log.warning("A message in %s cannot be decrypted.", room.id)
            if self._client.olm is not None:
                self._waiting.add(room.id, event, is_told=told is not None)
                await self._ask_for_key(room.id, event)
        return told

    async def _ask_for_key(self, room_id: str, event: Event) -> None:
        if not self._key_requests.allows():
            return
        try:
            await self._client.ask_for_key(room_id, event)
        except LoggedOut:
            raise
        except Trouble as trouble:
            _log.info("A key could not be asked for: %s", trouble)

    async def _inbound(self, event: Event, room: Room) -> Inbound | None:
        """A message with what it points at, and with its file if it matters what its sender says."""
        original = await self._event(room.id, replaced_by(event))
        answered = await self._event(room.id, answered_by(original or event))
        inbound = inbound_from(event, room, self._me, original, answered)
        media = media_of(event)
        if inbound is None or inbound.is_own or media is None:
            return inbound
        if not await self._intake.is_heard(inbound.source, is_mention=inbound.is_mention):
            return inbound
        return inbound._replace(files=(await fetched(self._line, self._files, media),))

    async def _event(self, room_id: str, event_id: str | None) -> Event | None:
        """One that was told of earlier; None when it is not to be had. Raises when that is not known."""
        if event_id is None:
            return None
        for is_last in (False, True):
            try:
                event = await self._line.ask("GET", "v3", "rooms", room_id, "event", event_id)
            except Refused as refused:
                if not (refused.is_busy or refused.is_broken or isinstance(refused, LoggedOut)):
                    return None
                if is_last or isinstance(refused, LoggedOut):
                    raise
                await asyncio.sleep(min(max(AGAIN, refused.seconds or 0.0), LONGEST_PAUSE))
            else:
                return self._client.opened(room_id, event) or event
        raise AssertionError("one of two is the last")

    def _forget(self, event_id: str) -> None:
        self.redacted[event_id] = None
        if len(self.redacted) > MOST_REDACTED:
            self.redacted.pop(next(iter(self.redacted)))


def _is_redacted(event: Event) -> bool:
    return event.get("type") == ENCRYPTED and not content_of(event)
