"""A turn that nobody sees: the agent writes down what it wants to remember, before it is told of it no more."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from segue.core.compaction import Need, beginning
from segue.core.errors import ModelError
from segue.core.events import Failed, Reply
from segue.core.messages import Said, draft, said
from segue.core.sizes import tokens_in
from segue.ports.agent import Agent, Task

LONGEST_SECONDS = 120.0
_SHARE_OF_WINDOW = 0.95


class Remembered(NamedTuple):
    """What an agent answered, and what went wrong."""

    replies: list[Reply]
    trouble: str | None = None


def readable(view: Sequence[Said], need: Need, request: str) -> list[Said]:
    """What a model can read of a conversation together with one more question, and some room to act upon it."""
    return beginning(view, int(need.window * _SHARE_OF_WINDOW) - need.rest - tokens_in(request))


async def remember(agent: Agent, task: Task, request: str) -> Remembered:
    """Ask the agent, silently, to save what should outlast a conversation. Nothing of it becomes a message."""
    ask = said(draft("user", request, time.time()), task.view[-1].seq + 1)
    silent = Task(task.session_id, task.system, [*task.view, ask], model=task.model, effort=task.effort)
    replies: list[Reply] = []
    trouble: str | None = None
    try:
        async with asyncio.timeout(LONGEST_SECONDS), aclosing(agent.run(silent)) as events:
            async for event in events:
                match event:
                    case Reply():
                        replies.append(event)
                    case Failed(sentence):
                        trouble = sentence
    except TimeoutError:
        trouble = "it took too long."
    except ModelError as error:
        trouble = str(error)
    return Remembered(replies, trouble)
