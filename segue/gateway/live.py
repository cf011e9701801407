"""Live agents: each conversation's is made once and kept for its next turn, with what it has learned about its model.

Only the event loop touches them, so nothing needs a lock. An agent that goes closes what it has open: at once, or after
the turn that it is in.
"""

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from segue.core.events import Event
from segue.ports.agent import Agent, Task

MOST_LIVE = 128
IDLE_SECONDS = 3600.0


class Live:
    """An agent that is kept, and whether it is at work."""

    def __init__(self, agent: Agent, terms: object, clock: Callable[[], float]) -> None:
        self.terms = terms
        self.last_at = clock()
        self._agent = agent
        self._clock = clock
        self._turns = 0
        self._is_going = False

    @property
    def is_at_work(self) -> bool:
        return self._turns > 0

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        self._turns += 1
        try:
            async with aclosing(self._agent.run(task)) as events:
                async for event in events:
                    yield event
        finally:
            self._turns -= 1
            self.last_at = self._clock()
            if self._is_going and not self.is_at_work:
                await _close(self._agent)

    async def go(self) -> None:
        self._is_going = True
        if not self.is_at_work:
            await _close(self._agent)


class LiveAgents:
    """At most so many; who was needed longest ago goes first."""

    def __init__(self, most: int = MOST_LIVE, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._live: OrderedDict[str, Live] = OrderedDict()
        """By session, who was needed longest ago first."""

    def __len__(self) -> int:
        return len(self._live)

    @property
    def sessions(self) -> list[str]:
        return list(self._live)

    async def agent_for(self, session_id: str, terms: object, make: Callable[[], Awaitable[Agent]]) -> Agent:
        """The agent of a conversation: the one that is there, or a new one when it was made on other terms."""
        found = self._live.get(session_id)
        if found is None or found.terms != terms:
            made = Live(await make(), terms, self._clock)
            await self.let_go(session_id)
            found = self._live[session_id] = made
        self._live.move_to_end(session_id)
        while len(self._live) > self._most:
            await self.let_go(next(iter(self._live)))
        return found

    async def let_go(self, session_id: str) -> None:
        if agent := self._live.pop(session_id, None):
            await agent.go()

    async def let_go_idle(self) -> None:
        """Those that nobody has needed for an hour."""
        before = self._clock() - IDLE_SECONDS
        for session_id, agent in list(self._live.items()):
            if agent.last_at < before and not agent.is_at_work:
                await self.let_go(session_id)

    async def close(self) -> None:
        for session_id in self.sessions:
            await self.let_go(session_id)


async def _close(agent: Agent) -> None:
    """An agent of somebody else may have nothing to close."""
    close: Callable[[], Awaitable[None]] | None = getattr(agent, "aclose", None)
    if close is not None:
        await close()
