"""A bot of python-telegram-bot in the world of a test."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager

import pytest
from bot_api.client import World
from telegram import Bot
from telegram.error import BadRequest
from telegram.request import HTTPXRequest
from waiting import DEADLINE


@asynccontextmanager
async def bot_of(world: World, seconds: float = DEADLINE) -> AsyncGenerator[Bot]:
    """The bot, which waits so long for an answer."""
    calls, polls = HTTPXRequest(8, read_timeout=seconds), HTTPXRequest(1, read_timeout=seconds)
    async with Bot(world.token, world.base_url, world.base_file_url, calls, polls) as bot:
        yield bot


async def refused(call: Awaitable[object], words: str) -> None:
    with pytest.raises(BadRequest, match=f"(?i){words}"):
        await call


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(4 * DEADLINE):
            await work

    asyncio.run(bounded())
