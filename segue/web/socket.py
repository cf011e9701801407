"""A WebSocket: requests and answers as over HTTP, and beside them what happens in conversations, as it happens.

What was said is told with a cursor. Whoever comes back with the last one they have is told everything behind it.
A client that does not read is not read from either, and keeps nothing but its own connection waiting, not for long.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from segue.core.credentials import Credential
from segue.core.errors import NotFound, StoreError
from segue.listening.bodies import Refusal, read_body
from segue.sessions.following import cursor_text
from segue.web.following import Event, Subscription
from segue.web.guarding import Guard
from segue.web.premises import Premises
from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.chat import Subscribed, SubscribeParams, Unsubscribed, UnsubscribeParams
from segue.web.rpc.dispatching import answering, failed, id_of, spell
from segue.web.rpc.method import Caller, Closed
from segue.web.rpc.troubles import NOT_NOW, Trouble, trouble_of

MOST_AT_ONCE = 64
MOST_SUBSCRIPTIONS = 64
CHECK_SECONDS = 1.0
"""How soon a token that was taken back ends a connection."""
SENDING_SECONDS = 30.0
"""After which whoever does not read is left."""
MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Of the requests of one connection that are being answered, together."""
NOT_LET_IN, NO_TEXT = 1008, 1003
TOO_MANY = Trouble(NOT_NOW, f"{MOST_AT_ONCE} requests of this connection are being answered; wait for some of them.")

_log = logging.getLogger(__name__)


class Socket:
    """One connection."""

    def __init__(self, premises: Premises, guard: Guard, socket: WebSocket, credential: Credential) -> None:
        self._premises = premises
        self._guard = guard
        self._socket = socket
        self._caller = Caller(credential, premises)
        here: dict[str, Callable[[Caller, Any], Awaitable[Closed]]] = {
            "chat.subscribe": self._subscribe,
            "chat.unsubscribe": self._unsubscribe,
        }
        self._methods = {**METHODS, **{name: replace(METHODS[name], run=run) for name, run in here.items()}}
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._followed: dict[str, asyncio.Task[None] | None] = {}
        self._at_once = 0
        self._bytes_at_once = 0
        self._sending = asyncio.Lock()
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        """Answer until the other side leaves, its token is taken back, or it does not read."""
        self._start(self._receive())
        self._start(self._stay_let_in())
        try:
            await self._is_over.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _receive(self) -> None:
        try:
            while (said := await self._socket.receive())["type"] != "websocket.disconnect":
                if (text := said.get("text")) is None:
                    await self._close(NO_TEXT, "Requests are texts.")
                    return
                size = len(text)
                if self._at_once < MOST_AT_ONCE and (not self._at_once or self._fits(size)):
                    self._at_once += 1
                    self._bytes_at_once += size
                    self._start(self._answer(text, size))
                else:  # said before anything else is received, so that requests never pile up
                    await self._send(spell(failed(_id_in(text), TOO_MANY)))
        finally:
            self._is_over.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._is_over.is_set():
            if not isinstance(error, WebSocketDisconnect):
                _log.error("A connection failed.", exc_info=error)
            self._is_over.set()

    def _fits(self, size: int) -> bool:
        return self._bytes_at_once + size <= MAX_REQUEST_BYTES

    async def _answer(self, text: str, size: int) -> None:
        try:
            try:
                said = read_body(text.encode("utf-8", "surrogatepass"))
            except Refusal as refusal:
                await self._send(spell(failed(None, trouble_of(refusal))))
                return
            async with answering(self._caller, self._methods, said) as answer:
                if answer is not None:
                    await self._send(answer)
        finally:
            self._at_once -= 1
            self._bytes_at_once -= size

    async def _send(self, text: bytes) -> None:
        try:
            async with asyncio.timeout(SENDING_SECONDS), self._sending:
                await self._socket.send_text(text.decode())
        except TimeoutError:
            self._is_over.set()  # they do not read

    async def _close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                await self._socket.close(code, reason)
        finally:
            self._is_over.set()

    async def _stay_let_in(self) -> None:
        """Nobody stays whose token was taken back."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                is_good = await self._guard.is_still_good(self._caller.credential)
            except StoreError:
                continue  # it is looked again
            if not is_good:
                await self._close(NOT_LET_IN, "The token was taken back.")
                return

    # What happens

    async def _subscribe(self, caller: Caller, params: SubscribeParams) -> Subscribed:
        """Be told what is said from now on, or behind a cursor."""
        if len(self._followed) >= MOST_SUBSCRIPTIONS:
            raise Refusal(503, f"One connection follows at most {MOST_SUBSCRIPTIONS} conversations.")
        name = f"s{next(self._numbers)}"
        self._followed[name] = None
        try:
            subscription = Subscription(caller, params)
            await subscription.begin()
        except BaseException:
            del self._followed[name]
            raise
        cursor = subscription.cursor
        told = Subscribed(
            subscription=name, cursor=cursor_text(cursor) if cursor else None, lane_key=subscription.lane_key
        )
        self._followed[name] = self._start(self._follow(name, subscription))
        return told

    async def _unsubscribe(self, _caller: Caller, params: UnsubscribeParams) -> Unsubscribed:
        """Be told nothing more of a conversation."""
        task = self._followed.pop(params.subscription, None)
        if task is None:
            raise NotFound(f"There is no subscription {params.subscription!r} on this connection.")
        task.cancel()
        return Unsubscribed(subscription=params.subscription)

    async def _follow(self, name: str, subscription: Subscription) -> None:
        async def tell(event: Event) -> None:
            params = {"subscription": name, **event}
            await self._send(spell({"jsonrpc": "2.0", "method": "chat.event", "params": params}))

        try:
            await subscription.run(tell)
        finally:
            self._followed.pop(name, None)


def _id_in(text: str) -> Any:
    """The id of a request that is not carried out."""
    try:
        said = read_body(text.encode("utf-8", "surrogatepass"))
    except Refusal:
        return None
    return id_of(said)
