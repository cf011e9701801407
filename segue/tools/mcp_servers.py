"""The MCP servers of a chat: each is reached in a task of its own, beside everything else, until the chat ends.

A server that is not there costs nobody more than its tools. What is loaded to speak with one is loaded beside, too.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from segue.core.text import count, one_line, shorten
from segue.ports.tool import Tool, ToolFailed
from segue.tools.mcp_places import Lost, Program, Website
from segue.tools.mcp_tool import LONGEST_NAME, McpTool, Offer, named, usable

CONNECTING = 10.0
"""Seconds until a server has said what it can do."""
CALLING = 60.0
"""Seconds for one use of a tool."""
_LEAVING = 2.0  # seconds for a server elsewhere to hear that we leave
_ENDING = 10.0  # seconds for a program: longer than asking it to end and killing it takes
_LONGEST_REASON = 300
_MOST_NAMES = 5


class Connection(Protocol):
    """What is loaded to speak with a server."""

    offers: Sequence[Offer]

    async def keep(self, arrived: Callable[[], None], leaving: asyncio.Event) -> None:
        """Until we leave. `arrived` is called when the tools are known; Lost when there is nobody to talk to."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Use a tool, and tell what came of it."""


class McpServers:
    """All servers, and the tools that they have brought."""

    def __init__(
        self,
        servers: Mapping[str, Program | Website],
        tell: Callable[[str], None],
        *,
        connecting: float = CONNECTING,
        calling: float = CALLING,
    ) -> None:
        self._news: list[str] = []
        self._tell = tell
        self._connecting = connecting
        self._is_awaited = False
        self._servers = [
            _Server(name, servers[name], self._news.append, connecting, calling) for name in sorted(servers)
        ]

    def begin(self, taken: Collection[str]) -> None:
        """Begin to reach every server; their tools get names that are not taken."""
        for server in self._servers:
            server.begin(taken)

    async def ready(self) -> None:
        """Wait for the tools when they are needed for the first time, and tell what has happened to servers since."""
        if not self._is_awaited:
            self._is_awaited = True
            await self._settled()
        news, self._news[:] = list(self._news), []
        for line in news:
            self._tell(line)

    def tools(self) -> list[Tool]:
        """What can be used now, always in the same order."""
        return [tool for server in self._servers for tool in server.tools]

    async def close(self) -> None:
        """End what was started, and leave the others."""
        await asyncio.gather(*(server.close() for server in self._servers))

    async def _settled(self) -> None:
        waiting = [asyncio.ensure_future(server.is_settled.wait()) for server in self._servers if server.is_begun]
        if not waiting:
            return
        try:
            await asyncio.wait(waiting, timeout=self._connecting)
        finally:
            for one in waiting:
                one.cancel()
        late = [server.name for server in self._servers if server.is_begun and not server.is_settled.is_set()]
        self._news += [
            f"The MCP server {name} has not answered yet; this turn begins without its tools." for name in late
        ]


class _Server:
    """One server, from the beginning of a chat to its end."""

    def __init__(
        self, name: str, at: Program | Website, note: Callable[[str], None], connecting: float, calling: float
    ) -> None:
        self.name = name
        self.tools: list[McpTool] = []
        self.is_settled = asyncio.Event()
        """Whether its tools are there, or never will be."""
        self._at = at
        self._note = note
        self._connecting = connecting
        self._calling = calling
        self._leaving = asyncio.Event()
        self._connection: Connection | None = None
        self._keeping: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        return self._keeping is not None

    def begin(self, taken: Collection[str]) -> None:
        self._keeping = asyncio.create_task(self._keep(taken))

    async def close(self) -> None:
        if self._keeping is None:
            return
        self._leaving.set()
        if not self.is_settled.is_set():
            self._keeping.cancel()
        done, _ = await asyncio.wait({self._keeping}, timeout=_ENDING if isinstance(self._at, Program) else _LEAVING)
        if not done:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})

    async def _keep(self, taken: Collection[str]) -> None:
        try:
            loaded = await asyncio.to_thread(import_module, "segue.tools.mcp_connection")
        except ImportError:
            self._note(f"The MCP server {self.name} cannot be used: run pip install 'segue[mcp]'.")
            self.is_settled.set()
            return
        connection: Connection = loaded.Connection(self._at, self._connecting)
        try:
            await connection.keep(lambda: self._arrived(connection, taken), self._leaving)
        except Lost as lost:
            what = "is gone" if self._connection else "cannot be used"
            if not self._leaving.is_set():
                reason = shorten(one_line(str(lost)), _LONGEST_REASON)
                self._note(f"The MCP server {self.name} {what}, and its tools are not there: {reason}")
        finally:
            self._connection = None
            self.tools = []
            self.is_settled.set()

    def _arrived(self, connection: Connection, taken: Collection[str]) -> None:
        good, bad = usable(connection.offers)
        names = named(self.name, [offer.name for offer in good], taken)
        self._connection = connection
        self.tools = [McpTool(self.name, offer, names[offer.name], self._call) for offer in good]
        if bad:
            shown = one_line(", ".join(name[:LONGEST_NAME] for name in bad[:_MOST_NAMES]))
            self._note(f"The MCP server {self.name} has {count(len(bad), 'tool')} that no model can use: {shown}")
        self.is_settled.set()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        if self._connection is None:
            raise ToolFailed(f"The MCP server {self.name} is gone; go on without it.")
        try:
            async with asyncio.timeout(self._calling):
                return await self._connection.call(tool, arguments)
        except TimeoutError:
            raise ToolFailed(
                f"The MCP server {self.name} did not answer within {self._calling:g} seconds; what it did is unknown."
            ) from None
