"""The way to the store for whoever is connected with a platform: once somebody else is, nothing more gets through."""

from collections.abc import Callable
from copy import copy
from typing import Concatenate, ParamSpec, TypeVar

from segue.agent.door import Door
from segue.core.errors import LeaseLost
from segue.core.leases import Lease
from segue.ports.store import Transaction
from segue.sessions.leasing import hold, is_ours

P = ParamSpec("P")
T = TypeVar("T")


class FencedDoor(Door):
    """Every transaction makes sure that a lease is still ours."""

    def __init__(self, door: Door) -> None:
        vars(self).update(vars(copy(door)))
        self.lease: Lease | None = None

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        def fenced(tx: Transaction) -> T:
            if self.lease is not None:
                hold(tx, self.lease)
            return work(tx, *args, **kwargs)

        return await super().write(fenced)

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await super().read(self._ours, work, *args, **kwargs)

    async def glance(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await super().glance(self._ours, work, *args, **kwargs)

    def _ours(
        self, tx: Transaction, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.lease is not None and not is_ours(tx, self.lease):
            raise LeaseLost("Another gateway is connected there now.")
        return work(tx, *args, **kwargs)
