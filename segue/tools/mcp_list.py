"""Which tools a server says that it has, and that it has others now."""

import asyncio
from contextlib import suppress

from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import Tool, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from segue.tools.mcp_tool import MOST_TOOLS, Offer

_MOST_PAGES = 50
_PAUSE = 1.0  # seconds until a server is asked again to say what changes; they double
_LONGEST_PAUSE = 300.0


class ToolList:
    """The tools of one connection."""

    def __init__(self) -> None:
        self.is_changed = False
        """Whether the server may have others than were read."""

    async def read(self, client: Client) -> list[Offer]:
        """Every tool, unless there is no end of them."""
        self.is_changed = False
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) > MOST_TOOLS:
                break
        return [_offer(tool) for tool in tools]

    async def heard(self, message: IncomingMessage) -> None:
        """Whatever a server says unasked."""
        if isinstance(message, ToolListChangedNotification):
            self.is_changed = True

    async def listen(self, client: Client) -> None:
        """Have a server say when its tools change. Older ones do so unasked; newer ones as long as somebody listens."""
        pause = _PAUSE
        while _tells_when_asked(client):
            with suppress(MCPError, SubscriptionLost):
                async with client.listen(tools_list_changed=True) as changes:
                    if pause > _PAUSE:
                        self.is_changed = True  # what it said while nobody listened is not said again
                    async for _ in changes:
                        self.is_changed = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _tells_when_asked(client: Client) -> bool:
    tools = client.server_capabilities.tools
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS and bool(tools and tools.list_changed)


def _offer(tool: Tool) -> Offer:
    hints = tool.annotations
    return Offer(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        is_read_only=bool(hints and hints.read_only_hint),
        is_idempotent=bool(hints and hints.idempotent_hint),
    )
