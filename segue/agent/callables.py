"""Any Python function, or any other agent, in the place of ours.

It is given the conversation in the format of OpenAI, and as a second argument, if it has one, the whole task. It may be
plain or asynchronous; it returns its answer, or yields pieces of it, or yields events.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from segue.core.events import Event, Failed, Text
from segue.ports.agent import Task

_EVENTS = Event.__args__
_END = object()


class CallableAgent:
    """Wraps a function so that what it answers is stored and shown like any other answer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_task = _takes_two(function)

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        conversation = task.conversation
        if conversation and conversation[-1]["role"] == "assistant":
            return  # cut off after the last word
        arguments = (conversation, task) if self._takes_task else (conversation,)
        try:
            async with aclosing(_pieces(self._function, arguments)) as pieces:
                async for piece in pieces:
                    yield piece if isinstance(piece, _EVENTS) else Text(str(piece))
        except Exception as error:  # noqa: BLE001 - whatever somebody's agent raises is told, and the chat goes on
            yield Failed(f"The agent failed: {type(error).__name__}: {error}.")


async def _pieces(function: Callable[..., Any], arguments: tuple[Any, ...]) -> AsyncGenerator[Any]:
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        answer = function(*arguments)
    else:
        answer = await asyncio.to_thread(function, *arguments)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, AsyncGenerator):
        async with aclosing(answer) as pieces:  # what it opened is closed before the turn is over
            async for piece in pieces:
                yield piece
    elif isinstance(answer, AsyncIterator):
        async for piece in answer:
            yield piece
    elif isinstance(answer, Iterator):
        while (piece := await asyncio.to_thread(next, answer, _END)) is not _END:
            yield piece
    elif answer is not None:
        yield answer


def _takes_two(function: Callable[..., Any]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [one for one in inspect.signature(function).parameters.values() if one.kind in kinds]
    return len(places) >= 2
