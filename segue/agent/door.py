"""The way from asynchronous code to the store: threads of its own, and transactions that outlive cancellation.

What several want to write at the same time is written in one commit, each of it wholly or not at all.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from segue.core.scope import Scope
from segue.ports.store import Store, Transaction

P = ParamSpec("P")
T = TypeVar("T")

MOST_TOGETHER = 8
"""Units of work in one commit: as many as wait for it go on at once, and others want to get between."""


class Wish(NamedTuple):
    """Something that is to be done for somebody, and who waits for it."""

    scope: Scope
    work: Any
    """A function of a transaction, or whatever else the hand knows to deal with."""
    done: "asyncio.Future[Any]"


class Hand:
    """A thread that does what it is asked to, in order, and as much at once as is asked meanwhile."""

    def __init__(self, name: str, do: Callable[[list[Wish]], list[Any]], most: int) -> None:
        self._do = do
        self._most = most
        self._wishes: SimpleQueue[Wish | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._has_begun = threading.Lock()

    def ask(self, scope: Scope, work: Any) -> "asyncio.Future[Any]":
        """What will have come of it."""
        wish = Wish(scope, work, asyncio.get_running_loop().create_future())
        self._wishes.put(wish)
        if self._has_begun.acquire(blocking=False):
            self._thread.start()
        return wish.done

    def close(self) -> None:
        """Wait until everything is done."""
        self._wishes.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            wishes = [self._wishes.get()]
            with suppress(Empty):
                while len(wishes) < self._most:
                    wishes.append(self._wishes.get_nowait())
            is_open = None not in wishes
            for _, some in groupby((wish for wish in wishes if wish), key=lambda wish: wish.scope):
                together = list(some)
                _tell(together, self._do(together))


class Door:
    """A store, awaited. Whoever is cancelled while a transaction runs still waits for its end."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store = store
        self.scope = scope
        self._writer = Hand("segue-store", partial(_written, store), MOST_TOGETHER)
        self._reader = Hand("segue-reading", partial(_read, store), 1)

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asked(self._writer, self.scope, partial(_given, work, args, kwargs))

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asked(self._reader, self.scope, partial(_given, work, args, kwargs))

    def under(self, scope: Scope) -> "Door":
        """The same way, for somebody who may see less."""
        narrower = copy(self)
        narrower.scope = scope
        return narrower

    def close(self) -> None:
        self._writer.close()
        self._reader.close()


def _written(store: Store, wishes: list[Wish]) -> list[Any]:
    """What came of each of them, which may be an error."""
    scope, *_ = wishes[0]
    try:
        if len(wishes) == 1:
            return [store.write(scope, wishes[0].work)]
        return list(store.write_together(scope, [wish.work for wish in wishes]))
    except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
        return [error] * len(wishes)


def _read(store: Store, wishes: list[Wish]) -> list[Any]:
    try:
        return [store.read(wishes[0].scope, wishes[0].work)]
    except BaseException as error:  # noqa: BLE001 - as above
        return [error]


def _tell(wishes: Sequence[Wish], outcomes: Sequence[Any]) -> None:
    """All of them at once: a loop that is woken for each would do little else."""
    for loop, pairs in groupby(zip(wishes, outcomes, strict=True), key=lambda pair: pair[0].done.get_loop()):
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(_settle, list(pairs))


def _settle(pairs: list[tuple[Wish, Any]]) -> None:
    for wish, outcome in pairs:
        if wish.done.cancelled():
            continue
        if isinstance(outcome, BaseException):
            wish.done.set_exception(outcome)
        else:
            wish.done.set_result(outcome)


def _given(work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Transaction) -> T:
    return work(tx, *args, **kwargs)


async def asked(hand: Hand, scope: Scope, work: Callable[[Transaction], T]) -> T:
    waiting: asyncio.Future[T] = hand.ask(scope, work)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await asyncio.wait({waiting})  # what has begun is committed or not, and never half known
        waiting.exception()  # nobody is left to hear of it
        raise
