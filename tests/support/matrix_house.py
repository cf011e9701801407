"""Our side of Matrix in tests: an account on a homeserver, and adapters that come and go on the same folder."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import hasty_keys  # noqa: F401 - for what it does
from synapse_server import User
from waiting import DEADLINE, until

from segue.core.routes import Route
from segue.core.sources import SessionSource
from segue.platforms.matrix.platform import MatrixPlatform
from segue.platforms.matrix.settings import MatrixSettings
from segue.ports.platform import Equipment, Post
from segue.storage.attachments import AttachmentFolder
from segue.testing.ledger import Ledger


async def nowhere(_route: Route) -> SessionSource | None:
    return None


class MatrixHouse:
    """What a home has of Matrix."""

    def __init__(self, folder: Path, url: str, user: User) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.user = user
        self.url = url
        self.files = AttachmentFolder(folder / "attachments")
        self.settings = MatrixSettings(url, user.user_id, user.password)

    @property
    def keys(self) -> Path:
        return self.folder / "platforms" / "matrix"

    def adapter(self, settings: MatrixSettings | None = None) -> MatrixPlatform:
        """As after a restart."""
        return MatrixPlatform(settings or self.settings, Equipment(nowhere, self.files, self.keys))

    @asynccontextmanager
    async def at_work(self, ledger: Ledger, settings: MatrixSettings | None = None) -> AsyncIterator[MatrixPlatform]:
        """An adapter that is connected; what it raises is raised here."""
        adapter = self.adapter(settings)
        ledger.is_connected = False
        task = asyncio.create_task(adapter.run(ledger))
        try:
            await until(lambda: ledger.is_connected or task.done())
            if task.done():
                task.result()
            yield adapter
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def post(room: str, text: str, key: str = "k", *, thread: str | None = None, reply_to: str | None = None) -> Post:
    return Post(SessionSource(platform="matrix", chat_id=room, thread_id=thread), text, key, reply_to)


def run(work: Awaitable[None]) -> None:
    """A test, which ends here before it is cut off from outside."""

    async def bounded() -> None:
        async with asyncio.timeout(4 * DEADLINE):
            await work

    asyncio.run(bounded())
