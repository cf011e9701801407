"""Who brings us into rooms: whoever would be heard there. Other invitations stay open, and are looked at again."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.events import mapping
from segue.platforms.matrix.failing import Refused, Trouble
from segue.platforms.matrix.inbound import Me, inviter_of
from segue.ports.platform import Intake

LOOK_SECONDS = 10.0
"""After which open invitations are looked at again."""
JOIN_SECONDS = 120.0
"""Rooms on other homeservers can take long."""
MOST = 100

_log = logging.getLogger(__name__)


class Porter:
    """Joins the rooms that we are welcome to join, one after another and apart from what is being read."""

    def __init__(self, line: Line, intake: Intake, me: Me) -> None:
        self._line = line
        self._intake = intake
        self._me = me
        self._open: dict[str, SessionSource] = {}
        self._told: set[str] = set()
        self._news = asyncio.Event()

    def hear(self, rooms: Mapping[str, Any]) -> None:
        """What a homeserver tells of rooms: invitations come, and are taken back."""
        for room_id, one in mapping(rooms.get("invite")).items():
            state = mapping(mapping(one).get("invite_state")).get("events")
            events = [event for event in state if isinstance(event, dict)] if isinstance(state, list) else []
            source = inviter_of(room_id, events, self._me)
            if source is not None and len(self._open) < MOST:
                self._open[room_id] = source
                self._news.set()
        for room_id in [*mapping(rooms.get("leave")), *mapping(rooms.get("join"))]:
            self._open.pop(room_id, None)
            self._told.discard(room_id)

    async def run(self) -> None:
        """Look after invitations until cancelled."""
        while True:
            self._news.clear()
            for room_id, source in list(self._open.items()):
                await self._look_at(room_id, source)
            try:
                await asyncio.wait_for(self._news.wait(), LOOK_SECONDS if self._open else None)
            except TimeoutError:
                continue

    async def _look_at(self, room_id: str, source: SessionSource) -> None:
        if not await self._intake.is_welcome(source):
            if room_id not in self._told:
                _log.info("%s invites us, and is not known; the invitation stays open.", one_line(str(source.user_id)))
            self._told.add(room_id)
            return
        try:
            await self._line.ask("POST", "v3", "rooms", room_id, "join", body={}, seconds=JOIN_SECONDS)
        except Refused as refused:
            if not (refused.is_busy or refused.is_broken):
                self._open.pop(room_id, None)
            _log.warning("A room that we are invited to cannot be joined: %s", refused)
        except Trouble as trouble:
            _log.info("A room that we are invited to could not be joined yet: %s", trouble)
        else:
            self._open.pop(room_id, None)
