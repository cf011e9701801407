"""One MCP server, from the beginning of a chat to its end.

It is reached in a task of its own. One that is gone is reached again when somebody needs it: before a turn, or for a
call. What a model is told of its tools changes only between turns.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any, Protocol

from segue.core.text import count, one_line
from segue.ports.tool import ToolFailed
from segue.tools.mcp_places import Lost, Program, Unsent, Website
from segue.tools.mcp_standing import Standing
from segue.tools.mcp_tool import LONGEST_NAME, McpTool, Offer, named, usable
from segue.tools.mcp_tries import Tries

_LEAVING = 2.0  # seconds for a server elsewhere to hear that we leave
_ENDING = 10.0  # seconds for a program: longer than asking it to end and killing it takes
_MOST_NAMES = 5


class Connection(Protocol):
    """What is loaded to speak with a server."""

    offers: Sequence[Offer]

    @property
    def is_open(self) -> bool:
        """Whether somebody is there, as far as is known."""

    async def keep(self, arrived: Callable[[], None], leaving: asyncio.Event) -> None:
        """Until we leave. `arrived` is called when the tools are known; Lost when there is nobody to talk to."""

    async def refresh(self) -> bool:
        """Read the tools again if the server has others now; whether it had. Lost when it does not say which."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Use a tool, and tell what came of it. Unsent when it was not even asked."""


class McpServer:
    """Reaches a server, and has its tools."""

    def __init__(
        self,
        name: str,
        at: Program | Website,
        tell: Callable[[str], None],
        tries: Tries,
        connecting: float,
        calling: float,
    ) -> None:
        self.name = name
        self.tools: list[McpTool] = []
        """What a model is told of."""
        self._at = at
        self._tell = tell
        self._tries = tries
        self._connecting = connecting
        self._calling = calling
        self._standing = Standing(name)
        self._taken: Collection[str] = ()
        self._found: list[McpTool] = []
        self._leaving = asyncio.Event()
        self._is_settled = asyncio.Event()
        """Whether it is there, or is not tried any more."""
        self._connection: Connection | None = None
        self._keeping: asyncio.Task[None] | None = None

    def begin(self, taken: Collection[str]) -> None:
        self._taken = taken
        self._start()

    async def prepare(self) -> None:
        """Have it there for a turn, with the tools that it has now."""
        if self._keeping is None:
            return
        connection = await self._reached()
        if connection is not None:
            await self._refresh(connection)
        elif not self._is_settled.is_set() and not self._standing.is_missed:
            self._standing.note("has not answered yet; this turn begins without its tools.")

    def show(self) -> None:
        """From now on a model is told of the tools that are there."""
        self.tools = self._found if self._connection is not None else []

    def tell_news(self) -> None:
        for line in self._standing.news():
            self._tell(line)

    async def close(self) -> None:
        self._leaving.set()
        if self._keeping is None:
            return
        if not self._is_settled.is_set():
            self._keeping.cancel()
        done, _ = await asyncio.wait({self._keeping}, timeout=_ENDING if isinstance(self._at, Program) else _LEAVING)
        if not done:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})

    # Reaching it

    def _start(self) -> None:
        self._is_settled.clear()
        self._keeping = asyncio.create_task(self._keep())

    async def _reached(self) -> Connection | None:
        """The connection, if need be a new one; nothing when there is none in time."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        try:
            async with asyncio.timeout(self._connecting):
                await self._settle()
        except TimeoutError:
            return None
        return self._connection

    async def _settle(self) -> None:
        assert self._keeping is not None
        if self._connection is not None:
            await asyncio.wait({self._keeping})  # it is being left
        if self._keeping.done() and not self._leaving.is_set() and self._tries.wait(_now()) is not None:
            self._start()
        await self._is_settled.wait()

    async def _keep(self) -> None:
        """Try until it has come, and stay with it."""
        try:
            loaded = await asyncio.to_thread(import_module, "segue.tools.mcp_connection")
            has_come = False
            while not has_come and (pause := self._tries.wait(_now())) is not None:
                await asyncio.sleep(pause)
                has_come = await self._stay(loaded.Connection(self._at, self._connecting))
        except ImportError:
            self._tries.begun()
            self._tries.lost(_now())
            self._standing.note("cannot be used: run pip install 'segue[mcp]'.")
        finally:
            self._is_settled.set()

    async def _stay(self, connection: Connection) -> bool:
        """Be with the server until it or we leave; whether it was there at all."""
        self._tries.begun()
        try:
            await connection.keep(lambda: self._arrived(connection), self._leaving)
        except Lost as lost:
            self._tries.lost(_now())
            if not self._leaving.is_set():
                self._standing.lost(str(lost))
        finally:
            has_come = self._connection is not None
            self._connection = None
        return has_come or self._leaving.is_set()

    def _arrived(self, connection: Connection) -> None:
        self._tries.came(_now())
        self._standing.came()
        self._connection = connection
        self._find(connection.offers)
        self._is_settled.set()

    # Its tools

    def _find(self, offers: Sequence[Offer]) -> None:
        """Make tools of what it offers; those that are still the same stay, to the byte."""
        good, bad = usable(offers)
        names = named(self.name, [offer.name for offer in good], self._taken)
        there = [McpTool(self.name, offer, names[offer.name], self._call) for offer in good]
        before = {tool.sameness: tool for tool in self._found}
        self._found = [before.get(tool.sameness, tool) for tool in there]
        if bad:
            shown = one_line(", ".join(name[:LONGEST_NAME] for name in bad[:_MOST_NAMES]))
            self._standing.note(f"has {count(len(bad), 'tool')} that no model can use: {shown}")

    async def _refresh(self, connection: Connection) -> None:
        try:
            if await connection.refresh():
                self._find(connection.offers)
        except Lost as lost:
            self._standing.note(f"has other tools now and does not say which, so those from before stay: {lost}")

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        try:
            return await self._asked(tool, arguments)
        except ToolFailed:
            if self._keeping and self._connection and not self._connection.is_open:
                await asyncio.wait({self._keeping}, timeout=_LEAVING)  # so that people are told why
            raise
        finally:
            self.tell_news()

    async def _asked(self, tool: str, arguments: dict[str, Any]) -> str:
        """What the server says; it is asked a second time only if it has not heard the first."""
        for _ in range(2):
            connection = await self._reached()
            if connection is None:
                break
            try:
                return await self._answer(connection, tool, arguments)
            except Unsent:
                continue
        raise ToolFailed(f"The MCP server {self.name} is gone, and nothing was done; go on without it.")

    async def _answer(self, connection: Connection, tool: str, arguments: dict[str, Any]) -> str:
        try:
            async with asyncio.timeout(self._calling):
                return await connection.call(tool, arguments)
        except TimeoutError:
            raise ToolFailed(
                f"The MCP server {self.name} did not answer within {self._calling:g} seconds; what it did is unknown."
            ) from None
        finally:
            if connection.is_open:
                self._tries.proved()


def _now() -> float:
    return asyncio.get_running_loop().time()
