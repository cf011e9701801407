"""The MCP servers of a chat: each is reached in a task of its own, beside everything else, until the chat ends.

A server that is not there costs nobody more than its tools. What is loaded to speak with one is loaded beside, too.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from segue.ports.tool import Tool
from segue.tools.mcp_places import Program, Website
from segue.tools.mcp_server import McpServer
from segue.tools.mcp_tries import PAUSE, REST, Tries

CONNECTING = 10.0
"""Seconds until a server has said what it can do."""
CALLING = 60.0
"""Seconds for one use of a tool."""


class McpServers:
    """All servers, and the tools that they have brought."""

    def __init__(
        self,
        servers: Mapping[str, Program | Website],
        tell: Callable[[str], None],
        *,
        connecting: float = CONNECTING,
        calling: float = CALLING,
        pause: float = PAUSE,
        rest: float = REST,
    ) -> None:
        self._has_turns = False
        self._servers = [
            McpServer(name, servers[name], tell, Tries(pause, rest), connecting, calling) for name in sorted(servers)
        ]

    def begin(self, taken: Collection[str]) -> None:
        """Begin to reach every server; their tools get names that are not taken."""
        for server in self._servers:
            server.begin(taken)

    async def ready(self) -> None:
        """Before a turn: wait for the servers, have back those that are gone, and tell what has happened to them."""
        self._has_turns = True
        await asyncio.gather(*(server.prepare() for server in self._servers))
        for server in self._servers:
            server.show()
            server.tell_news()

    def tools(self) -> list[Tool]:
        """What can be used, always in the same order: the same from one turn to the next."""
        if not self._has_turns:
            for server in self._servers:
                server.show()
        return [tool for server in self._servers for tool in server.tools]

    async def close(self) -> None:
        """End what was started, and leave the others."""
        await asyncio.gather(*(server.close() for server in self._servers))
