"""What stands between a client and a server on this machine: it passes everything on, until it is told to make trouble.

It runs in a thread of its own, so that tests of every kind can use it.
"""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from held_port import HeldPort
from http_messages import Head, answer_body, read_head, read_request_body
from waiting import DEADLINE

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIMIT = 2**20


class Dropped(Exception):
    """This connection is to end without another word."""


class Request(NamedTuple):
    head: Head
    body: bytes

    @property
    def line(self) -> str:
        """Method and path, which is what patterns are looked for in."""
        return self.head.first.rpartition(" ")[0]

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]


class Asked(NamedTuple):
    """A request, and what became of it."""

    line: str
    body: bytes
    status: int | None
    """None when the client was left without an answer."""


Treatment = Callable[["Troublesome", Request, Streams], Awaitable[int | None]]


class Trouble:
    """What happens to requests whose line matches; for ever, or so many times."""

    def __init__(self, pattern: str, treat: Treatment, times: int | None) -> None:
        self.met = 0
        """How many requests have met with it."""
        self._pattern = re.compile(pattern)
        self._treat = treat
        self._times = times

    def takes(self, line: str) -> bool:
        return (self._times is None or self.met < self._times) and self._pattern.search(line) is not None

    async def treat(self, proxy: "Troublesome", request: Request, client: Streams) -> int | None:
        self.met += 1
        return await self._treat(proxy, request, client)


class Troublesome:
    """Listens at its `url` from the beginning; patterns are searched in lines like `GET /path?query`."""

    def __init__(self, server: str) -> None:
        place = urlsplit(server)
        self._server = (place.hostname or "127.0.0.1", place.port or 80)
        self.begun: list[str] = []
        """The lines of the requests that have come; in `asked` they are when they are over."""
        self.asked: list[Asked] = []
        self._port = HeldPort()
        self._troubles: list[Trouble] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listener: asyncio.Server | None = None
        self.come_up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port.number}"

    def answer(
        self, pattern: str, status: int, body: dict[str, Any] | str = "", *, times: int | None = None
    ) -> Trouble:
        """Answer in place of the server, which hears nothing of it: with JSON, or with a page as of a tired proxy."""

        async def treat(_proxy: Troublesome, _request: Request, client: Streams) -> int:
            client[1].write(_written(status, body))
            await client[1].drain()
            return status

        return self._add(Trouble(pattern, treat, times))

    def limit(self, pattern: str, retry_after_ms: int, *, times: int | None = None) -> Trouble:
        """Too many requests, as a Matrix server says it."""
        body = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": retry_after_ms}
        return self.answer(pattern, 429, body, times=times)

    def hang(self, pattern: str, seconds: float, *, times: int | None = None) -> Trouble:
        """Say nothing for so long, then drop the connection; the server hears nothing of it."""

        async def treat(_proxy: Troublesome, _request: Request, _client: Streams) -> None:
            await asyncio.sleep(seconds)
            raise Dropped

        return self._add(Trouble(pattern, treat, times))

    def lose_answers(self, pattern: str, *, times: int | None = None) -> Trouble:
        """Pass the request on, wait for the whole answer, and drop the connection in place of it.

        Some clients ask again by themselves, once, when a connection that they had used before ends so.
        """

        async def treat(proxy: Troublesome, request: Request, _client: Streams) -> None:
            await proxy._pass_on(request, None)
            raise Dropped

        return self._add(Trouble(pattern, treat, times))

    def delay(self, pattern: str, seconds: float, *, times: int | None = None) -> Trouble:
        """Pass the request on after so long."""

        async def treat(proxy: Troublesome, request: Request, client: Streams) -> int | None:
            await asyncio.sleep(seconds)
            return await proxy._pass_on(request, client)

        return self._add(Trouble(pattern, treat, times))

    def calm(self) -> None:
        """No more trouble, but for requests that are in it already."""
        self._troubles = []

    def go_down(self) -> None:
        """Nobody listens, and every connection ends."""
        self._run(self._close())

    def come_up(self) -> None:
        """On the same port as before."""
        self._run(self._open())

    def close(self) -> None:
        self.go_down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()
        self._port.close()

    def _add(self, trouble: Trouble) -> Trouble:
        self._troubles = [*self._troubles, trouble]
        return trouble

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE)

    async def _open(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._attend, "127.0.0.1", self._port.number, limit=LIMIT)

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (head := await read_head(reader)) is not None:
                await self._treat(Request(head, await read_request_body(reader, head)), (reader, writer))
        except (Dropped, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _treat(self, request: Request, client: Streams) -> None:
        status: int | None = None
        self.begun.append(request.line)
        try:
            trouble = next((one for one in self._troubles if one.takes(request.line)), None)
            status = await (trouble.treat(self, request, client) if trouble else self._pass_on(request, client))
        finally:
            self.asked.append(Asked(request.line, request.body, status))

    async def _pass_on(self, request: Request, client: Streams | None) -> int:
        """To the server, and its answer to the client if there is one to have it."""
        reader, writer = await asyncio.open_connection(*self._server, limit=LIMIT)
        try:
            writer.write(request.head.raw + request.body)
            head = await read_head(reader)
            if head is None:
                raise Dropped
            if client:
                client[1].write(head.raw)
            if client and head.status == HTTPStatus.SWITCHING_PROTOCOLS:
                await _join((reader, writer), client)
            async for piece in answer_body(reader, head, request.method):
                if client:
                    client[1].write(piece)
                    await client[1].drain()
            if client and head.ends_with_the_connection:
                client[1].close()
            return head.status
        finally:
            writer.close()


def _written(status: int, body: dict[str, Any] | str) -> bytes:
    said = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = "text/html" if isinstance(body, str) else "application/json"
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    return f"{first}\r\nContent-Type: {kind}\r\nContent-Length: {len(said)}\r\n\r\n".encode() + said


async def _join(one: Streams, other: Streams) -> None:
    """Whatever either says, the other hears, until one of them ends."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()

    ways = [asyncio.create_task(carry(one[0], other[1])), asyncio.create_task(carry(other[0], one[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
