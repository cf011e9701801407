"""The way from asynchronous code to the store: a thread of its own, and a transaction that outlives cancellation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from segue.core.scope import Scope
from segue.ports.store import Store, Transaction

P = ParamSpec("P")
T = TypeVar("T")


class Door:
    """A store, awaited. Whoever is cancelled while a transaction runs still waits for its end."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store = store
        self.scope = scope
        self._thread = ThreadPoolExecutor(1, "segue-store")

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._through(partial(self.store.write, self.scope, work, *args, **kwargs))

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._through(partial(self.store.read, self.scope, work, *args, **kwargs))

    def under(self, scope: Scope) -> "Door":
        """The same way, for somebody who may see less."""
        narrower = copy(self)
        narrower.scope = scope
        return narrower

    def close(self) -> None:
        self._thread.shutdown()

    async def _through(self, act: Callable[[], T]) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._thread, act)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not running.cancelled():
                await asyncio.wait({running})  # what has begun is committed or not, and never half known
            raise
