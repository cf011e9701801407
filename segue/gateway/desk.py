"""Where messages arrive: each is put down before anybody is told so. Those that come at once share a commit.

What arrives goes before everything else: it is put down as soon as it is there, and answers wait.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from segue.agent.door import Access, Asked, Door, Hand, Pen, Wish
from segue.agent.rounds import Promptly
from segue.core.errors import InvalidSource, StoreError
from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.keys import place_of
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.hookspecs import MessageReceived, Tell, nobody
from segue.ports.failpoints import Point, reached
from segue.sessions.accepting import Accepted, withdraw
from segue.sessions.admitting import Ignored, Routing, admit_all, is_heard, is_welcome
from segue.sessions.learning import learn

MOST_AT_ONCE = 64

Outcome = Accepted | Ignored

_log = logging.getLogger(__name__)


class Desk:
    """Takes in what platforms bring."""

    def __init__(self, door: Door, routing: Routing, accepted: Callable[[Accepted], None], tell: Tell = nobody) -> None:
        self._door = door
        self._tell = tell
        self._routing = routing
        self._accepted = accepted
        hand = Hand("segue-desk", self._put_down, MOST_AT_ONCE)
        self._clerk: Asked = Pen(hand, self._put_down_at_once, Promptly()) if door.store.is_near else hand
        self._open: set[asyncio.Future[Outcome]] = set()
        self.is_open = True

    async def receive(self, inbound: Inbound) -> Receipt:
        """Take a message in. It is safe when this returns, and when it raises it is not."""
        if not self.is_open:
            raise StoreError("The gateway takes nothing in at the moment; try again.")
        began = time.monotonic()
        try:
            receipt = await self._take_in(inbound)
        except StoreError as error:
            self._door.tell_failure(Access.WRITE, error)
            raise
        self._door.tell_success(Access.WRITE, began)
        self._tell(MessageReceived(inbound.source.platform, receipt, time.monotonic() - began))
        return receipt

    async def _take_in(self, inbound: Inbound) -> Receipt:
        try:
            place_of(inbound.source, self._routing.keys)
        except InvalidSource as error:
            where = f"{inbound.source.platform}, chat {inbound.source.chat_id or inbound.source.peer}"
            _log.error("Message of %s ignored, because it belongs to no lane: %s", one_line(where), error)
            return Receipt.IGNORED  # brought again it would be the same
        put_down = self._clerk.ask(self._door.scope, (inbound, time.time()))
        self._open.add(put_down)
        put_down.add_done_callback(self._settled)
        return _receipt(await asyncio.shield(put_down))

    async def learn(self, source: SessionSource) -> None:
        """What is told of a place: its lanes know it from now on."""
        await self._door.write(learn, source)

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        """Somebody has deleted what they said."""
        await self._door.write(withdraw, source, message_id, time.time())

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        """Whether what somebody says is answered."""
        return await self._door.read(is_heard, source, self._routing, is_mention=is_mention)

    async def is_welcome(self, source: SessionSource) -> bool:
        """Whether somebody may bring us into a chat."""
        return await self._door.read(is_welcome, source, self._routing)

    async def advance(self, platform: str, account: str, cursor: Cursor) -> None:
        """A platform has been read so far."""
        await self._door.write(lambda tx: tx.inbox.move_cursor(platform, account, cursor.name, cursor.value))

    async def cursor(self, platform: str, account: str, name: str) -> str | None:
        return await self._door.read(lambda tx: tx.inbox.cursor(platform, account, name))

    async def close(self) -> None:
        """Take nothing more in; what is being put down is put down."""
        self.is_open = False
        if self._open:
            await asyncio.wait(self._open)
        await asyncio.to_thread(self._clerk.close)

    def _settled(self, put_down: "asyncio.Future[Outcome]") -> None:
        """It is noticed also when nobody waits for it any more."""
        self._open.discard(put_down)
        if put_down.cancelled() or put_down.exception() is not None:
            return
        outcome = put_down.result()
        if isinstance(outcome, Accepted):
            self._accepted(outcome)

    def _put_down_at_once(self, wishes: Sequence[Wish]) -> list[Outcome | BaseException]:
        """As `_put_down`, if nobody has to be waited for; nothing otherwise."""
        reached(Point.BEFORE_ACCEPT)
        arrived = [wish.work for wish in wishes]
        admit = partial(admit_all, arrived=arrived, routing=self._routing)
        for outcomes in self._door.store.write_at_once(self._door.scope, [admit]):
            if not isinstance(outcomes, Exception):
                reached(Point.AFTER_ACCEPT)
                return [*outcomes]
        return []

    # In a thread

    def _put_down(self, wishes: Sequence[Wish]) -> list[Outcome | BaseException]:
        """What comes at once shares a commit. The store's trouble is everybody's, any other that of one message."""
        reached(Point.BEFORE_ACCEPT)
        arrived = [wish.work for wish in wishes]
        try:
            outcomes: list[Outcome | BaseException] = [
                *self._door.store.write(self._door.scope, admit_all, arrived, self._routing)
            ]
        except StoreError as error:
            return [error] * len(wishes)
        except Exception as error:  # noqa: BLE001 - nobody may wait for ever, whatever it was
            return [error] if len(wishes) == 1 else [self._put_down([wish])[0] for wish in wishes]
        reached(Point.AFTER_ACCEPT)
        return outcomes


def _receipt(outcome: Outcome) -> Receipt:
    if isinstance(outcome, Ignored):
        return Receipt.IGNORED
    if not outcome.is_new:
        return Receipt.KNOWN
    return Receipt.REFUSED if outcome.is_refused else Receipt.ACCEPTED
