"""A homeserver is read from where we were: everything that was said is passed on, in order, and then the place moves.

What is read twice is known by its event id. What a homeserver leaves out, because there is too much of it, is asked
for.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from segue.core.inbound import Cursor, Inbound
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import (
    ENCRYPTED,
    Event,
    answered_by,
    content_of,
    is_arrival,
    is_message,
    media_of,
    redacted_by,
    replaced_by,
    since_we_came,
)
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble
from segue.platforms.matrix.inbound import (
    Me,
    Room,
    inbound_from,
    names_in,
    place_of,
    read_later,
    source_of,
    unreadable_from,
)
from segue.platforms.matrix.inviting import Porter
from segue.platforms.matrix.media import fetched
from segue.platforms.matrix.waiting import Waiting
from segue.ports.files import Files
from segue.ports.platform import Intake

WAIT = 30.0
"""Seconds in which a homeserver answers that nothing has happened."""
GRACE = 30.0
PAGE = 100
AGAIN = 1.0
"""Seconds after which something that could not be had is asked for once more."""
MANY_KEYS = 100
"""A homeserver that tells our device so much at once has more to tell."""
_NONE: dict[str, Any] = {"types": []}
_APART = {"presence": _NONE, "account_data": _NONE}
_ROOMS = {"ephemeral": _NONE, "account_data": _NONE, "state": {"lazy_load_members": True}}
_NEWS = {**_APART, "room": {**_ROOMS, "timeline": {"limit": PAGE, "lazy_load_members": True}}}
_SNAPSHOT = {**_APART, "room": {**_ROOMS, "timeline": {"limit": 1, "lazy_load_members": True}}}
_KEYS_ALONE = {**_APART, "room": {"rooms": []}}
_LAZY = json.dumps({"lazy_load_members": True})

_log = logging.getLogger(__name__)


class Reader:
    def __init__(
        self, line: Line, client: Client, intake: Intake, files: Files, me: Me, porter: Porter, waiting: Waiting
    ) -> None:
        self._line = line
        self._client = client
        self._intake = intake
        self._files = files
        self._me = me
        self._porter = porter
        self._waiting = waiting
        self._cursor = f"sync:{me.user_id}"
        self.redacted: dict[str, None] = {}
        """What was taken back lately."""

    async def look_around(self) -> str:
        """Learn which rooms there are, and who invites us; where to read on from."""
        never_asked_before = time.time() % 1000  # or the answer may be one that was given to somebody minutes ago
        said = await self._sync(_SNAPSHOT, None, never_asked_before, seconds=300.0)
        await self._client.hear({"rooms": said.get("rooms", {})})
        self._porter.hear(said.get("rooms", {}))
        since = await self._intake.cursor(self._cursor)
        if since is None:  # what was said before we were there is not for us
            since = str(said["next_batch"])
            await self._intake.advance(Cursor(self._cursor, since))
        return since

    async def read(self, since: str) -> None:
        """Pass on everything that is said, until cancelled."""
        wait = 0.0
        while True:
            await self._client.tend()
            said = await self._sync(_NEWS, since, wait)
            await self._hear(said)
            await self._pass_on(said.get("rooms", {}), since)
            await self._pass_on_late()
            since, wait = str(said["next_batch"]), WAIT
            await self._intake.advance(Cursor(self._cursor, since))

    async def _sync(
        self, filtered: Mapping[str, Any], since: str | None, wait: float, seconds: float | None = None
    ) -> dict[str, Any]:
        query = {"filter": json.dumps(filtered), "timeout": str(int(wait * 1000))} | ({"since": since} if since else {})
        said = await self._line.ask("GET", "v3", "sync", query=query, seconds=seconds or wait + GRACE)
        if not isinstance(said.get("next_batch"), str):
            raise Trouble("The homeserver does not say how far was read; it is asked again.")
        return said

    async def _hear(self, said: Mapping[str, Any]) -> None:
        """Take keys first, all that there are: the messages behind them need them."""
        await self._client.hear(said)
        self._porter.hear(said.get("rooms", {}))
        while len(said.get("to_device", {}).get("events", [])) >= MANY_KEYS:
            said = await self._sync(_KEYS_ALONE, str(said["next_batch"]), 0.0)
            await self._client.hear({name: value for name, value in said.items() if name != "rooms"})

    async def _pass_on(self, rooms: Mapping[str, Any], since: str) -> None:
        for room_id, one in rooms.get("join", {}).items():
            state = one.get("state", {}).get("events", [])
            async with aclosing(self._events(room_id, one, since)) as events:
                room = self._client.room(room_id)
                if any(event.get("type") == "m.room.name" for event in state):
                    await self._intake.learn(place_of(room))
                async for event, names in events:
                    known = room._replace(names={**names, **room.names})
                    await self._take(event, known)

    async def _events(
        self, room_id: str, one: Mapping[str, Any], since: str
    ) -> AsyncGenerator[tuple[Event, Mapping[str, str]], None]:
        """What happened in a room, oldest first, and what people call themselves."""
        timeline = one.get("timeline", {})
        latest, state = timeline.get("events", []), one.get("state", {}).get("events", [])
        if not timeline.get("limited"):
            for event in since_we_came(latest, self._me.user_id):
                yield event, {}
            return
        left_out = self._left_out(room_id, since, timeline.get("prev_batch"))
        if any(is_arrival(event, self._me.user_id) for event in (*state, *latest)):
            gap = [pair async for pair in left_out]
            whole = [event for event, _ in gap] + latest
            names = {user: name for _, some in gap for user, name in some.items()}
            for event in since_we_came(whole, self._me.user_id):
                yield event, names
            return
        async for pair in left_out:
            yield pair
        for event in latest:
            yield event, {}

    async def _left_out(
        self, room_id: str, since: str, until: str | None
    ) -> AsyncGenerator[tuple[Event, Mapping[str, str]], None]:
        """What happened between two places, page by page."""
        place: str | None = since
        while place is not None:
            query = {"dir": "f", "from": place, "limit": str(PAGE), "filter": _LAZY} | ({"to": until} if until else {})
            page = await self._line.ask("GET", "v3", "rooms", room_id, "messages", query=query)
            names = names_in(page.get("state", []))
            for event in page.get("chunk", []):
                yield event, names
            place = page.get("end") if page.get("chunk") and page.get("end") != place else None

    async def _take(self, event: Event, room: Room) -> None:
        """Pass on what one event says."""
        if (redacted := redacted_by(event)) is not None:
            self._forget(redacted)
            await self._intake.withdraw(source_of(event, room), redacted)
        elif event.get("type") == "m.room.name" and "state_key" in event:
            await self._intake.learn(place_of(room))
        elif is_message(event) and not self._is_redacted(event):
            opened = self._client.opened(room.id, event)
            if opened is None:
                await self._take_unreadable(event, room)
            elif (inbound := await self._inbound(opened, room)) is not None:
                await self._intake.receive(inbound)

    async def _take_unreadable(self, event: Event, room: Room) -> None:
        if event.get("sender") == self._me.user_id:
            return
        _log.warning("A message in %s cannot be decrypted; its key is asked for.", room.id)
        if self._client.olm is not None:
            self._waiting.add(room.id, event)
            try:
                await self._client.ask_for_key(room.id, event)
            except (Refused, Trouble) as trouble:
                _log.info("The key could not be asked for: %s", trouble)
        if (inbound := unreadable_from(event, room)) is not None:
            await self._intake.receive(inbound)

    async def _pass_on_late(self) -> None:
        """Messages whose keys have come."""
        for room_id, event in self._waiting.keyed(self._client):
            room = self._client.room(room_id)
            opened = self._client.opened(room_id, event)
            if opened is not None and (inbound := await self._inbound(opened, room)) is not None:
                await self._intake.receive(read_later(inbound, room, str(event["event_id"])))
            self._waiting.done(event)

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
        """One that was told of earlier; None when it is not to be had, also not in a moment."""
        for pause in (AGAIN, 0.0) if event_id is not None else ():
            try:
                event = await self._line.ask("GET", "v3", "rooms", room_id, "event", str(event_id))
            except LoggedOut:
                raise
            except Refused as refused:
                if not (refused.is_busy or refused.is_broken):
                    return None
                await asyncio.sleep(max(pause, min(refused.seconds or 0.0, WAIT)) if pause else 0.0)
            else:
                return self._client.opened(room_id, event) or event
        return None

    def _is_redacted(self, event: Event) -> bool:
        return event.get("type") == ENCRYPTED and not content_of(event)

    def _forget(self, event_id: str) -> None:
        self.redacted[event_id] = None
        if len(self.redacted) > PAGE:
            self.redacted.pop(next(iter(self.redacted)))
