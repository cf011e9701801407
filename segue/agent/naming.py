"""Titles by themselves: asked for once, beside whatever else goes on, and never over one that somebody chose."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from segue.agent.door import Door
from segue.agent.summarising import answer_of
from segue.core.errors import ModelError, SegueError
from segue.core.events import Reply
from segue.core.naming import TITLE_INSTRUCTIONS, chosen_title, title_request
from segue.ports.model import Model, Request
from segue.sessions.titling import FirstExchange, find_unnamed, name_by_itself

SECONDS = 30.0
LAST_SECONDS = 0.2
"""For a title that is on its way when the person leaves; then its first words name the conversation."""


class Namer:
    """Names conversations in the background, each of them once."""

    def __init__(self, door: Door, model: Callable[[], Awaitable[Model | None]], seconds: float = SECONDS) -> None:
        self._door = door
        self._model = model
        self._seconds = seconds
        self._naming: dict[str, tuple[FirstExchange, asyncio.Task[None]]] = {}

    async def consider(self, session_id: str) -> None:
        """Begin to find a title for a session whose first exchange is over and that has none."""
        first = await self._door.read(find_unnamed, session_id)
        if first is not None and first.session_id not in self._naming:
            naming = asyncio.create_task(self._name(first))
            self._naming[first.session_id] = (first, naming)
            naming.add_done_callback(lambda _: self._naming.pop(first.session_id))

    async def settled(self, seconds: float | None = None) -> None:
        """Wait, at most so long, until every title that is on its way is there."""
        if under_way := [naming for _, naming in self._naming.values()]:
            await asyncio.wait(under_way, timeout=seconds)

    async def close(self) -> None:
        """Wait a moment for what is on its way."""
        await self.settled(LAST_SECONDS)
        left = list(self._naming.values())
        for _, naming in left:
            naming.cancel()
        await self.settled()
        for first, _ in left:
            await self._keep(first, "", None)

    async def _name(self, first: FirstExchange) -> None:
        answer = None
        with suppress(ModelError, SegueError, TimeoutError):  # then its first words are its title
            async with asyncio.timeout(self._seconds):
                if model := await self._model():
                    said = {"role": "user", "content": title_request(first.asked, first.answered)}
                    answer = await answer_of(model, Request(TITLE_INSTRUCTIONS, [said]))
        await self._keep(first, answer.text if answer else "", answer)

    async def _keep(self, first: FirstExchange, text: str, answer: Reply | None) -> None:
        chosen = chosen_title(text, first.asked)
        with suppress(SegueError):  # the conversation does without
            await self._door.write(name_by_itself, first.session_id, chosen, answer, time.time())
