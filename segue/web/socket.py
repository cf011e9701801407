"""A WebSocket: requests and answers as over HTTP, and beside them what happens in conversations, as it happens.

What was said is told with a cursor. Whoever comes back with the last one they have is told everything behind it.
"""

import asyncio
import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from segue.core.credentials import Credential
from segue.core.errors import SegueError, StoreError
from segue.core.events import Note, Text, ToolFinished, ToolStarted
from segue.core.messages import Spot
from segue.gateway.onlookers import Onlooker, Seen
from segue.listening.bodies import Refusal, read_body
from segue.sessions.following import BEGINNING, cursor_text, follow, parse_cursor
from segue.web.guarding import Guard
from segue.web.premises import Premises
from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.chat import Subscribed, SubscribeParams, beginning_at, lane_named, session_at
from segue.web.rpc.dispatching import answered, failed
from segue.web.rpc.method import Caller
from segue.web.rpc.rows import message_row
from segue.web.rpc.troubles import trouble_of

MOST_AT_ONCE = 16
MOST_SUBSCRIPTIONS = 64
MOST_MESSAGES = 100
LOOK_SECONDS = 0.5
CHECK_SECONDS = 1.0
"""How soon a token that was taken back ends a connection."""
NOT_LET_IN, NO_TEXT = 1008, 1003

_log = logging.getLogger(__name__)


class Socket:
    """One connection."""

    def __init__(self, premises: Premises, guard: Guard, socket: WebSocket, credential: Credential) -> None:
        self._premises = premises
        self._guard = guard
        self._socket = socket
        self._caller = Caller(credential, premises)
        told_here = replace(METHODS["chat.subscribe"], run=self._subscribe)
        self._methods = {**METHODS, told_here.name: told_here}
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(MOST_AT_ONCE)
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Answer until the other side leaves, or its token is taken back."""
        self._start(self._stay_let_in())
        try:
            while True:
                said = await self._socket.receive()
                if said["type"] == "websocket.disconnect":
                    return
                if (text := said.get("text")) is None:
                    await self._socket.close(NO_TEXT, "Requests are texts.")
                    return
                await self._room.acquire()
                self._start(self._answer(text))
        except WebSocketDisconnect:
            return
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _start(self, work: Any) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, WebSocketDisconnect):
            _log.error("A connection failed.", exc_info=error)

    async def _answer(self, text: str) -> None:
        try:
            answer = await answered(self._caller, self._methods, read_body(text.encode("utf-8", "surrogatepass")))
        except Refusal as refusal:
            answer = failed(None, trouble_of(refusal))
        finally:
            self._room.release()
        if answer is not None:
            await self._send(answer)

    async def _send(self, said: Any) -> None:
        async with self._sending:
            await self._socket.send_text(json.dumps(said, ensure_ascii=False))

    async def _stay_let_in(self) -> None:
        """Nobody stays whose token was taken back."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                is_good = await self._guard.is_still_good(self._caller.credential)
            except StoreError:
                continue  # it is looked again
            if not is_good:
                await self._socket.close(NOT_LET_IN, "The token was taken back.")
                return

    # What happens

    async def _subscribe(self, caller: Caller, params: SubscribeParams) -> Subscribed:
        """Be told what is said from now on, or behind a cursor."""
        if len(self._followed) >= MOST_SUBSCRIPTIONS:
            raise Refusal(503, f"One connection follows at most {MOST_SUBSCRIPTIONS} conversations.")
        lane_key = lane_named(caller, params)
        if params.cursor is not None:
            begun = parse_cursor(params.cursor)
            await self._premises.read(caller.scope, follow, begun, 1, lane_key)  # it must be theirs to read
            cursor: Spot | None = begun
        else:
            cursor = await self._premises.read(caller.scope, beginning_at, params, lane_key)
        name = f"s{len(self._followed) + 1}"
        self._followed[name] = self._start(self._follow(name, params, lane_key, cursor))
        return Subscribed(subscription=name, cursor=cursor_text(cursor) if cursor else None, lane_key=lane_key)

    async def _follow(self, name: str, where: SubscribeParams, lane_key: str | None, cursor: Spot | None) -> None:
        key = lane_key or await self._lane_of(cursor)
        with self._premises.onlookers.watching(key) as onlooker:
            while True:
                try:
                    cursor = await self._tell_said(name, where, lane_key, cursor)
                except StoreError:
                    pass  # it is looked again in a moment
                except SegueError as error:
                    await self._tell(name, {"kind": "ended", "reason": str(error)})
                    return
                await self._tell_seen(name, onlooker)

    async def _lane_of(self, cursor: Spot | None) -> str:
        lane = await self._premises.read(
            self._caller.scope, lambda tx: tx.lanes.find_by_session(cursor.session_id) if cursor else None
        )
        return lane.key if lane else ""

    async def _tell_said(
        self, name: str, where: SubscribeParams, lane_key: str | None, cursor: Spot | None
    ) -> Spot | None:
        """Tell what was said behind a cursor, to its end; the cursor there."""
        scope, read = self._caller.scope, self._premises.read
        if cursor is None:
            session_id = await read(scope, session_at, where, lane_key)
            cursor = Spot(session_id, BEGINNING) if session_id else None
        while cursor is not None:
            step = await read(scope, follow, cursor, MOST_MESSAGES, lane_key)
            if not step.messages and not step.is_elsewhere:
                break
            for message in step.messages:
                await self._tell(name, {"kind": "message", "message": message_row(message).model_dump(mode="json")})
            cursor = step.cursor
            if step.is_elsewhere:
                moved = {"kind": "session", "session_id": cursor.session_id, "cursor": cursor_text(cursor)}
                await self._tell(name, moved)
        return cursor

    async def _tell_seen(self, name: str, onlooker: Onlooker) -> None:
        for event in told_of(await onlooker.wait(LOOK_SECONDS)):
            await self._tell(name, event)

    async def _tell(self, name: str, event: dict[str, Any]) -> None:
        params = {"subscription": name, **event}
        await self._send({"jsonrpc": "2.0", "method": "chat.event", "params": params})


def told_of(many: Iterable[Seen]) -> list[dict[str, Any]]:
    """What is told of what happens in turns: words, which are not kept, with those next to them, and tools."""
    told: list[dict[str, Any]] = []
    for turn_id, event in many:
        match event:
            case Text(text) if told and (told[-1]["kind"], told[-1]["turn_id"]) == ("delta", turn_id):
                told[-1]["text"] += text
            case Text(text):
                told.append({"kind": "delta", "turn_id": turn_id, "text": text})
            case ToolStarted(call) | ToolFinished(call):
                state = "started" if isinstance(event, ToolStarted) else "finished"
                told.append({"kind": "tool", "turn_id": turn_id, "name": call.name, "state": state})
            case Note(text):
                told.append({"kind": "note", "turn_id": turn_id, "text": text})
            case None:
                told.append({"kind": "turn", "turn_id": turn_id, "state": "ended"})
    return told
