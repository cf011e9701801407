"""Any Python function, or any other agent, in the place of ours.

It is given the conversation in the format of OpenAI, and as a second argument, if it has one, the whole task. It may be
plain or asynchronous; it returns its answer, or yields pieces of it, or yields events. A plain one cannot be stopped:
it runs on in a thread that nobody waits for.
"""

import asyncio
import contextvars
import inspect
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from segue.core.events import Event, Failed, Text
from segue.ports.agent import Task

_EVENTS = Event.__args__
_END = object()
_NO_ANSWER = "The agent gave no answer."

Report = Callable[[BaseException], str]
"""Keeps what went wrong, and says where."""


class CallableAgent:
    """Wraps a function so that what it answers is stored and shown like any other answer."""

    def __init__(self, function: Callable[..., Any], report: Report | None = None) -> None:
        self._function = function
        self._report = report
        self._takes_task = _takes_two(function)

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        conversation = task.conversation
        if conversation and conversation[-1]["role"] == "assistant":
            return  # cut off after the last word
        arguments = (conversation, task) if self._takes_task else (conversation,)
        is_silent = True
        try:
            async with aclosing(_pieces(self._function, arguments)) as pieces:
                async for piece in pieces:
                    event = piece if isinstance(piece, _EVENTS) else Text(str(piece))
                    is_silent = is_silent and event == Text("")
                    yield event
        except Exception as error:  # noqa: BLE001 - whatever somebody's agent raises is told, and the chat goes on
            yield Failed(self._failure(error))
        else:
            if is_silent:
                yield Failed(_NO_ANSWER, _NO_ANSWER)

    def _failure(self, error: Exception) -> str:
        said = f"The agent failed{_place_of(error, self._function)}: {type(error).__name__}: {error}".rstrip(".") + "."
        if self._report is None:
            return said
        try:
            return f"{said} The traceback is in {self._report(error)}."
        except OSError as trouble:
            return f"{said} The traceback could not be kept: {trouble.strerror}."


async def _pieces(function: Callable[..., Any], arguments: tuple[Any, ...]) -> AsyncGenerator[Any]:
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        answer = function(*arguments)
    else:
        answer = await _beside(function, *arguments)
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
        while (piece := await _beside(next, answer, _END)) is not _END:
            yield piece
    elif answer is not None:
        yield answer


async def _beside(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a plain function returns, from a thread that ends with the program, whether it is done or not."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if answer.done():
            return  # nobody waits for it any more
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def work() -> None:
        value, trouble = None, None
        try:
            value = function(*arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
            trouble = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the program is being left
            loop.call_soon_threadsafe(settle, value, trouble)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="an agent", daemon=True).start()
    return await answer


def _place_of(error: Exception, function: Callable[..., Any]) -> str:
    """Where in somebody's agent it happened: the last line of its own file, or else of any."""
    frames = traceback.extract_tb(error.__traceback__)
    own = getattr(inspect.unwrap(function), "__code__", None)
    its = [frame for frame in frames if own is not None and frame.filename == own.co_filename]
    last = (its or [frame for frame in frames if frame.filename != __file__])[-1:]
    return "".join(f" in {Path(frame.filename).name}, line {frame.lineno}" for frame in last)


def _takes_two(function: Callable[..., Any]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [one for one in inspect.signature(function).parameters.values() if one.kind in kinds]
    return len(places) >= 2
