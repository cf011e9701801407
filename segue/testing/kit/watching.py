"""An adapter at work, and what comes of it."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from segue.core.errors import SegueError
from segue.ports.platform import Platform, Post
from segue.testing.kit.counterpart import Counterpart
from segue.testing.ledger import Ledger

GLANCE = 0.02


@asynccontextmanager
async def at_work(platform: Platform, ledger: Ledger) -> AsyncIterator[None]:
    """Connected, and connected again whenever it fails, as a gateway does it; gone without a warning at the end."""
    task = asyncio.create_task(_again_and_again(platform, ledger))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def connected(platform: Platform, ledger: Ledger, seconds: float) -> None:
    await until(lambda: ledger.is_connected, seconds, f"{platform.name} never said that it is connected")


async def until(is_so: Callable[[], bool | Awaitable[bool]], seconds: float, otherwise: str) -> None:
    """Wait for something; raises with a sentence when it does not come."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        found = is_so()
        if (await found) if inspect.isawaitable(found) else found:
            return
        assert loop.time() < end, f"{otherwise}, within {seconds:g} seconds."
        await asyncio.sleep(GLANCE)


async def heard(ledger: Ledger, texts: list[str], counterpart: Counterpart) -> None:
    """Wait until all of these have been passed on."""

    def all_there() -> bool:
        return set(texts) <= set(ledger.texts)

    missing = f"of {len(texts)} messages some were never passed on"
    await until(all_there, counterpart.longest_wait, missing)


def post(counterpart: Counterpart, text: str, key: str = "kit:reply:0") -> Post:
    return Post(counterpart.route(), text, key)


async def _again_and_again(platform: Platform, ledger: Ledger) -> None:
    while True:
        with suppress(SegueError, OSError):  # a gateway tries again, and so is it here, only sooner
            await platform.run(ledger)
        await asyncio.sleep(10 * GLANCE)
