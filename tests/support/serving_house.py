"""The gateway as the product puts it together, on a stage and with a model that does what it is told."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lane_house import _is_busy
from obedient_model import Obedient
from waiting import DEADLINE, until

from segue import app, config
from segue.app import crew
from segue.app.connecting import platforms_of
from segue.app.serving import Serving
from segue.core.inbound import Inbound, Receipt
from segue.core.leases import GATEWAY
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.storage.store import SqlStore
from segue.testing import ScriptedPlatform, Stage
from segue.upkeep.living import this_run

Work = Callable[[], Awaitable[None]]

EVERYBODY = {"dm": "open", "groups": ["*"], "mention": False}
USUAL: dict[str, Any] = {
    "model": "openai/obedient",
    "owners": ["scripted:owner"],
    "access": {"scripted": EVERYBODY, "other": EVERYBODY},
    "agent": {"approvals": "allow"},
    "queue": {"debounce": 0},
    "session": {"greet": False},
}


def write_settings(home: Path, **more: Any) -> Path:
    """A home in which everybody may speak and one person is the owner."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.yaml").write_text(json.dumps(USUAL | more), "utf-8")  # which is YAML, too
    (home / "config.yaml").chmod(0o600)
    return home


class Served:
    """A gateway of a home, here in this process."""

    def __init__(self, home: Path, stages: dict[str, Stage], *, has_programs: bool = False) -> None:
        """With programs: jobs run and hooks are called, as the settings say."""
        self.settings = config.load(home, {})
        self.stages = stages
        self.store: SqlStore = app.open_store(chosen=self.settings)
        self._serving: Serving | None = None
        self._programs = platforms_of(self.settings, self.store) if has_programs else []

    async def quiet(self, seconds: float = DEADLINE) -> None:
        """Wait until everything that was said has come to its end, everything was sent and nobody looks for a title."""

        def is_quiet() -> bool:
            if any(stage.waiting() for stage in self.stages.values()) or self.store.read(OWNER, _is_busy):
                return False
            serving = self._serving
            return serving is None or not (serving.gateway.lanes._workers or serving._namer._naming)

        await until(is_quiet, "quiet", seconds)

    async def receive(self, said: Inbound) -> Receipt:
        """As whatever has no stage brings it."""
        assert self._serving is not None
        return await self._serving.gateway.desk.receive(said)

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        assert self._serving is not None
        await self._serving.gateway.desk.withdraw(source, message_id)

    def run(self, work: Work, seconds: float = 4 * DEADLINE) -> None:
        asyncio.run(asyncio.wait_for(self._lives(work), seconds))

    def close(self) -> None:
        self.store.close()

    async def _lives(self, work: Work) -> None:
        stop = asyncio.Event()
        platforms = [*self._programs, *(ScriptedPlatform(stage, name) for name, stage in self.stages.items())]
        serving = Serving(self.settings, self.store, this_run(GATEWAY), platforms, stop.set)
        self._serving = serving
        serving.begin()
        living = asyncio.create_task(serving.gateway.run(stop))
        try:
            await work()
        finally:
            stop.set()
            await living
            await serving.close()


def use_obedient_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else answers."""
    monkeypatch.setattr(crew, "ProviderModel", Obedient)
    monkeypatch.setattr(crew, "warm_up", len)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setattr(Obedient, "asked", [])
