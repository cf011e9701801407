"""An adapter of Telegram at work beside a ledger, in the world of a test."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bot_api.client import World
from telegram_counterpart import adapter_of
from waiting import DEADLINE

from segue.core.attachments import Attachment
from segue.core.sources import SessionSource
from segue.platforms.telegram.platform import TelegramPlatform
from segue.ports.platform import Post
from segue.storage.attachments import AttachmentFolder
from segue.testing.ledger import Ledger

ALICE = 4711
GROUP = -1_000_000_000_123


class Bench:
    """What a test needs: the world, the ledger, and adapters one after another."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.ledger = Ledger()
        self.folder = folder

    def adapter(self, **own: Any) -> TelegramPlatform:
        return adapter_of(self.world, self.folder, **own)

    @asynccontextmanager
    async def connected(self, **own: Any) -> AsyncGenerator[TelegramPlatform]:
        """One life of an adapter; what it raises, it raises here."""
        adapter = self.adapter(**own)
        self.ledger.is_connected = False
        task = asyncio.create_task(adapter.run(self.ledger))
        try:
            await self.until(lambda: self.ledger.is_connected or task.done())
            if task.done():
                task.result()
            yield adapter
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def heard(self, *texts: str) -> None:
        """Exactly these have been accepted, in this order."""
        await self.until(lambda: len(self.ledger.texts) >= len(texts))
        assert self.ledger.texts == list(texts)

    async def until(self, holds: Callable[[], bool]) -> None:
        await self.world.until(holds)

    async def kept(self, name: str, kind: str, content: bytes) -> Attachment:
        async def pieces() -> AsyncGenerator[bytes]:
            yield content

        return await AttachmentFolder(self.folder / "attachments").keep(pieces(), name, kind)

    def offsets(self) -> list[int | None]:
        return [call.params.get("offset") for call in self.world.calls("getUpdates")]


def route(chat: int = ALICE, **more: Any) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=str(chat), **more)


def post(text: str, where: SessionSource | None = None, **more: Any) -> Post:
    return Post(where or route(), text, "key", **more)


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(4 * DEADLINE):
            await work

    asyncio.run(bounded())
