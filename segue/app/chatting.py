"""A chat, put together: the store, the tools, and who answers."""

import json
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from segue import app, config
from segue.agent.chat import Chat, Kit
from segue.agent.compression import Compression, Means
from segue.agent.door import Door
from segue.agent.holding import Holder
from segue.agent.naming import Namer
from segue.agent.offline import OfflineAgent
from segue.agent.recalling import Recaller
from segue.agent.summarising import Summariser
from segue.agent.turn import Agrees
from segue.app.crew import Crew
from segue.config import Settings
from segue.core.preferences import Preferences
from segue.core.prompts import LONGEST_FILE, WORKSPACE_FILES, Place, WorkspaceFile, system_prompt
from segue.core.pruning import Pruning, Rules
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sizes import UNKNOWN_WINDOW
from segue.core.text import storable
from segue.ports.agent import Agent
from segue.ports.model import Model
from segue.ports.tool import Tool
from segue.sessions.backgrounding import mark_lost
from segue.storage.store import SqlStore
from segue.tools.background import Background
from segue.tools.environment import environment_for
from segue.tools.mcp_places import Program, Website
from segue.tools.mcp_servers import McpServers
from segue.tools.session_search import SessionSearch
from segue.tools.toolbox import Machine, notes_of, tools_for
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
        run = this_run(PROGRAM)
        self._holder = Holder(self._door, run, is_gone)
        self._background = Background(store, scope, run.id, settings.home / "logs" / "processes")
        notes = notes_of(scope, settings.home / "memory")
        recaller = self._recaller = Recaller(self._door, self._small_model, lambda: self.chat.session_id)
        search = SessionSearch(
            store,
            scope,
            lambda: zone,
            now=time.time,
            clock=time.monotonic,
            summarise=recaller.summarise if settings.auxiliary.model else None,
        )
        self._cwd = self._folder = cwd
        self._tell = tell
        self._servers = McpServers(_servers(settings, cwd), tell)

        def tools() -> list[Tool]:
            servers = self._servers.tools()
            machine = Machine(self._folder, config.environment_of_tools(), settings.home, self._background, servers)
            return tools_for(machine=machine, notes=notes, search=search)

        self._tools = tools

        offline = OfflineAgent(store, scope, time.time, lambda: zone)
        self.crew = Crew(settings, config.environment_of_models(), tools, offline, tell)
        self.chat = Chat(
            Kit(
                door=self._door,
                holder=self._holder,
                agent_for=self._agent_for,
                model_named=self.crew.named,
                resolve_model=self.crew.resolve,
                new_session_id=app.new_session_id,
                prompt=lambda began: _prompt(began, cwd, tools()),
                parts=lambda: [(tool.spec.name, len(json.dumps(tool.spec))) for tool in tools()],
                agrees=agrees,
                zone=zone,
                compression=Compression(self._door, self._holder, self._means(settings, notes)),
                namer=Namer(self._door, self._small_model),
                cwd=str(cwd),
                freshness=settings.agent.auto_continue_freshness,
            )
        )

    async def _agent_for(self, chosen: Preferences) -> Agent:
        """Who answers, with tools that work where the conversation began, as the agent was told."""
        session = await self.chat.session()
        begun = Path(session.cwd) if session and session.cwd else self._cwd
        if not begun.is_dir():
            self._tell(
                f"The folder of this conversation, {begun}, is not there any more; its tools work in {self._cwd}."
            )
            begun = self._cwd
        self._folder = begun
        await self._servers.ready()
        return await self.crew.agent_for(chosen)

    def _means(self, settings: Settings, notes: Path) -> Means:
        return Means(self._summariser, app.new_session_id, lambda: _is_writable(notes), _rules(settings))

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

    async def begin(self) -> None:
        self._recaller.begin()
        await self._holder.begin()
        await self._door.write(mark_lost, is_gone, time.time())
        self._servers.begin({tool.spec.name for tool in self._tools()})

    async def close(self) -> None:
        await self._background.close()
        await self.chat.close()
        await self._servers.close()
        await self.crew.close()
        self._door.close()


def _prompt(began: datetime, cwd: Path, tools: list[Tool]) -> str:
    files = [file for name in WORKSPACE_FILES if (file := _workspace_file(cwd / name))]
    return system_prompt(Place(began, "the terminal", str(cwd)), [tool.spec.name for tool in tools], files)


def _workspace_file(path: Path) -> WorkspaceFile | None:
    """A file of the folder, if there is one that can be read; never more of it than is told."""
    try:
        with path.open("rb") as file:
            said = file.read(LONGEST_FILE * 4 + 4)  # a character has at most four bytes
    except OSError:
        return None
    text = storable(said.decode("utf-8", "replace")).strip()
    return WorkspaceFile(path.name, text) if text else None


def _servers(settings: Settings, cwd: Path) -> dict[str, Program | Website]:
    """The MCP servers that our agent has; one of somebody else brings tools of its own."""
    if settings.agent.entry:
        return {}
    environment = environment_for(config.environment_of_tools())
    return {
        name: Program(said.command, cwd, environment | dict(said.env))
        if said.command
        else Website(said.url, said.headers)
        for name, said in settings.mcp.servers.items()
    }


def _is_writable(notes: Path) -> bool:
    """Whether notes can be written there, or a folder for them be made."""
    there = next((folder for folder in (notes, *notes.parents) if folder.exists()), notes)
    return os.access(there, os.W_OK | os.X_OK)


def _rules(settings: Settings) -> Rules:
    said = settings.pruning
    pruning = Pruning(said.keep_last, said.soft, said.hard, said.min_chars, said.max_chars, said.head, said.tail)
    return Rules(settings.compression.threshold, settings.compression.protect_last_n, pruning)
