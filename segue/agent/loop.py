"""Our agent: a model is asked, the tools it wants are run, and it is asked again until it has nothing more to do."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from segue.core.compaction import Need
from segue.core.errors import ContextOverflow, ModelError, SegueError
from segue.core.events import (
    Event,
    Failed,
    ModelCalled,
    Note,
    Reply,
    Steered,
    ToolCall,
    ToolFinished,
    ToolStarted,
)
from segue.core.greeting import with_greeting_request
from segue.core.messages import Draft, Said, draft, said
from segue.core.sizes import UNKNOWN_WINDOW, tokens_of_all, tokens_of_rest
from segue.core.transcript import Eye, as_chat
from segue.core.turns import OUTCOME_UNKNOWN, Fate, last_calls, reply_draft, result_draft
from segue.ports.agent import Task
from segue.ports.model import Model, Request
from segue.ports.tool import Tool, ToolFailed

MOST_MODEL_CALLS = 50
"""In one turn: an agent that goes round in circles comes to an end."""
MAX_CALLS = 50
"""Tools that run for one answer of a model."""
MOST_REFUSALS = 4
"""Times that a conversation is made shorter because the model cannot read it."""
_SMALLER = 0.7
_LARGEST_RATIO = 4.0
"""Of a model's count to our guess, for which a token has about four bytes; it has one at least."""
LONGEST_OUTPUT = 100_000
"""Characters of a tool's result."""

_log = logging.getLogger(__name__)


class Loop:
    """An agent of models, the first that answers, and tools."""

    def __init__(self, models: Sequence[Model], tools: Sequence[Tool]) -> None:
        self._models = models
        self._tools: Mapping[str, Tool] = {tool.spec.name: tool for tool in tools}
        self._known_window: int | None = None
        self._ratio = 1.0

    async def run(self, task: Task) -> AsyncGenerator[Event]:
        rows = list(task.view)
        async for event in self._salvaged(task, rows):
            yield event
        if rows and rows[-1].role == "assistant":
            return  # cut off after the last word
        self._compare(task.space.counted or 0, _answered_before(rows), task)
        for _ in range(MOST_MODEL_CALLS):
            for text in await task.steered():
                rows.append(_row(draft("user", text, time.time()), rows))
                yield Steered(text)
            reply = None
            async for event in self._answered(task, rows):
                reply = event if isinstance(event, Reply) else reply
                yield event
            if reply is None:
                return  # and why has been said
            rows.append(_row(reply_draft(reply, 0.0), rows))
            for number, call in enumerate(reply.calls):
                async for event in self._called(task, call, rows, may_run=number < MAX_CALLS):
                    yield event
            if not reply.calls:
                return
        sentence = f"The agent asked the model {MOST_MODEL_CALLS} times without coming to an end; say how to go on."
        yield Failed(sentence, sentence)

    async def aclose(self) -> None:
        """Close what tools have open; most have nothing."""
        for tool in self._tools.values():
            close: Callable[[], Awaitable[None]] | None = getattr(tool, "aclose", None)
            if close is not None:
                await close()

    # Models

    async def _answered(self, task: Task, rows: list[Said]) -> AsyncGenerator[Event]:
        """The answer of a model to a conversation that fits it; one that does not is made shorter."""
        if self._measure(task, rows) > self._window(task) * task.space.threshold:
            await self._shorten(task, rows, self._need(task))
        for tries in range(1, MOST_REFUSALS + 1):
            try:
                async for event in self._asked(task, rows):
                    self._learn(task, rows, event)
                    yield event
            except ContextOverflow as error:
                self._known_window = int(self._measure(task, rows) * _SMALLER)  # it cannot read what it was sent
                if tries < MOST_REFUSALS and await self._shorten(task, rows, self._need(task, is_urgent=True)):
                    continue
                yield Failed(str(error), error.public)
            return

    def _need(self, task: Task, *, is_urgent: bool = False) -> Need:
        """In tokens as we guess them: a window that the model counts in smaller ones holds fewer of ours."""
        return Need(int(self._window(task) / self._ratio), self._rest(task), is_urgent)

    async def _shorten(self, task: Task, rows: list[Said], need: Need) -> bool:
        shorter = await task.space.make(need)
        if shorter is None:
            return False
        rows[:] = shorter
        return True

    def _measure(self, task: Task, rows: Sequence[Said]) -> float:
        """How many tokens a request will be, as far as earlier ones teach."""
        return (tokens_of_all(rows) + self._rest(task)) * self._ratio

    def _rest(self, task: Task) -> int:
        return tokens_of_rest(task.system, [tool.spec for tool in self._tools.values()])

    def _window(self, task: Task) -> int:
        return self._known_window or task.space.window or UNKNOWN_WINDOW

    def _learn(self, task: Task, rows: Sequence[Said], event: Event) -> None:
        """From an answer: how much the model can read, and how far our guess of a size was from its own count."""
        if isinstance(event, Reply):
            self._known_window = event.context_window or self._known_window
            self._compare(event.usage.input_tokens, rows, task)

    def _compare(self, counted: int, rows: Sequence[Said], task: Task) -> None:
        if counted:
            self._ratio = min(max(1.0, counted / (tokens_of_all(rows) + self._rest(task))), _LARGEST_RATIO)

    async def _asked(self, task: Task, rows: Sequence[Said]) -> AsyncGenerator[Event]:
        """The answer of the first model that gives one; the others are tried as long as nothing was shown."""
        for number, model in enumerate(self._models):
            is_last = number == len(self._models) - 1
            has_begun = False
            yield ModelCalled(model.name, model.provider)
            try:
                async with aclosing(model.stream(self._request(task, rows, model))) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
            except ModelError as error:
                if isinstance(error, ContextOverflow) and not has_begun:
                    raise
                if is_last or has_begun:
                    yield Failed(_advised(str(error), has_begun), _advised(error.public, has_begun))
                    return
                yield Note(f"{error} Going on with {self._models[number + 1].name}.")
            else:
                return

    def _request(self, task: Task, rows: Sequence[Said], model: Model) -> Request:
        specs = [tool.spec for tool in self._tools.values()]
        eye = Eye(provider=model.provider, shared=task.is_shared, marks_failures=True)
        return Request(task.system, with_greeting_request(as_chat(rows, eye)), specs, task.effort)

    # Tools

    async def _salvaged(self, task: Task, rows: list[Said]) -> AsyncGenerator[Event]:
        """Results for the calls that a crash left without one."""
        for call in last_calls(rows)[0]:
            fate = task.pending.get(call.id)
            if fate is Fate.RUN:
                async for event in self._called(task, call, rows):
                    yield event
            elif fate is Fate.UNKNOWN:
                result = ToolFinished(call, OUTCOME_UNKNOWN, is_error=True)
                rows.append(_row(result_draft(result, 0.0), rows))
                yield result

    async def _called(
        self, task: Task, call: ToolCall, rows: list[Said], *, may_run: bool = True
    ) -> AsyncGenerator[Event]:
        tool, arguments = self._tools.get(call.name), call.parsed()
        if not may_run:
            result = ToolFinished(call, f"Not run: at most {MAX_CALLS} tools run for one answer.", is_error=True)
        elif tool is None:
            result = ToolFinished(call, f"There is no tool {call.name!r}; there are {', '.join(self._tools)}.", True)
        elif arguments is None:
            result = ToolFinished(call, "The arguments are not a JSON object; call it again with one.", is_error=True)
        elif (risk := tool.risk(arguments)) and not await task.agrees(call, risk):
            result = ToolFinished(call, "The user did not allow this. Do not try it again in another way.", True)
        else:
            yield ToolStarted(call, tool.is_idempotent(arguments))
            result = await _result_of(tool, call, arguments, task)
        rows.append(_row(result_draft(result, 0.0), rows))
        yield result


def _answered_before(rows: Sequence[Said]) -> Sequence[Said]:
    """The conversation up to its last answer."""
    last = max((at for at, row in enumerate(rows) if row.role == "assistant"), default=-1)
    return rows[: last + 1]


async def _result_of(tool: Tool, call: ToolCall, arguments: dict[str, Any], task: Task) -> ToolFinished:
    try:
        output = await tool.run(arguments, task.session_id)
    except ToolFailed as error:
        return ToolFinished(call, str(error), is_error=True)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is for the model to deal with
        _log.warning("Tool %s failed", call.name, exc_info=error)
        return ToolFinished(call, _told(error, task), is_error=True)
    return ToolFinished(call, _cut(output))


def _told(error: Exception, task: Task) -> str:
    """Return an unexpected error of a tool for the model, which may repeat it to whoever it answers."""
    if not task.hides_details:
        return f"{type(error).__name__}: {error}"
    return error.public if isinstance(error, SegueError) else f"The tool failed: {type(error).__name__}."


def _cut(output: str) -> str:
    if len(output) <= LONGEST_OUTPUT:
        return output
    half = LONGEST_OUTPUT // 2
    left_out = len(output) - 2 * half
    return f"{output[:half]}\n… {left_out:,} characters left out …\n{output[-half:]}"


def _advised(sentence: str, has_begun: bool) -> str:
    return f"The answer was cut off: {sentence} /retry asks again." if has_begun else sentence


def _row(message: Draft, rows: Sequence[Said]) -> Said:
    return said(message, rows[-1].seq + 1 if rows else 1)
