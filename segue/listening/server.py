"""A server that ends when it is told to by us."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Literal

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from segue.core.errors import SegueError

LEAVING_SECONDS = 2
MOST_CALLS = 64
BACKLOG = 128
_ROUNDS_TO_ACCEPT = 5
"""Of the loop, which a connection takes from the socket that listens to the server, and to its end."""
ASKING_SECONDS = 10.0
"""For which a connection may be there and say nothing."""


def _is_news(record: logging.LogRecord) -> bool:
    """A WebSocket that was refused with an answer is no trouble, whatever the server calls it."""
    return "without completing handshake" not in str(record.msg)


logging.getLogger("uvicorn.error").addFilter(_is_news)


class CannotListen(SegueError):
    """Nobody can call."""


class _Impatient(H11Protocol):
    """Leaves whoever connects and asks for nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(ASKING_SECONDS, self._look)

    def _look(self) -> None:
        asked = getattr(self, "cycle", None) is not None or self.transport.get_protocol() is not self
        if not asked and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """Signals are the gateway's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bound(host: str, port: int, what: str, setting: str) -> socket.socket:
    """A socket that listens; `what` listens there, because a setting says so."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # said in full, or answers wait for 40 ms
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(BACKLOG)
    except OSError as error:
        door.close()
        raise CannotListen(
            f"Nothing can listen for {what} at {host} port {port}: {error.strerror or error}; choose another {setting}."
        ) from None
    return door


async def serve(
    app: ASGIApp,
    door: socket.socket,
    *,
    most_calls: int = MOST_CALLS,
    websockets: Literal["none", "websockets-sansio"] = "none",
    longest_message: int = 1_048_576,
) -> None:
    """Answer calls until cancelled; those that are being answered may end first."""
    server = _Server(
        uvicorn.Config(
            app,
            lifespan="off",
            http=_Impatient,
            ws=websockets,
            ws_max_size=longest_message,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=most_calls,
            timeout_graceful_shutdown=LEAVING_SECONDS,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[door]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.wait({serving})
        await _close_what_is_left(server)
        raise


async def _close_what_is_left(server: uvicorn.Server) -> None:
    """Close connections that were accepted while the server ended, or whose answers took too long."""
    for _ in range(_ROUNDS_TO_ACCEPT):
        await asyncio.sleep(0)
        for connection in list(server.server_state.connections):
            connection.transport.abort()
