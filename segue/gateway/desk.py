"""Where messages arrive: each is put down before anybody is told so. Those that come at once share a commit."""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from segue.agent.door import Door
from segue.core.errors import StoreError
from segue.core.inbound import Inbound, Receipt
from segue.core.inbox import Entry, Want, entry_of
from segue.core.keys import KeyRules, build_key, place_of
from segue.core.principals import principal_of, scope_in
from segue.core.queueing import QueueRules
from segue.ports.failpoints import Point, reached
from segue.sessions.accepting import Accepted, Arrived, accept_all

MOST_AT_ONCE = 256


class Routing(NamedTuple):
    """The rules by which a message finds its lane."""

    keys: KeyRules
    queue: Callable[[str], QueueRules]
    """Of a platform."""
    agent: Callable[[Inbound], str]
    """Who answers it."""
    want: Callable[[Inbound], Want]


class _Waiting(NamedTuple):
    arrived: Arrived
    done: "asyncio.Future[Accepted]"


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
        entry = self._entry(inbound)
        rules = self._routing.queue(inbound.source.platform)
        waiting = _Waiting(Arrived(entry, rules, inbound.cursor), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        accepted = await waiting.done
        return _receipt(accepted)

    async def cursor(self, platform: str, account: str, name: str) -> str | None:
        return await self._door.read(lambda tx: tx.inbox.cursor(platform, account, name))

    async def close(self) -> None:
        """Take nothing more in; what is being put down is put down."""
        self.is_open = False
        if self._writing is not None:
            await asyncio.wait({self._writing})

    def close_door(self) -> None:
        self._door.close()

    def _entry(self, inbound: Inbound) -> Entry:
        source, keys = inbound.source, self._routing.keys
        place, person = place_of(source, keys, self._routing.agent(inbound)), principal_of(source, keys)
        scope = scope_in(place, person)
        entry = entry_of(inbound, build_key(place), scope.principal, scope.room or "", person, time.time())
        return entry._replace(want=self._routing.want(inbound))

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            reached(Point.BEFORE_ACCEPT)
            try:
                accepted = await self._door.write(accept_all, [one.arrived for one in batch])
            except StoreError as error:
                _fail(batch, error)
                continue
            reached(Point.AFTER_ACCEPT)
            for one, done in zip(batch, accepted, strict=True):
                self._accepted(done)
                if not one.done.done():
                    one.done.set_result(done)


def _fail(batch: list[_Waiting], error: StoreError) -> None:
    for one in batch:
        if not one.done.done():
            one.done.set_exception(error)


def _receipt(accepted: Accepted) -> Receipt:
    if not accepted.is_new:
        return Receipt.KNOWN
    return Receipt.REFUSED if accepted.is_refused else Receipt.ACCEPTED
