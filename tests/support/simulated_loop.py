"""An event loop in which time is a number and chance decides who comes first, so that a seed is a whole history.

Nothing here sleeps: when nobody has anything to do, it is at once the moment for which the next one waits. What a
process does, with everything that it begins, is told by its life, and a life can be ended or held up from outside at
any moment, as a signal does it: not one more line of it runs.
"""

import asyncio
import heapq
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

MOST_ROUNDS = 30_000
"""After which a history that does not come to its end is given up."""
_FAREWELLS = 20
"""Times that whoever is left is asked to go."""


@dataclass(eq=False)
class Life:
    """A process."""

    number: int
    is_over: bool = False
    is_held_up: bool = False
    missed: list[asyncio.Handle] = field(default_factory=list)
    """What would have been done meanwhile."""


_living: ContextVar[Life | None] = ContextVar("life", default=None)


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set is the same whenever the same is done."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, seed: int, now: float = 1_750_000_000.0) -> None:
        self._random = random.Random(f"order {seed}")
        self._began, self._elapsed = now, 0.0
        self._ready: list[tuple[Life | None, asyncio.Handle]] = []
        self._timers: list[tuple[float, int, Life | None, asyncio.Handle]] = []
        self._numbers = itertools.count(1)
        self._tasks: list[NumberedTask] = []
        self.troubles: list[str] = []
        """What nobody caught."""
        self.rounds = 0
        self._is_ending = False
        self._lives: dict[Life, None] = {}
        self._at_work: Life | None = None

    # Time

    def time(self) -> float:
        """Seconds since it began, by a clock that does not go back."""
        return self._elapsed

    def wall(self) -> float:
        """The time of day."""
        return self._began + self._elapsed

    # What is to be done

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context  # an empty one is falsy
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((context.get(_living), handle))
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context  # an empty one is falsy
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), context.get(_living), handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None: ...

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: object = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        task = NumberedTask(coro, loop=self, name=None if name is None else str(name), context=context)
        task.number = next(self._numbers)
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, _executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """There are no threads: it is done at once."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as a thread would say it
            done.set_exception(error)
        return done

    # Lives

    @contextmanager
    def within(self, life: Life | None) -> Iterator[None]:
        """What is begun in here belongs to a life."""
        if life is not None:
            self._lives.setdefault(life)
        token = _living.set(life)
        try:
            yield
        finally:
            _living.reset(token)

    def let_go_on(self, life: Life) -> None:
        """Whoever was held up notices nothing but the time."""
        life.is_held_up = False
        self._ready += [(life, handle) for handle in life.missed]
        life.missed = []

    # Going on

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Until it is over; what is left then is thrown away, as the end of a process does it."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main)
            while not task.done():
                self._round()
            return task.result()
        finally:
            self._throw_away()
            asyncio._set_running_loop(None)

    def _round(self) -> None:
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            raise AssertionError("It goes on and on.")
        if not self._ready:
            self._wait()
        now, self._ready = self._ready, []
        if len(now) > 1:
            self._random.shuffle(now)
        for life, handle in now:
            if handle.cancelled():
                continue
            if life is not None and (life.is_over or life.is_held_up):
                life.missed.append(handle)
            else:
                self._at_work = life
                handle._run()

    def _wait(self) -> None:
        timers = self._timers
        while timers and (timers[0][3].cancelled() or (timers[0][2] is not None and timers[0][2].is_over)):
            heapq.heappop(timers)
        if not timers:
            raise AssertionError("Everybody waits, and nothing will ever happen.")
        self._elapsed = max(self._elapsed, timers[0][0])
        while timers and timers[0][0] <= self._elapsed:
            _, _, life, handle = heapq.heappop(timers)
            self._ready.append((life, handle))

    def _throw_away(self) -> None:
        """Nothing of it matters any more, but what is open has to be closed by whoever opened it."""
        self._is_ending = True
        self._ready += [(None, handle) for life in self._lives for handle in life.missed]
        for _ in range(_FAREWELLS):
            left = [task for task in self._tasks if not task.done()]
            if not left:
                break
            for task in left:
                task.cancel()
            for _ in range(_FAREWELLS):
                now, self._ready = self._ready, []
                for _life, handle in now:
                    handle._run()
        self._tasks.clear()
        self._timers.clear()

    # What others ask a loop

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._is_ending:
            return
        if self._at_work is None or not self._at_work.is_over:
            self.troubles.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
