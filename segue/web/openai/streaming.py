"""Answers as they are written: server-sent events. A client that leaves loses nothing, for the turn goes on."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from segue.core.ids import LaneKey
from segue.core.inbox import Entry, InboxState
from segue.core.preferences import decode
from segue.core.sending import Delivery, suppress
from segue.gateway.onlookers import Onlooker
from segue.ports.store import Transaction
from segue.sessions.responding import Outcome
from segue.web.openai.answers import (
    COMPLETION,
    Standing,
    answer_of,
    chat_usage,
    look_at,
    message_id,
    message_of,
    response_of,
    trouble_with,
)
from segue.web.openai.door import Visit
from segue.web.openai.errors import trouble_of
from segue.web.openai.shapes import OutputMessage, OutputText
from segue.web.openai.voice import Voice
from segue.web.premises import Premises
from segue.web.speaking import events_of

CHECK_SECONDS = 1.0
"""So often it is looked whether a token is still good."""
KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = ": still here\n\n"

T = TypeVar("T")
Telling = AsyncGenerator[str | Standing]
"""Pieces of an answer, with empty ones when nothing happens for a while, and how it stands in the end."""


class Stream(StreamingResponse):
    """Events for one client; whatever was opened for it is closed when it has left, also if it never listened.

    It is noted when all of them have gone out.
    """

    def __init__(self, events: AsyncIterator[str], stack: ExitStack, note: Callable[[], Awaitable[None]]) -> None:
        noted = _noted(events, note)
        super().__init__(noted, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack:
            await super().__call__(scope, receive, send)


async def tell(visit: Visit, standing: Standing, onlooker: Onlooker) -> Telling:
    """An answer from its beginning: what is written already, and then what is being said."""
    premises, entry = visit.premises, standing.entry
    is_hushed = await premises.glance(_is_hushed, premises, entry)
    is_over = standing.outcome.is_over
    written = [] if is_hushed and not is_over else answer_of(standing.outcome)
    voice = Voice(written, is_late=entry.state == InboxState.RUNNING)
    if begun := voice.beginning():
        yield begun
    if is_over:
        yield standing
        return
    checked_at = told_at = time.monotonic()
    async with aclosing(_with_pauses(events_of(premises, entry, onlooker))) as events:
        async for one in events:
            now = time.monotonic()
            if now - checked_at >= CHECK_SECONDS or isinstance(one, Outcome):
                await visit.check()
                checked_at = now
            match one:
                case None if now - told_at >= KEEP_ALIVE_SECONDS:
                    told_at = now
                    yield ""
                case None:
                    pass
                case Outcome():
                    last = await premises.read(visit.scope, look_at, entry.message_id)
                    if rest := voice.end(answer_of(last.outcome)):
                        yield rest
                    yield last
                case _ if not is_hushed and (piece := voice.hear(one)):
                    told_at = now
                    yield piece


async def chat_events(standing: Standing, telling: Telling, *, with_usage: bool) -> AsyncIterator[str]:
    """A chat completion, piece by piece."""
    row: dict[str, Any] = {
        "id": COMPLETION + standing.hex,
        "object": "chat.completion.chunk",
        "created": int(standing.entry.admitted_at),
        "model": standing.call.model,
    }

    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return _event(row | {"choices": [choice]} | ({"usage": None} if with_usage else {}))

    yield chunk({"role": "assistant", "content": ""})
    try:
        async with aclosing(telling):
            async for one in telling:
                if isinstance(one, str):
                    yield chunk({"content": one}) if one else KEEP_ALIVE
                elif trouble := trouble_with(one):
                    yield _event(trouble.row)
                else:
                    yield chunk({}, "stop")
                    if with_usage:
                        yield _event(row | {"choices": [], "usage": chat_usage(one.used).model_dump()})
    except Exception as error:  # noqa: BLE001 - whoever listens is told, whatever it is
        yield _event(trouble_of(error).row)
    yield "data: [DONE]\n\n"


async def response_events(standing: Standing, telling: Telling) -> AsyncIterator[str]:
    """A response, event by event."""
    script = Script(standing)
    for event in script.opening():
        yield _named(event)
    try:
        async with aclosing(telling):
            async for one in telling:
                if one == "":
                    yield KEEP_ALIVE
                    continue
                for event in script.piece(one) if isinstance(one, str) else script.closing(one):
                    yield _named(event)
    except Exception as error:  # noqa: BLE001 - whoever listens is told, whatever it is
        fault = trouble_of(error)
        yield _named(script.numbered({"type": "error", "code": fault.code, "message": fault.message, "param": None}))


class Script:
    """The events of a response in their order, each with its number."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._number = 0
        self._text = ""

    def numbered(self, event: dict[str, Any]) -> dict[str, Any]:
        number, self._number = self._number, self._number + 1
        return event | {"sequence_number": number}

    def opening(self) -> list[dict[str, Any]]:
        begun = response_of(self._standing, with_text=False).model_copy(
            update={"status": "in_progress", "completed_at": None, "error": None, "usage": None}
        )
        told = begun.model_dump(mode="json")
        return [self.numbered({"type": f"response.{name}", "response": told}) for name in ("created", "in_progress")]

    def piece(self, text: str) -> list[dict[str, Any]]:
        begun = [] if self._text else self._item_begun()
        self._text += text
        return [*begun, self._in_part("output_text.delta", delta=text, logprobs=[])]

    def closing(self, standing: Standing) -> list[dict[str, Any]]:
        """What was told is what is said to have been told, also when the answer had to be begun again."""
        ends = {"completed": "completed", "failed": "failed"}
        events = self._item_ended(standing) if self._text else []
        response = response_of(standing)
        if self._text:
            response = response.model_copy(update={"output": [self._item(standing)]})
        name = f"response.{ends.get(standing.status, 'incomplete')}"
        return [*events, self.numbered({"type": name, "response": response.model_dump(mode="json")})]

    def _item(self, standing: Standing) -> OutputMessage:
        return message_of(standing).model_copy(update={"content": [OutputText(text=self._text)]})

    def _item_begun(self) -> list[dict[str, Any]]:
        item = OutputMessage(id=message_id(self._standing), status="in_progress", content=[])
        added = {"type": "response.output_item.added", "output_index": 0, "item": item.model_dump(mode="json")}
        part = OutputText(text="").model_dump(mode="json")
        return [self.numbered(added), self._in_part("content_part.added", part=part)]

    def _item_ended(self, standing: Standing) -> list[dict[str, Any]]:
        part = OutputText(text=self._text).model_dump(mode="json")
        item = self._item(standing).model_dump(mode="json")
        return [
            self._in_part("output_text.done", text=self._text, logprobs=[]),
            self._in_part("content_part.done", part=part),
            self.numbered({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ]

    def _in_part(self, kind: str, **fields: Any) -> dict[str, Any]:
        where = {"item_id": message_id(self._standing), "output_index": 0, "content_index": 0}
        return self.numbered({"type": f"response.{kind}", **where, **fields})


def _event(said: dict[str, Any]) -> str:
    return f"data: {json.dumps(said, ensure_ascii=False)}\n\n"


def _named(said: dict[str, Any]) -> str:
    return f"event: {said['type']}\n{_event(said)}"


def _is_hushed(tx: Transaction, premises: Premises, entry: Entry) -> bool:
    """Whether an answer will be held back, so that nothing of it may be told while it is written."""
    lane = tx.lanes.find(entry.lane_key)
    session = tx.sessions.find(lane.session_id) if lane and lane.session_id else None
    override = decode(session.model_config).send if session else None
    delivery = Delivery(entry.destination, LaneKey(entry.lane_key))
    return suppress(delivery, premises.settings.session.send_policy.policy, override) is not None


async def _with_pauses(events: AsyncIterator[T]) -> AsyncGenerator[T | None]:
    """The same events, and nothing whenever nothing happens for a while."""
    waiting: asyncio.Task[T] | None = None
    try:
        while True:
            waiting = waiting or asyncio.create_task(_next(events))
            done, _ = await asyncio.wait({waiting}, timeout=min(CHECK_SECONDS, KEEP_ALIVE_SECONDS))
            if not done:
                yield None
                continue
            ended, waiting = waiting, None
            try:
                one = ended.result()
            except StopAsyncIteration:
                return
            yield one
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})


async def _noted(events: AsyncIterator[str], note: Callable[[], Awaitable[None]]) -> AsyncIterator[str]:
    """The same events, and a note behind the last one."""
    async for one in events:
        yield one
    await note()


async def _next(events: AsyncIterator[T]) -> T:
    return await anext(events)
