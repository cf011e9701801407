"""What is said to a homeserver is for that one alone."""

import asyncio
from pathlib import Path

import pytest
from matrix_house import run

from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.events import Media
from segue.platforms.matrix.failing import Refused
from segue.platforms.matrix.media import fetched
from segue.storage.attachments import AttachmentFolder


def test_nobody_is_followed_to_another_server(tmp_path: Path) -> None:
    met: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def work() -> None:
        other = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}/inside"

        async def misleading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            writer.close()

        first = await asyncio.start_server(misleading, "127.0.0.1", 0)
        line = Line(f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}", "secret")
        async with other, first:
            with pytest.raises(Refused, match="302"):
                await line.ask("GET", "v3", "account", "whoami")
            media = Media("mxc://a/b", "f", None, None)
            file = await fetched(line, AttachmentFolder(tmp_path / "attachments"), media)
            await line.close()
        assert file.sha256 is None
        assert met == []

    run(work())
