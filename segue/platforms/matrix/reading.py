"""A homeserver is read from where we were: everything that was said is passed on, in order, and then the place moves.

What is read twice is known by its event id. What a homeserver leaves out, because there is too much of it, is asked
for.
"""

import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from segue.core.inbound import Cursor
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.events import (
    Event,
    events_in,
    is_arrival,
    mapping,
    since_we_came,
)
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble
from segue.platforms.matrix.inbound import Me, names_in, place_of
from segue.platforms.matrix.inviting import Porter
from segue.platforms.matrix.taking import Taker
from segue.ports.platform import Intake

WAIT = 30.0
"""Seconds in which a homeserver answers that nothing has happened."""
GRACE = 30.0
PAGE = 100
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
    def __init__(self, line: Line, client: Client, intake: Intake, me: Me, porter: Porter, taker: Taker) -> None:
        self._line = line
        self._client = client
        self._intake = intake
        self._me = me
        self._porter = porter
        self._taker = taker
        self._ours = f"sync:{me.user_id}"
        self._device = f"{self._ours}:{client.device_id}"

    async def look_around(self) -> str:
        """Learn which rooms there are, and who invites us; where to read on from."""
        never_asked_before = time.time() % 1000  # or the answer may be one that was given to somebody minutes ago
        said = await self._sync(_SNAPSHOT, None, never_asked_before, seconds=300.0)
        await self._client.hear({"rooms": said.get("rooms", {})})
        self._porter.hear(said.get("rooms", {}))
        return await self._intake.cursor(self._device) or await self._begin(said)

    async def _begin(self, said: Mapping[str, Any]) -> str:
        """The first time of this device. What was said before any device of ours was there is not for us.

        Who reads from a place has heard what the device was told up to there, and the homeserver forgets it. So the
        place of another device is not read from; what happened behind it is asked for, room by room.
        """
        now = str(said["next_batch"])
        await self._hear_keys({name: value for name, value in said.items() if name != "rooms"})
        if (before := await self._intake.cursor(self._ours)) is not None:
            rooms = mapping(mapping(said.get("rooms")).get("join"))
            await self._pass_on({"join": {name: _without_words(one, now) for name, one in rooms.items()}}, before)
        await self._move(now)
        return now

    async def read(self, since: str) -> None:
        """Pass on everything that is said, until cancelled."""
        wait = 0.0
        while True:
            await self._client.tend()
            said = await self._sync(_NEWS, since, wait)
            await self._hear(said)
            await self._pass_on(said.get("rooms", {}), since)
            await self._move(str(said["next_batch"]))
            since, wait = str(said["next_batch"]), WAIT

    async def _move(self, place: str) -> None:
        """Everything up to there has been passed on, or waits for its key."""
        await self._taker.take_late()
        await self._taker.keep()
        for cursor in (self._ours, self._device):
            await self._intake.advance(Cursor(cursor, place))

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
        self._porter.hear(said.get("rooms", {}))
        await self._hear_keys(said)

    async def _hear_keys(self, said: Mapping[str, Any]) -> None:
        await self._client.hear(said)
        while len(said.get("to_device", {}).get("events", [])) >= MANY_KEYS:
            said = await self._sync(_KEYS_ALONE, str(said["next_batch"]), 0.0)
            await self._client.hear({name: value for name, value in said.items() if name != "rooms"})

    async def _pass_on(self, rooms: Mapping[str, Any], since: str) -> None:
        for room_id, one in rooms.get("join", {}).items():
            state = events_in(mapping(one.get("state")).get("events"))
            async with aclosing(self._events(room_id, one, since)) as events:
                room = self._client.room(room_id)
                if any(event.get("type") == "m.room.name" for event in state):
                    await self._intake.learn(place_of(room))
                async for event, names in events:
                    known = room._replace(names={**names, **room.names})
                    await self._taker.take(event, known)

    async def _events(
        self, room_id: str, one: Mapping[str, Any], since: str
    ) -> AsyncGenerator[tuple[Event, Mapping[str, str]], None]:
        """What happened in a room, oldest first, and what people call themselves."""
        timeline = mapping(one.get("timeline"))
        latest, state = events_in(timeline.get("events")), events_in(mapping(one.get("state")).get("events"))
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
            page = await self._page(room_id, query)
            names = names_in(events_in(page.get("state")))
            for event in events_in(page.get("chunk")):
                yield event, names
            end = page.get("end")  # also behind a page on which there is nothing for us
            place = end if isinstance(end, str) and end != place else None

    async def _page(self, room_id: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Some of what happened in a room. One that is closed to us keeps us from no other."""
        try:
            return await self._line.ask("GET", "v3", "rooms", room_id, "messages", query=query)
        except Refused as refused:
            if isinstance(refused, LoggedOut) or refused.is_busy or refused.is_broken:
                raise
            _log.warning("What was said in %s is passed over: %s", room_id, refused)
            return {}


def _without_words(room: Mapping[str, Any], now: str) -> dict[str, Any]:
    """A room as if everything in it had been left out."""
    known = (events_in(mapping(room.get(name)).get("events")) for name in ("state", "timeline"))
    state = [event for events in known for event in events if "state_key" in event]
    return {"state": {"events": state}, "timeline": {"limited": True, "prev_batch": now}}
