"""The way from asynchronous code to the store, and transactions that outlive cancellation.

What several want to write at the same time is written in one commit, each of it wholly or not at all. A file of our
own is written here and now, for a commit takes less time than it takes to tell a thread of it, and threads get into
each other's way. Where somebody has to be waited for, a thread does that.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from enum import StrEnum
from functools import partial
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from segue.agent.rounds import Order, Rounds
from segue.core.errors import StoreError
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


Do = Callable[[list[Wish]], list[Any]]
"""Says what came of each wish, which may be an error."""


class Asked(Protocol):
    """Somebody who does what is wished for."""

    def ask(self, scope: Scope, work: Any) -> "asyncio.Future[Any]":
        """What will have come of it."""

    def close(self) -> None:
        """Wait until everything is done."""


class Hand(Asked):
    """A thread that does what it is asked to, in order, and as much at once as is asked meanwhile."""

    def __init__(self, name: str, do: Do, most: int) -> None:
        self._do = do
        self.most = most
        self._wishes: SimpleQueue[Wish | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._has_begun = threading.Lock()

    def ask(self, scope: Scope, work: Any) -> "asyncio.Future[Any]":
        wish = Wish(scope, work, asyncio.get_running_loop().create_future())
        self.take([wish])
        return wish.done

    def take(self, wishes: Sequence[Wish]) -> None:
        for wish in wishes:
            self._wishes.put(wish)
        if wishes and self._has_begun.acquire(blocking=False):
            self._thread.start()

    def close(self) -> None:
        self._wishes.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            wishes = [self._wishes.get()]
            with suppress(Empty):
                while len(wishes) < self.most:
                    wishes.append(self._wishes.get_nowait())
            is_open = None not in wishes
            for _, some in groupby((wish for wish in wishes if wish), key=lambda wish: wish.scope):
                together = list(some)
                _tell(together, self._do(together))


class Pen(Asked):
    """Does here and now what takes no time, in order; what does, and all that comes behind it, is for a hand.

    `at_once` does as many of the first wishes as it can without waiting, and says what came of those.
    """

    def __init__(self, hand: Hand, at_once: Do, order: Order) -> None:
        self._hand = hand
        self._at_once = at_once
        self._order = order
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wishes: deque[Wish] = deque()
        self._is_held_up = False

    def ask(self, scope: Scope, work: Any) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what was wished for in another one, nobody waits for
            self._loop, self._is_held_up = loop, False
            self._wishes.clear()
        wish = Wish(scope, work, loop.create_future())
        self._wishes.append(wish)
        if len(self._wishes) == 1 and not self._is_held_up:
            self._order.ask(self._write)
        return wish.done

    def close(self) -> None:
        self._hand.take(self._wishes)
        self._wishes.clear()
        self._hand.close()

    def _write(self) -> None:
        wishes = _alike(islice(self._wishes, self._hand.most))
        for _ in wishes:
            self._wishes.popleft()
        try:
            outcomes = self._at_once(wishes) if wishes else []
        except BaseException as error:
            _settle([(wish, error) for wish in wishes])
            raise
        if outcomes:
            self._wishes.extendleft(reversed(wishes[len(outcomes) :]))
            _settle(list(zip(wishes, outcomes, strict=False)))
        elif wishes:
            self._is_held_up = True
            wishes[-1].done.add_done_callback(self._go_on)
            self._hand.take(wishes)
        if self._wishes and not self._is_held_up:
            self._order.ask(self._write)

    def _go_on(self, _done: "asyncio.Future[Any]") -> None:
        self._is_held_up = False
        if self._wishes:
            self._order.ask(self._write)


class Access(StrEnum):
    """What was asked of the store: on a full disk one fails and the other works."""

    READ = "read"
    WRITE = "write"


Noticed = Callable[[Access, StoreError | None, float], None]
"""Is told of each call whether it failed."""


def _nobody(_error: StoreError) -> None:
    """For whoever tells nobody."""


def _unnoticed(_access: Access, _error: StoreError | None, _began: float) -> None: ...


class Door:
    """A store, awaited. Whoever is cancelled while a transaction runs still waits for its end."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        rounds: Rounds | None = None,
        failed: Callable[[StoreError], None] = _nobody,
        noticed: Noticed = _unnoticed,
    ) -> None:
        self.store = store
        self.scope = scope
        self.failed = failed
        """Is told whenever the store cannot do what was asked of it."""
        self.noticed = noticed
        self._hand, rounds = Hand("segue-store", partial(_written, store), MOST_TOGETHER), rounds or Rounds()
        at_once = partial(_written_at_once, store, rounds)
        self._writer: Asked = Pen(self._hand, at_once, rounds) if store.is_near else self._hand
        self._reader = Hand("segue-reading", partial(_read, store), 1)

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._asked(self._writer, Access.WRITE, partial(_given, work, args, kwargs))

    async def write_beside(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write`, for what may take long: a thread does it, whatever the store is."""
        return await self._asked(self._hand, Access.WRITE, partial(_given, work, args, kwargs))

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._asked(self._reader, Access.READ, partial(_given, work, args, kwargs))

    async def glance(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `read`, for what takes no time where the store is near."""
        if not self.store.is_near:
            return await self.read(work, *args, **kwargs)
        began = time.monotonic()
        try:
            found = self.store.read(self.scope, work, *args, **kwargs)
        except StoreError as error:
            self.tell_failure(Access.READ, error)
            raise
        self.tell_success(Access.READ, began)
        return found

    def tell_failure(self, access: Access, error: StoreError) -> None:
        """Let whoever watches the store know that a call failed."""
        self.failed(error)
        self.noticed(access, error, time.monotonic())

    def tell_success(self, access: Access, began: float) -> None:
        """Let whoever watches the store know that a call succeeded that began at this moment of the monotonic clock."""
        self.noticed(access, None, began)

    def under(self, scope: Scope) -> "Door":
        """The same way, for somebody who may see less."""
        narrower = copy(self)
        narrower.scope = scope
        return narrower

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    async def _asked(self, hand: Asked, access: Access, work: Callable[[Transaction], T]) -> T:
        began = time.monotonic()
        waiting: asyncio.Future[T] = hand.ask(self.scope, work)
        try:
            found = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await asyncio.wait({waiting})  # what has begun is committed or not, and never half known
            waiting.exception()  # nobody is left to hear of it
            raise
        except StoreError as error:
            self.tell_failure(access, error)
            raise
        self.tell_success(access, began)
        return found


def _alike(wishes: Iterable[Wish]) -> list[Wish]:
    """The first of them, as many as are of one scope."""
    _, first = next(groupby(wishes, key=lambda wish: wish.scope), (None, ()))
    return list(first)


def _written_at_once(store: Store, rounds: Rounds, wishes: list[Wish]) -> list[Any]:
    """What came of those that were written without waiting for anybody. The index follows when there is time."""
    outcomes = store.write_at_once(wishes[0].scope, [wish.work for wish in wishes])
    rounds.ask_later(store.index_a_little)
    return outcomes


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
