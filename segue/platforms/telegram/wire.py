"""The line to the Bot API: calls whose answers come as they are, files in pieces, and nothing of it in a log.

Whatever is asked for stands in a URL that holds the token, so whoever logs URLs is silent here.
"""

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from telegram import Bot
from telegram.error import NetworkError
from telegram.request import HTTPXRequest

from segue.platforms.telegram.settings import TelegramSettings

ANSWER_SECONDS = 30.0
CONNECT_SECONDS = 10.0
UPLOAD_SECONDS = 50.0
MOST_CONNECTIONS = 64
MOST_UPDATES = 100

for _name in ("telegram", "httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # what fails is raised, and told once
os.environ.setdefault("PTB_TIMEDELTA", "true")  # or the library warns whenever Telegram asks us to wait


class Wire(HTTPXRequest):
    """Connections, opened when they are needed."""

    def __init__(self) -> None:
        super().__init__(
            connection_pool_size=MOST_CONNECTIONS,
            read_timeout=ANSWER_SECONDS,
            write_timeout=ANSWER_SECONDS,
            connect_timeout=CONNECT_SECONDS,
            pool_timeout=CONNECT_SECONDS,
            media_write_timeout=UPLOAD_SECONDS,
        )

    async def pieces(self, url: str) -> AsyncGenerator[bytes]:
        """A file, as it comes."""
        async with self._client.stream("GET", url) as answer:
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                yield piece


class Line(Bot):
    """A bot, and the connections that it is reached by."""

    def __init__(self, settings: TelegramSettings) -> None:
        wire = Wire()
        base = settings.api_url
        super().__init__(settings.token, f"{base}/bot", f"{base}/file/bot", wire, wire)
        self._wire = wire
        self._users = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Line"]:
        """For as long as somebody needs the line; whoever leaves it last closes it."""
        await self._wire.initialize()
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                await self._wire.shutdown()

    async def updates(self, offset: int | None, seconds: int, kinds: Sequence[str]) -> list[Any]:
        """What came behind an offset, as Telegram tells it: a kind that nobody knows yet is no trouble."""
        asked = {"offset": offset, "timeout": seconds, "limit": MOST_UPDATES, "allowed_updates": list(kinds)}
        found = await self._post("getUpdates", asked, read_timeout=seconds + ANSWER_SECONDS)
        if not isinstance(found, list):
            raise NetworkError("What it says are no updates")
        return found

    async def file(self, file_id: str) -> AsyncGenerator[bytes]:
        """A file that somebody sent, in pieces."""
        found = await self.get_file(file_id)
        if not (found.file_path or "").startswith("http"):
            raise NetworkError("The file lies on a disk of the Bot API server")
        async with aclosing(self._wire.pieces(found.file_path or "")) as pieces:
            async for piece in pieces:
                yield piece
