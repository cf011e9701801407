"""An agent that is made ready once its turn has begun: what was said is kept by then, and the wait can be stopped."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from segue.core.events import Event
from segue.ports.agent import Agent, Task


class Late:
    """Stands in for an agent that takes its time to be there."""

    def __init__(self, made: Callable[[], Awaitable[Agent]]) -> None:
        self._made = made

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        agent = await self._made()
        async with aclosing(agent.run(task)) as events:
            async for event in events:
                yield event
