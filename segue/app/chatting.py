"""A chat, put together: the store, the tools, and who answers."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from segue import app, config
from segue.agent.chat import Chat, Kit
from segue.agent.door import Door
from segue.agent.holding import Holder
from segue.agent.offline import OfflineAgent
from segue.agent.turn import Agrees
from segue.app.crew import Crew
from segue.config import Settings
from segue.core.prompts import Place, system_prompt
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.tool import Tool
from segue.storage.store import SqlStore
from segue.tools.session_search import SessionSearch
from segue.tools.toolbox import notes_of, tools_for
from segue.upkeep.living import is_gone, this_run

PROGRAM = "segue chat"


class OpenChat:
    """A chat, and what has to be closed with it."""

    def __init__(
        self, settings: Settings, store: SqlStore, cwd: Path, agrees: Agrees, tell: Callable[[str], None]
    ) -> None:
        scope, zone = OWNER_AT_CONSOLE, config.zone_here()
        self._store = store
        self._door = Door(store, scope)
        self._holder = Holder(self._door, this_run(PROGRAM), is_gone)
        tools = tools_for(
            is_owner=True,
            cwd=cwd,
            environment=config.environment_of_tools(),
            notes=notes_of(scope, settings.home / "memory"),
            search=SessionSearch(store, scope, lambda: zone, now=time.time, clock=time.monotonic),
        )
        offline = OfflineAgent(store, scope, time.time, lambda: zone)
        self.crew = Crew(settings, config.environment_of_models(), tools, offline, tell)
        self.chat = Chat(
            Kit(
                door=self._door,
                holder=self._holder,
                agent_for=self.crew.agent_for,
                model_named=self.crew.named,
                resolve_model=self.crew.resolve,
                new_session_id=app.new_session_id,
                prompt=lambda began: _prompt(began, cwd, tools),
                parts=lambda: [(tool.spec.name, len(json.dumps(tool.spec))) for tool in tools],
                agrees=agrees,
                zone=zone,
                cwd=str(cwd),
                freshness=settings.agent.auto_continue_freshness,
            )
        )

    async def begin(self) -> None:
        await self._holder.begin()

    async def close(self) -> None:
        await self.chat.close()
        await self.crew.close()
        self._door.close()


def _prompt(began: datetime, cwd: Path, tools: list[Tool]) -> str:
    return system_prompt(Place(began, "the terminal", str(cwd)), [tool.spec.name for tool in tools])
