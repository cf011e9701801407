"""HTTP/1.1 messages as they pass by: where one ends, and the bytes as they came."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple


class Head(NamedTuple):
    """The first lines of a message, untouched."""

    raw: bytes
    first: str
    fields: dict[str, str]

    @property
    def is_chunked(self) -> bool:
        return "chunked" in self.fields.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        found = self.fields.get("content-length")
        return None if found is None else int(found)

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.first.split()[1])

    @property
    def ends_with_the_connection(self) -> bool:
        """Whether nothing else tells where the answer ends."""
        return self.length is None and not self.is_chunked and self.status not in (204, 304)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """None when the other side has ended."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    named = (line.partition(":") for line in lines)
    return Head(raw, first, {name.strip().lower(): value.strip() for name, _, value in named})


async def read_request_body(reader: asyncio.StreamReader, head: Head) -> bytes:
    """All of it, in the framing that it came in."""
    if head.is_chunked:
        return b"".join([piece async for piece in _chunks(reader)])
    return await reader.readexactly(head.length or 0)


async def answer_body(reader: asyncio.StreamReader, head: Head, method: str) -> AsyncIterator[bytes]:
    """Piece by piece as it comes, in the framing that it came in."""
    if method == "HEAD" or head.status in (101, 204, 304):
        return
    if head.is_chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    left = head.length
    while left is None or left > 0:
        piece = await reader.read(65536 if left is None else min(left, 65536))
        if not piece:
            return
        left = None if left is None else left - len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            break
        yield line + await reader.readexactly(size + 2)
    while line != b"\r\n":  # what may follow the last chunk
        yield line
        line = await reader.readuntil(b"\r\n")
    yield line
