"""Who brings us into rooms: whoever would be heard there. Some other invitations stay open, and are looked at again.

Anybody can invite us to anything, as often as they like, and call any room a direct chat. So an invitation is judged
before it counts as one of those that stay open; and a room that was joined only to give somebody a code is left again
if it is no chat of two.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.events import content_of, events_in, mapping
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble
from segue.platforms.matrix.inbound import Me, inviter_of
from segue.platforms.matrix.pacing import Pace
from segue.ports.platform import Intake

LOOK_SECONDS = 10.0
"""After which open invitations are looked at again."""
JOIN_SECONDS = 120.0
"""Rooms on other homeservers can take long."""
MOST, MOST_EACH = 100, 5
"""Open invitations in all, and of one inviter. Others are shown again when we connect the next time."""
STRANGERS = 20
"""Chats with people whom we do not know that are joined in an hour."""
_INSIDE = ("join", "invite")

_log = logging.getLogger(__name__)


class Porter:
    """Joins the rooms that we are welcome to join, one after another and apart from what is being read."""

    def __init__(self, line: Line, intake: Intake, me: Me) -> None:
        self._line = line
        self._intake = intake
        self._me = me
        self._new: dict[str, SessionSource] = {}
        self._open: dict[str, SessionSource] = {}
        self._unsure: dict[str, SessionSource] = {}
        """Joined because somebody whom we do not know calls it a direct chat."""
        self._strangers = Pace(STRANGERS, 3600.0)
        self._news = asyncio.Event()

    def hear(self, rooms: Mapping[str, Any]) -> None:
        """What a homeserver tells of rooms: invitations come, and are taken back."""
        for room_id, one in mapping(rooms.get("invite")).items():
            state = events_in(mapping(mapping(one).get("invite_state")).get("events"))
            if (source := inviter_of(room_id, state, self._me)) is not None:
                self._new[room_id] = source
                self._news.set()
        for room_id in [*mapping(rooms.get("leave")), *mapping(rooms.get("join"))]:
            self._new.pop(room_id, None)
            self._open.pop(room_id, None)

    async def run(self) -> None:
        """Look after invitations until cancelled."""
        while True:
            self._news.clear()
            await self.look()
            try:
                async with asyncio.timeout(LOOK_SECONDS if self._open or self._unsure else None):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """At every invitation once."""
        for room_id, source in [*self._open.items(), *self._new.items()]:
            is_new = self._new.pop(room_id, None) is not None
            if await self._may_join(source):
                await self._join(room_id, source)
            elif is_new:
                self._leave_open(room_id, source)
        for room_id, source in list(self._unsure.items()):
            await self._check(room_id, source)

    async def _may_join(self, source: SessionSource) -> bool:
        if not await self._intake.is_welcome(source):
            return False
        return await self._is_known(source) or self._strangers.allows()

    async def _is_known(self, source: SessionSource) -> bool:
        """Whether they are heard. Who is not is welcome only to be told how to be, in a chat of two."""
        return await self._intake.is_heard(source, is_mention=True)

    def _leave_open(self, room_id: str, source: SessionSource) -> None:
        if Counter(one.user_id for one in self._open.values())[source.user_id] >= MOST_EACH:
            return
        _log.info("%s invites us, and is not known; the invitation stays open.", one_line(str(source.user_id)))
        self._open[room_id] = source
        if len(self._open) > MOST:
            del self._open[next(iter(self._open))]

    async def _join(self, room_id: str, source: SessionSource) -> None:
        self._open.pop(room_id, None)
        if not await self._is_known(source):
            self._unsure[room_id] = source
        try:
            await self._line.ask("POST", "v3", "rooms", room_id, "join", body={}, seconds=JOIN_SECONDS)
        except LoggedOut:
            raise
        except Trouble as trouble:
            if _may_pass(trouble):
                self._open[room_id] = source
            _log.warning("A room that we are invited to could not be joined: %s", trouble)

    async def _check(self, room_id: str, source: SessionSource) -> None:
        """Leave a room again that is not what it was said to be."""
        try:
            if not await self._is_chat_of_two(room_id):
                await self._line.ask("POST", "v3", "rooms", room_id, "leave", body={})
                _log.warning("%s called a room a direct chat that is none; we left.", one_line(str(source.user_id)))
        except LoggedOut:
            raise
        except Trouble as trouble:
            if _may_pass(trouble):
                return
        del self._unsure[room_id]

    async def _is_chat_of_two(self, room_id: str) -> bool:
        members = events_in((await self._line.ask("GET", "v3", "rooms", room_id, "members")).get("chunk"))
        inside = [one for one in members if content_of(one).get("membership") in _INSIDE]
        rule = await self._line.ask("GET", "v3", "rooms", room_id, "state", "m.room.join_rules")
        return len(inside) == 2 and rule.get("join_rule") == "invite"


def _may_pass(trouble: Trouble) -> bool:
    """Whether the same may go well later."""
    return not isinstance(trouble, Refused) or trouble.is_busy or trouble.is_broken
