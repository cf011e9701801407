"""Gateways that live shortly, one after another, and what one person sees of them."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from gateway_nursery import Nursery
from lane_house import dm
from waiting import DEADLINE

from segue.core.inbox import Entry
from segue.core.lifecycle import Lane
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import FAREWELL, Turn
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.remote import Backstage

LANE = "agent:main:scripted:dm:alice"


class ShortLives:
    """A stage, a database, and one gateway at a time."""

    def __init__(self, database: str | Path, nursery: Nursery, **request: Any) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="stage-"))
        self._nursery = nursery
        self._store = SqlStore(engine_at(database))
        self._log = self._folder / "tools"
        self._log.touch()
        (self._folder / "looks").touch()
        self.stage = Stage()
        self._request = {
            "database": str(database),
            "socket": str(self._folder / "socket"),
            "tool_log": str(self._log),
            "pause": 0.01,
            "has_key": True,
            "program": "segue gateway",
            "crash_span": 86_400.0,
            "looks_often": True,
            "looks": str(self._folder / "looks"),
            **request,
        }

    def open(self) -> Backstage:
        return Backstage(self.stage, self._folder / "socket")

    def close(self) -> None:
        self._store.close()

    async def begin(self, **more: Any) -> int:
        return await asyncio.to_thread(self._nursery.start, self._request | more)

    async def kill(self, pid: int) -> None:
        await asyncio.to_thread(self._nursery.end, pid)

    async def dies(self, pid: int) -> bool:
        return await asyncio.to_thread(self._nursery.is_gone, pid, DEADLINE)

    def say(self, text: str, who: str = "alice") -> str:
        return self.stage.say(dm(who), text)

    @property
    def told(self) -> str:
        """What alice can read."""
        return " ".join(" ".join(self.stage.posted_to("alice")).split())

    @property
    def tools(self) -> list[str]:
        return self._log.read_text().split()

    @property
    def looks(self) -> int:
        """How often gateways have looked for what others left."""
        return len((self._folder / "looks").read_text().splitlines())

    @property
    def lane(self) -> Lane | None:
        return self._store.read(OWNER, lambda tx: tx.lanes.find(LANE))

    def entries(self, *states: str) -> list[Entry]:
        return self._store.read(OWNER, lambda tx: tx.inbox.listed(states))

    def attempts(self) -> int:
        """How often the first message that is being answered has been begun."""
        (entry, *_) = self.entries("running")
        turn = self._store.read(OWNER, lambda tx: tx.turns.find(entry.turn_id or ""))
        return turn.attempt if turn else 0

    def farewell(self) -> Turn | None:
        name = self.lane.session_id if self.lane else None
        return self._store.read(OWNER, lambda tx: tx.turns.latest(name or "", FAREWELL))
