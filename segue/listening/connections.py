"""One connection of a server: how long it may wait, how slowly it may read, and how much of it is kept in memory."""

import asyncio
import logging
from typing import Any, cast

import h11
import uvicorn
from starlette.requests import HTTPConnection
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from segue.listening.room import Room

REQUEST_TIMEOUT = 10.0
"""Seconds within which a request has to be there up to the end of its headers, on a new connection or after another."""
DRAIN_TIMEOUT = 20.0
"""Seconds within which a client reads some of what was sent to it, and all that is left when a connection closes."""
MIN_DRAINED = 16 * 1024
"""Bytes that a client has to read in that time."""
MAX_FRAGMENTS = 1024
"""Of one WebSocket message."""
_STATE = "connection"

_log = logging.getLogger(__name__)


class ServerConfig(uvicorn.Config):
    """The configuration of a server, with the room for its connections."""

    room: Room


class HttpServerConnection(H11Protocol):
    """A connection that is closed when a request takes too long to arrive, or an answer too long to be read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._request_deadline: asyncio.TimerHandle | None = None
        self._drain_deadline: asyncio.TimerHandle | None = None
        self.app_state = {**self.app_state, _STATE: self}  # so that each request has it in its scope
        self.room = cast(ServerConfig, self.config).room
        self.room.enter(self, self.client[0] if self.client else "")
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget()
        super().connection_lost(exc)

    def forget(self) -> None:
        """Give up the place in the room; also called when a WebSocket that began here is closed."""
        self.room.leave(self)
        self._forget_request()
        self._forget_drain()

    def evict(self) -> None:
        _log.debug("Closed a connection from %s to make room for others.", self.client)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering() or self.transport.get_protocol() is not self:
            self._forget_request()
        elif self._request_deadline is None:  # a part of the next request, or of a body that is not read any more
            self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_if_not_drained()
        elif not self._is_answering() and self.conn.their_state is not h11.IDLE:
            self._expect_request()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_if_not_drained()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_drain()

    def resume_writing(self) -> None:
        self._forget_drain()
        super().resume_writing()

    def _is_answering(self) -> bool:
        cycle = cast(Any, self.cycle)
        return cycle is not None and not cycle.response_complete

    def _expect_request(self) -> None:
        self._request_deadline = self.loop.call_later(REQUEST_TIMEOUT, self._give_up)

    def _forget_request(self) -> None:
        if self._request_deadline is not None:
            self._request_deadline.cancel()
            self._request_deadline = None

    def _give_up(self) -> None:
        self._request_deadline = None
        if self.transport.get_protocol() is self and not self._is_answering():
            self.transport.abort()

    def _watch_drain(self) -> None:
        self._forget_drain()
        before = self.transport.get_write_buffer_size()
        self._drain_deadline = self.loop.call_later(DRAIN_TIMEOUT, self._check_drain, before)

    def _check_drain(self, before: int) -> None:
        self._drain_deadline = None
        if before - self.transport.get_write_buffer_size() < MIN_DRAINED:
            _log.debug("Closed a connection to %s, which does not read its answer.", self.client)
            self.transport.abort()
        else:
            self._watch_drain()

    def _forget_drain(self) -> None:
        if self._drain_deadline is not None:
            self._drain_deadline.cancel()
            self._drain_deadline = None

    def _abort_if_not_drained(self) -> None:
        """A transport that is closed sends first what is left to send, for ever if nobody reads it."""
        self.loop.call_later(DRAIN_TIMEOUT, self.transport.abort)


class WebSocketServerConnection(WebSocketsSansIOProtocol):
    """A WebSocket that is not read from while its client does not read."""

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set():
            self.transport.pause_reading()  # what was received made it go on
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        connection_in(self.app_state).forget()
        super().connection_lost(exc)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"more than {MAX_FRAGMENTS} fragments")
            self.handle_parser_exception()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_if_not_drained()

    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        super().on_task_complete(task)
        self._abort_if_not_drained()

    def _abort_if_not_drained(self) -> None:
        self.loop.call_later(DRAIN_TIMEOUT, self.transport.abort)


def connection_in(state: dict[str, Any]) -> HttpServerConnection:
    found = state[_STATE]
    assert isinstance(found, HttpServerConnection)
    return found


def prove(call: HTTPConnection, holder: str) -> bool:
    """Note that a request has shown a good token of somebody. False if they have too many connections already."""
    connection = call.scope.get("state", {}).get(_STATE)
    return connection is None or connection.room.prove(connection, holder)


def doubt(call: HTTPConnection) -> None:
    """Note that a request has shown no good token."""
    connection = call.scope.get("state", {}).get(_STATE)
    if connection is not None:
        connection.room.doubt(connection)
