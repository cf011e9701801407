"""A connection with an MCP server, by the official SDK. Whatever goes wrong in it is told as one of ours.

Lost        there is no connection, or no longer
ToolFailed  one call did not succeed
Unsent      one call was not made
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, Implementation
from pydantic import ValidationError

from segue.core.text import cut, one_line, storable
from segue.ports.tool import ToolFailed
from segue.tools.mcp_list import ToolList
from segue.tools.mcp_places import Lost, Program, Unsent, Website
from segue.tools.mcp_program import Talk
from segue.tools.mcp_result import told
from segue.tools.mcp_tool import Offer
from segue.tools.mcp_website import Sending, Visit

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
        self._list = ToolList()
        self._is_kept = False
        self._is_useless = asyncio.Event()
        self._client: Client | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody is there, as far as is known."""
        return self._is_kept and not self._talk.is_over.is_set() and not self._is_useless.is_set()

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
        finally:
            self._is_kept = False
        if not leaving.is_set():
            raise Lost(self._talk.why if self._is_deserted else "it does not know this chat any more.")

    async def refresh(self) -> bool:
        """Read the tools again if the server has others now; whether it had. Lost when it does not say which."""
        if not self._list.is_changed or self._client is None:
            return False
        try:
            async with asyncio.timeout(self._seconds):
                self.offers = await self._list.read(self._client)
        except TimeoutError:
            raise Lost(f"it did not answer within {self._seconds:g} seconds.") from None
        except Exception as error:  # a server of others can bring about anything
            raise Lost(self._reason(error)) from error
        return True

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        if self._client is None or not self.is_open:
            raise Unsent
        try:
            with self._visit.sending() as sending:
                result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            raise self._failure(error, sending) from None
        except TimeoutError:
            raise
        except Exception as error:  # a server of others can bring about anything
            raise ToolFailed(f"The answer of the MCP server cannot be used: {_clean(str(_first(error)))}") from error
        text = told(result)
        if result.is_error:
            raise ToolFailed(text)
        return text

    def _failure(self, error: MCPError, sending: Sending) -> ToolFailed | Unsent:
        is_cut_off = error.code == CONNECTION_CLOSED
        if sending.is_refused or (is_cut_off and isinstance(self._at, Website) and not sending.is_sent):
            self._is_useless.set()
            return Unsent()
        if is_cut_off or self._talk.is_over.is_set():
            return ToolFailed("The MCP server ended before it answered; what it did is unknown.")
        return ToolFailed(f"The MCP server says: {_clean(error.error.message)}")

    async def _keep(self, arrived: Callable[[], None], leaving: asyncio.Event) -> None:
        client = Client(
            self._transport(),
            client_info=Implementation(name="segue", version=version("segue")),
            message_handler=self._list.heard,
        )
        async with asyncio.timeout(self._seconds) as limit, client:
            self.offers = await self._list.read(client)
            limit.reschedule(None)
            self._client = client
            self._is_kept = True
            arrived()
            listening = asyncio.create_task(self._list.listen(client))
            try:
                await _first_of(leaving, self._talk.is_over, self._is_useless)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

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


async def _first_of(*events: asyncio.Event) -> None:
    ends = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()


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
