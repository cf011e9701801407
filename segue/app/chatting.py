"""A chat, put together: the store, the tools, and who answers."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from segue import app, config
from segue.agent.chat import Chat, Kit
from segue.agent.compression import Compression, Means
from segue.agent.delegating import Workplace, delegate
from segue.agent.door import Door
from segue.agent.holding import Holder, Presence
from segue.agent.naming import Namer
from segue.agent.offline import OfflineAgent
from segue.agent.recalling import Recaller
from segue.agent.summarising import Summariser
from segue.agent.turn import Agrees
from segue.app.crew import MAX_WAIT, Crew
from segue.app.rules import rules_of
from segue.app.workshop import Workshop, sizes_of
from segue.config import Settings
from segue.core.preferences import Preferences
from segue.core.prompts import subagent_prompt
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sizes import UNKNOWN_WINDOW
from segue.ports.agent import Agent
from segue.ports.model import Model
from segue.ports.tool import Tool
from segue.sessions.backgrounding import mark_lost
from segue.storage.store import SqlStore
from segue.tools.session_search import SessionSearch
from segue.upkeep.living import is_gone, this_run

PROGRAM = "segue chat"


class OpenChat:
    """A chat, and what has to be closed with it."""

    def __init__(
        self, settings: Settings, store: SqlStore, cwd: Path, agrees: Agrees, tell: Callable[[str], None]
    ) -> None:
        scope, zone = OWNER_AT_CONSOLE, config.zone_here()
        self._settings = settings
        self._door = Door(store, scope)
        self._presence = Presence(self._door, this_run(PROGRAM), is_gone)
        recaller = self._recaller = Recaller(self._door, self._small_model, lambda: self.chat.session_id)
        search = SessionSearch(
            store,
            scope,
            lambda: zone,
            now=time.time,
            clock=time.monotonic,
            summarise=recaller.summarise if settings.auxiliary.model else None,
        )
        self._workshop = Workshop(settings, store, scope, self._presence.run.id, cwd, search, tell)
        self._offline = OfflineAgent(store, scope, time.time, lambda: zone)
        self.crew = Crew(settings, config.environment_of_models(), tell)
        self._workplace = Workplace(
            door=self._door,
            presence=self._presence,
            agent_for=self._subagent_for,
            agrees=agrees,
            compression=self._compression,
            new_session_id=app.new_session_id,
            prompt=self._subagent_prompt,
            zone=zone,
        )
        holder = Holder(self._presence)
        self.chat = Chat(
            Kit(
                door=self._door,
                holder=holder,
                agent_for=self._agent_for,
                model_named=self.crew.named,
                resolve_model=self.crew.resolve,
                new_session_id=app.new_session_id,
                prompt=lambda began: self._workshop.prompt(began, self._tools()),
                parts=lambda: sizes_of(self._tools()),
                agrees=agrees,
                zone=zone,
                compression=self._compression(holder),
                meant=self.crew.meant,
                greets=partial(self.crew.can_greet, max_wait=MAX_WAIT),
                namer=Namer(self._door, self._small_model),
                cwd=str(cwd),
                keys=settings.key_rules,
                homes=settings.homes,
                freshness=settings.agent.auto_continue_freshness,
            )
        )

    async def begin(self) -> None:
        self._recaller.begin()
        await self._presence.begin()
        await self._door.write(mark_lost, is_gone, time.time())
        self._workshop.begin()

    async def close(self) -> None:
        await self._workshop.stop()
        await self.chat.close()
        await self._presence.end()
        await self._workshop.close()
        await self.crew.close()
        self._door.close()

    # Who answers, and with what

    def _tools(self) -> list[Tool]:
        return self._workshop.tools(self._delegate)

    async def _agent_for(self, chosen: Preferences) -> Agent:
        session = await self.chat.session()
        await self._workshop.ready(session.cwd if session else None)
        return await self.crew.agent_for(chosen, self._tools(), self._offline)

    async def _delegate(self, task: str, session_id: str) -> str:
        return await delegate(self._workplace, task, session_id)

    async def _subagent_for(self, chosen: Preferences) -> Agent:
        return await self.crew.agent_for(chosen, self._workshop.tools(None), self._offline)

    def _subagent_prompt(self, began: datetime) -> str:
        return subagent_prompt(self._workshop.prompt(began, self._workshop.tools(None)))

    # Conversations that become long

    def _compression(self, holder: Holder) -> Compression:
        means = Means(self._summariser, app.new_session_id, self._workshop.can_take_notes, rules_of(self._settings))
        return Compression(self._door, holder, means)

    async def _small_model(self) -> Model | None:
        found = await self.crew.auxiliary(self.chat.preferences)
        return found[0] if found else None

    async def _summariser(self) -> Summariser:
        found = await self.crew.auxiliary(self.chat.preferences)
        if found is None:
            return Summariser(None)
        model, window = found
        session = await self.chat.session()
        return Summariser(model, window or (session.context_window if session else None) or UNKNOWN_WINDOW)
