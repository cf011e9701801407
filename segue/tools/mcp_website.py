"""A server that is asked over HTTP, as a transport of the SDK. An answer that has no end is not waited for."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from segue.tools.mcp_places import Website

LONGEST_ANSWER = 16 * 1024 * 1024
_SESSION = "mcp-session-id"
_STREAMING = 300.0  # seconds in which a server may say nothing


class Sending:
    """How far a call has come on its way."""

    def __init__(self) -> None:
        self.is_sent = False
        """Whether the server may have heard of it."""
        self.is_refused = False
        """Whether the server said that it does not know who asks, and so has done nothing."""

    async def follow(self, event: str, _: object) -> None:
        """Told by the HTTP client at each step."""
        self.is_sent = self.is_sent or event.endswith("send_request_headers.started")


_SENDING: ContextVar[Sending | None] = ContextVar("_SENDING", default=None)
"""The call for which a request is made. The SDK makes requests in tasks of its own, with the context of the call."""


class Visit:
    """What is known of a server while it is asked."""

    def __init__(self) -> None:
        self.fault = ""
        """Why the last question was not answered, in a sentence."""

    @contextmanager
    def sending(self) -> Iterator[Sending]:
        """Follow the requests of one call."""
        sending = Sending()
        token = _SENDING.set(sending)
        try:
            yield sending
        finally:
            _SENDING.reset(token)

    @asynccontextmanager
    async def begun(self, at: Website, seconds: float) -> AsyncGenerator[tuple[Any, Any]]:
        """What the server says and what it is told."""
        async with (
            httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity"} | dict(at.headers),
                timeout=httpx2.Timeout(seconds, read=_STREAMING),
                event_hooks={"request": [self._follow], "response": [self._look]},
            ) as http,
            streamable_http_client(at.url, http_client=http, max_sse_event_size=LONGEST_ANSWER) as streams,
        ):
            yield streams

    async def _follow(self, request: httpx2.Request) -> None:
        if sending := _SENDING.get():
            request.extensions["trace"] = sending.follow

    async def _look(self, response: httpx2.Response) -> None:
        """Note what is wrong with an answer, and bound what is read of it."""
        if "content-encoding" in response.headers:
            raise httpx2.DecodingError("it packs its answers, though it was asked not to.", request=response.request)
        if response.request.method == "POST":  # others it may refuse
            self.fault = _refusal(response.status_code)
            sending = _SENDING.get()
            if sending and response.status_code == HTTPStatus.NOT_FOUND and _SESSION in response.request.headers:
                sending.is_refused = True
        if "text/event-stream" not in response.headers.get("content-type", ""):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, response.request)


class _Bounded(httpx2.AsyncByteStream):
    """A stream of bytes that fails when it is too long."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for data in self._stream:
            length += len(data)
            if length > LONGEST_ANSWER:
                raise httpx2.ReadError(f"it said more than {LONGEST_ANSWER:,} bytes at once.", request=self._request)
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


def _refusal(status: int) -> str:
    if status < HTTPStatus.BAD_REQUEST:
        return ""
    hint = "; look at its headers in the settings" if status in (401, 403) else ""
    return f"it answered with the status {status}{hint}."
