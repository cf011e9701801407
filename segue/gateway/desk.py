"""Where messages arrive: each is put down before anybody is told so. Those that come at once share a commit."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from segue.agent.door import Door
from segue.core.errors import InvalidSource, StoreError
from segue.core.inbound import Inbound, Receipt
from segue.core.keys import place_of
from segue.core.sources import SessionSource
from segue.ports.failpoints import Point, reached
from segue.sessions.accepting import Accepted
from segue.sessions.admitting import Ignored, Routing, admit_all
from segue.sessions.learning import learn

MOST_AT_ONCE = 256

_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    inbound: Inbound
    at: float
    done: "asyncio.Future[Receipt]"


class Desk:
    """Takes in what platforms bring."""

    def __init__(self, door: Door, routing: Routing, accepted: Callable[[Accepted], None]) -> None:
        self._door = door
        self._routing = routing
        self._accepted = accepted
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self.is_open = True

    async def receive(self, inbound: Inbound) -> Receipt:
        """Take a message in. It is safe when this returns, and when it raises it is not."""
        if not self.is_open:
            raise StoreError("The gateway takes nothing in at the moment; try again.")
        try:
            place_of(inbound.source, self._routing.keys)
        except InvalidSource as error:
            _log.error("A message that can have no lane was left aside: %s", error)
            return Receipt.IGNORED  # brought again it would be the same
        waiting = _Waiting(inbound, time.time(), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await waiting.done

    async def learn(self, source: SessionSource) -> None:
        """What is told of a place: its lanes know it from now on."""
        await self._door.write(learn, source)

    async def cursor(self, platform: str, account: str, name: str) -> str | None:
        return await self._door.read(lambda tx: tx.inbox.cursor(platform, account, name))

    async def close(self) -> None:
        """Take nothing more in; what is being put down is put down."""
        self.is_open = False
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            reached(Point.BEFORE_ACCEPT)
            try:
                outcomes = await self._door.write(admit_all, [one[:2] for one in batch], self._routing)
            except Exception as error:  # noqa: BLE001 - nobody may wait for ever, whatever it was
                await self._one_by_one(batch, error)
                continue
            reached(Point.AFTER_ACCEPT)
            for one, outcome in zip(batch, outcomes, strict=True):
                self._settle(one, outcome)

    async def _one_by_one(self, batch: list[_Waiting], error: Exception) -> None:
        """What cannot be put down together: the store's trouble is everybody's, any other that of one message."""
        for one in batch:
            if isinstance(error, StoreError) or len(batch) == 1:
                _fail(one, error)
                continue
            try:
                outcomes = await self._door.write(admit_all, [one[:2]], self._routing)
            except Exception as own:  # noqa: BLE001 - as above
                _fail(one, own)
            else:
                self._settle(one, outcomes[0])

    def _settle(self, one: _Waiting, outcome: Accepted | Ignored) -> None:
        if isinstance(outcome, Accepted):
            self._accepted(outcome)
        if not one.done.done():
            one.done.set_result(_receipt(outcome))


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.done.done():
        one.done.set_exception(error)


def _receipt(outcome: Accepted | Ignored) -> Receipt:
    if isinstance(outcome, Ignored):
        return Receipt.IGNORED
    if not outcome.is_new:
        return Receipt.KNOWN
    return Receipt.REFUSED if outcome.is_refused else Receipt.ACCEPTED
