"""How much a server of models may send: in one event, in one answer, and in a second.

A server that sends more than that is cut off, or read from more slowly, so that no answer can take the memory or the
time of everybody else.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2

from segue.core.errors import StreamBroken
from segue.core.text import size

MAX_EVENT_BYTES = 4_000_000
"""Of one event, which is what stands between two ends of a line."""
MAX_STREAM_BYTES = 64_000_000
"""Of all events of an answer; each small piece of text takes a few hundred bytes."""
BYTES_PER_SECOND = 2_000_000
"""Read at most; no model writes that fast."""
_BURST = 500_000


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer, within these bounds."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = in_event = 0
        credit, at = float(_BURST), time.monotonic()
        async for piece in self._stream:
            total += len(piece)
            last = piece.rfind(b"\n")
            in_event = in_event + len(piece) if last < 0 else len(piece) - last - 1
            if in_event > MAX_EVENT_BYTES:
                raise StreamBroken(
                    f"The server of the model sent more than {size(MAX_EVENT_BYTES)} without a line end."
                )
            if total > MAX_STREAM_BYTES:
                raise StreamBroken(f"The server of the model sent more than {size(MAX_STREAM_BYTES)} for one answer.")
            now = time.monotonic()
            credit = min(credit + (now - at) * BYTES_PER_SECOND, _BURST) - len(piece)
            at = now
            if credit < 0:
                await asyncio.sleep(-credit / BYTES_PER_SECOND)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """Let no more be read of a response than may be; meant to be called for each."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        await response.aclose()
        raise StreamBroken("The server of the model packed its answer, which it was asked not to do.")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = BoundedStream(response.stream)
