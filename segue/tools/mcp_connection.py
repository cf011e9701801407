"""A connection with an MCP server, by the official SDK. Whatever goes wrong in it is told as one of ours.

Lost        there is no connection, or no longer
ToolFailed  one call did not succeed
"""

import asyncio
import json
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import ValidationError

from segue.core.text import cut, one_line, printable, storable
from segue.ports.tool import ToolFailed
from segue.tools.mcp_places import Lost, Program, Website
from segue.tools.mcp_program import Talk
from segue.tools.mcp_tool import MOST_TOOLS, Offer
from segue.tools.mcp_website import Visit

MOST_CHARACTERS = 50_000
_MOST_PAGES = 50

for _name in ("mcp", "client"):  # the SDK would write about bad servers across the screen
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Connection:
    """One connection. It is made, kept and ended by one task, and used by any."""

    def __init__(self, at: Program | Website, seconds: float) -> None:
        self.offers: list[Offer] = []
        self._at = at
        self._seconds = seconds
        self._talk = Talk()
        self._visit = Visit()
        self._client: Client | None = None

    async def keep(self, arrived: Callable[[], None], leaving: asyncio.Event) -> None:
        """Until we leave. `arrived` is called when the tools are known; Lost when there is nobody to talk to."""
        try:
            await self._keep(arrived, leaving)
        except TimeoutError:
            raise Lost(f"it did not answer within {self._seconds:g} seconds.") from None
        except Lost:
            raise
        except Exception as error:  # a server of others can bring about anything
            raise Lost(self._reason(error)) from error
        if self._is_deserted and not leaving.is_set():
            raise Lost(self._talk.why)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        assert self._client is not None
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            if self._talk.is_over.is_set():
                raise ToolFailed("The MCP server ended before it answered; what it did is unknown.") from None
            raise ToolFailed(f"The MCP server says: {_clean(error.error.message)}") from None
        except TimeoutError:
            raise
        except Exception as error:  # a server of others can bring about anything
            raise ToolFailed(f"The answer of the MCP server cannot be used: {_clean(str(_first(error)))}") from error
        text = told(result)
        if result.is_error:
            raise ToolFailed(text)
        return text

    async def _keep(self, arrived: Callable[[], None], leaving: asyncio.Event) -> None:
        client = Client(self._transport(), client_info=Implementation(name="segue", version=version("segue")))
        async with asyncio.timeout(self._seconds) as limit, client:
            self.offers = [_offer(tool) for tool in await _listed(client)]
            limit.reschedule(None)
            self._client = client
            arrived()
            ends = [asyncio.ensure_future(event.wait()) for event in (leaving, self._talk.is_over)]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()

    def _transport(self) -> Any:
        at = self._at
        return self._talk.begun(at) if isinstance(at, Program) else self._visit.begun(at, self._seconds)

    @property
    def _is_deserted(self) -> bool:
        """Whether a program ended that nobody wanted to end."""
        return self._talk.is_over.is_set() and not self._talk.is_left

    def _reason(self, error: BaseException) -> str:
        if self._is_deserted:
            return self._talk.why
        if self._visit.fault:
            return self._visit.fault
        first = _first(error)
        if isinstance(first, FileNotFoundError):
            return f"there is no program {first.filename}."
        if isinstance(first, ValidationError):
            return f"what it says has not the form of MCP{_where(first)}."
        return str(first) or type(first).__name__


async def _listed(client: Client) -> list[Tool]:
    """Every tool, unless there is no end of them."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > MOST_TOOLS:
            break
    return tools


def _offer(tool: Tool) -> Offer:
    hints = tool.annotations
    return Offer(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        is_read_only=bool(hints and hints.read_only_hint),
        is_idempotent=bool(hints and hints.idempotent_hint),
    )


def told(result: CallToolResult) -> str:
    """What a model reads of a result."""
    parts = [_in_words(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = printable(storable("\n".join(parts)))
    if len(text) > MOST_CHARACTERS:
        shown = cut(text, MOST_CHARACTERS)
        return f"{shown}\n[{len(text) - len(shown):,} characters more are not shown.]"
    return text or "(no text)"


def _in_words(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind):
            return f"[An image, {kind}, which cannot be shown here.]"
        case AudioContent(mime_type=kind):
            return f"[A sound, {kind}, which cannot be played here.]"
        case ResourceLink(uri=uri):
            return f"[A link to {uri}]"
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=resource):
            return f"[A file, {resource.mime_type or 'of an unknown kind'}, which cannot be shown here.]"


def _first(error: BaseException) -> BaseException:
    """The error that others were only the consequence of."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _where(error: ValidationError) -> str:
    """The first place that is wrong, and what is wrong there."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f", at {'.'.join(map(str, first['loc']))}: {first['msg']}"


def _clean(text: str) -> str:
    return cut(one_line(storable(text)), 1_000)
