"""The way from asynchronous code to the store: threads of its own, and transactions that outlive cancellation.

What several want to write at the same time is written in one commit, each of it wholly or not at all.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from segue.core.scope import Scope
from segue.ports.store import Store, Transaction

P = ParamSpec("P")
T = TypeVar("T")

MOST_TOGETHER = 64
"""Units of work in one commit."""


class _Wish(NamedTuple):
    scope: Scope
    work: Callable[[Transaction], Any]
    done: "Future[Any]"


class Door:
    """A store, awaited. Whoever is cancelled while a transaction runs still waits for its end."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store = store
        self.scope = scope
        self._writer = ThreadPoolExecutor(1, "segue-store")
        self._reader = ThreadPoolExecutor(1, "segue-reading")
        self._wishes: deque[_Wish] = deque()

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        wish = _Wish(self.scope, partial(_given, work, args, kwargs), Future())
        self._wishes.append(wish)
        self._writer.submit(self._write_some)
        return await _end_of(wish.done)

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _end_of(self._reader.submit(partial(self.store.read, self.scope, work, *args, **kwargs)))

    def under(self, scope: Scope) -> "Door":
        """The same way, for somebody who may see less."""
        narrower = copy(self)
        narrower.scope = scope
        return narrower

    def close(self) -> None:
        self._writer.shutdown()
        self._reader.shutdown()

    def _write_some(self) -> None:
        """Everything that waits and may be written together; nothing when somebody was quicker."""
        wishes: list[_Wish] = []
        while self._wishes and len(wishes) < MOST_TOGETHER:
            if wishes and self._wishes[0].scope != wishes[0].scope:
                break
            wishes.append(self._wishes.popleft())
        if len(wishes) == 1:
            _settle(wishes[0].done, partial(self.store.write, wishes[0].scope, wishes[0].work))
        elif wishes:
            self._write_together(wishes)

    def _write_together(self, wishes: Sequence[_Wish]) -> None:
        try:
            outcomes = self.store.write_together(wishes[0].scope, [wish.work for wish in wishes])
        except BaseException as error:  # noqa: BLE001 - each of them is told
            outcomes = [error] * len(wishes)
        for wish, outcome in zip(wishes, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                wish.done.set_exception(outcome)
            else:
                wish.done.set_result(outcome)


def _given(work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Transaction) -> T:
    return work(tx, *args, **kwargs)


def _settle(done: "Future[T]", act: Callable[[], T]) -> None:
    try:
        done.set_result(act())
    except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
        done.set_exception(error)


async def _end_of(running: "Future[T]") -> T:
    waiting = asyncio.wrap_future(running)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not waiting.cancelled():
            await asyncio.wait({waiting})  # what has begun is committed or not, and never half known
            if not waiting.cancelled():
                waiting.exception()  # nobody is left to hear of it
        raise
