"""What an owner's agent works with: its tools on this machine, and the folder they work in."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from segue import config
from segue.app.others import tools_of_others
from segue.config import Settings
from segue.core.prompts import LONGEST_FILE, WORKSPACE_FILES, Place, WorkspaceFile, system_prompt
from segue.core.scope import Scope
from segue.core.text import storable
from segue.ports.tool import Tool
from segue.storage.store import SqlStore
from segue.tools.background import Background
from segue.tools.delegate import Subagent
from segue.tools.environment import environment_for
from segue.tools.mcp_places import Program, Website
from segue.tools.mcp_servers import McpServers
from segue.tools.session_search import SessionSearch
from segue.tools.toolbox import Machine, notes_of, tools_for


class Workshop:
    """Tools that are the same from turn to turn, until the conversation goes to another folder."""

    def __init__(
        self,
        settings: Settings,
        store: SqlStore,
        scope: Scope,
        run_id: str,
        cwd: Path,
        search: SessionSearch,
        tell: Callable[[str], None],
    ) -> None:
        self._home = settings.home
        self._cwd = self._folder = cwd
        self._search = search
        self._tell = tell
        self._notes = notes_of(scope, settings.home / "memory")
        self._background = Background(store, scope, run_id, settings.home / "logs" / "processes")
        self._servers = McpServers(_servers(settings, cwd), tell)
        self._others: Sequence[Tool] | None = None
        """Of installed packages; nothing until somebody needs them."""

    def tools(self, subagent: Subagent | None, notes: Path | None = None) -> list[Tool]:
        """Everything; without somebody to delegate to, everything but that. An agent may have notes of its own."""
        machine = Machine(
            self._folder,
            config.environment_of_tools(),
            self._home,
            self._background,
            subagent,
            self._servers.tools(),
        )
        ours = tools_for(machine=machine, notes=notes or self._notes, search=self._search)
        taken = {tool.spec.name for tool in ours}
        return [*ours, *(tool for tool in self._others or () if tool.spec.name not in taken)]

    def prompt(self, began: datetime, tools: list[Tool]) -> str:
        """What an agent that begins here is told."""
        files = [file for name in WORKSPACE_FILES if (file := _workspace_file(self._cwd / name))]
        return system_prompt(Place(began, "the terminal", str(self._cwd)), [tool.spec.name for tool in tools], files)

    def can_take_notes(self) -> bool:
        return can_write(self._notes)

    def begin(self) -> None:
        self._servers.begin({tool.spec.name for tool in self.tools(_nobody)})

    async def ready(self, cwd: str | None) -> None:
        """Work in the folder where a conversation began, as its agent was told; elsewhere when it is there no more."""
        begun = Path(cwd) if cwd else self._cwd
        if not begun.is_dir():
            self._tell(
                f"The folder of this conversation, {begun}, is not there any more; its tools work in {self._cwd}."
            )
            begun = self._cwd
        self._folder = begun
        if self._others is None:
            self._others = await asyncio.to_thread(tools_of_others, self._tell)  # reading what is installed takes long
        await self._servers.ready()

    async def stop(self) -> None:
        """End what runs in the background."""
        await self._background.close()

    async def close(self) -> None:
        await self._servers.close()


def sizes_of(tools: Sequence[Tool]) -> list[tuple[str, int]]:
    """Return each tool with the characters that a model is told of it."""
    return [(tool.spec.name, len(json.dumps(tool.spec, ensure_ascii=False))) for tool in tools]


def can_write(notes: Path) -> bool:
    """Whether notes can be written there, or a folder for them be made."""
    there = next((one for one in (notes, *notes.parents) if one.exists()), notes)
    return os.access(there, os.W_OK | os.X_OK)


async def _nobody(_task: str, _session_id: str) -> str:
    raise NotImplementedError


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
