"""A server that ends when it is told to by us."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Collection, Iterator

import uvicorn
from starlette.types import ASGIApp

from segue.core.errors import SegueError
from segue.listening.connections import HttpServerConnection, ServerConfig, WebSocketServerConnection
from segue.listening.room import Limits, Room, files_allowed

LEAVING_SECONDS = 2
BACKLOG = 512
_ROUNDS_TO_ACCEPT = 5
"""Of the loop, which a connection takes from the socket that listens to the server, and to its end."""
HOOK_LIMITS = Limits(unproven=128, proven=128)
"""Of doors at which one kind of program calls."""
MAX_MESSAGE = 1_048_576


def _is_news(record: logging.LogRecord) -> bool:
    """A WebSocket that was refused with an answer is no trouble, whatever the server calls it."""
    return "without completing handshake" not in str(record.msg)


logging.getLogger("uvicorn.error").addFilter(_is_news)


class CannotListen(SegueError):
    """Nobody can call."""


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
    limits: Limits = HOOK_LIMITS,
    proxies: Collection[str] = (),
    takes_websockets: bool = False,
) -> None:
    """Answer calls until cancelled; those that are being answered may end first.

    The address of a caller is that which a proxy tells only if the proxy is one of `proxies`.
    """
    config = ServerConfig(
        app,
        lifespan="off",
        http=HttpServerConnection,
        ws=WebSocketServerConnection if takes_websockets else "none",
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
    config.room = Room(limits.within(files_allowed()), proxies)
    server = _Server(config)
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
