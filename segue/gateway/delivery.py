"""What is to be sent is sent: in order within a chat, side by side in several, and marked before and after."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from segue.agent.door import Door
from segue.core.errors import StoreError
from segue.core.outbox import Letter, OutboxState, What
from segue.hookspecs import ReplyDelivered, Tell, nobody
from segue.ports.failpoints import Point, reached
from segue.ports.platform import Platform, Post, SendLater, SendRefused, SendUnknown
from segue.ports.store import Transaction
from segue.sessions import delivering
from segue.sessions.delivering import MOST_ATTEMPTS, pause_after

LOOK_SECONDS = 1.0
MOST_CHATS = 32
MARK = "(sent again) "
"""Before what may be there twice, where a platform cannot tell."""

_log = logging.getLogger(__name__)


class Delivery:
    """Sends what is for one platform."""

    def __init__(self, door: Door, platform: Platform, tell: Tell = nobody) -> None:
        self._door = door
        self._tell = tell
        self._platform = platform
        self._chats: dict[str, deque[Letter]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._known: set[int] = set()
        self._woken = asyncio.Event()
        self._free = asyncio.Semaphore(MOST_CHATS)

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Send what there is, until cancelled. Nobody else sends for this platform now."""
        await self._trying(lambda: self._door.write(self._doubt))
        try:
            while True:
                self._woken.clear()
                await self._trying(self._collect)
                await _either(self._woken, LOOK_SECONDS)
        finally:
            for sender in self._senders.values():
                sender.cancel()
            if self._senders:
                await asyncio.wait(self._senders.values())

    def is_idle(self) -> bool:
        return not self._senders

    def _doubt(self, tx: Transaction) -> None:
        tx.outbox.doubt_sending(self._platform.name, self._platform.account)

    async def _collect(self) -> None:
        name, account = self._platform.name, self._platform.account
        for letter in await self._door.read(lambda tx: tx.outbox.unsent(name, account)):
            if letter.id not in self._known:
                self._known.add(letter.id)
                self._chats.setdefault(letter.chat, deque()).append(letter)
        for chat in list(self._chats):
            if chat not in self._senders:
                self._senders[chat] = asyncio.create_task(self._send_all(chat))

    async def _send_all(self, chat: str) -> None:
        """Everything for a chat, one after another: what cannot be sent now keeps back what comes behind it."""
        waiting = self._chats[chat]
        try:
            while waiting:
                if (pause := waiting[0].not_before - time.time()) > 0:
                    await asyncio.sleep(min(pause, LOOK_SECONDS))
                    continue
                async with self._free:
                    is_done = await self._send(waiting)
                if is_done:
                    self._known.discard(waiting.popleft().id)
        finally:
            self._senders.pop(chat, None)
            if not waiting:
                self._chats.pop(chat, None)

    async def _send(self, waiting: "deque[Letter]") -> bool:
        """Try to send the first; whether it is dealt with."""
        try:
            return await self._attempt(waiting, waiting[0])
        except StoreError as error:
            _log.warning("What was sent cannot be noted; it is tried again: %s", error)
            await asyncio.sleep(LOOK_SECONDS)
            return False

    async def _attempt(self, waiting: "deque[Letter]", letter: Letter) -> bool:
        before = letter.state
        reached(Point.BEFORE_SENDING)
        begun = await self._door.write(delivering.begin_sending, letter, has_key=self._platform.traits.has_key)
        if begun is None:
            return True
        letter = waiting[0] = begun
        reached(Point.AFTER_SENDING_BEGINS)
        text = MARK + letter.text if letter.is_repeat else letter.text
        try:
            sent = await self._platform.send(Post(letter.source, text, letter.key, letter.reply_to))
        except SendLater as error:
            at = time.time() + (error.seconds if error.seconds is not None else pause_after(letter.attempts))
            await self._door.write(delivering.put_back, letter, before, str(error), at)
            waiting[0] = letter._replace(state=before, not_before=at)
            return False
        except SendUnknown as error:
            return await self._doubted(waiting, letter, str(error))
        except SendRefused as error:
            await self._door.write(delivering.give_up_letter, letter, str(error), time.time())
            _log.warning("A reply cannot be delivered on %s: %s", self._platform.name, error)
            return True
        reached(Point.AFTER_SENT)
        await self._door.write(delivering.end_sending, letter, sent.message_id, time.time())
        reached(Point.AFTER_DELIVERED)
        if letter.what == What.REPLY:
            self._tell(_delivered(letter, sent.message_id))
        return True

    async def _doubted(self, waiting: "deque[Letter]", letter: Letter, reason: str) -> bool:
        if letter.attempts >= MOST_ATTEMPTS:
            await self._door.write(delivering.give_up_letter, letter, reason, time.time())
            return True
        at = time.time() + pause_after(letter.attempts)
        await self._door.write(delivering.doubt, letter, reason, at)
        waiting[0] = letter._replace(state=OutboxState.UNKNOWN, not_before=at)
        return False

    async def _trying(self, act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except StoreError as error:
            _log.warning("The store does not answer; it is tried again: %s", error)


def _delivered(letter: Letter, message_id: str | None) -> ReplyDelivered:
    turn_id, chat = letter.turn_id, letter.chat
    return ReplyDelivered(letter.lane_key, letter.session_id, turn_id, letter.platform, chat, message_id)


async def _either(woken: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(woken.wait(), seconds)
    except TimeoutError:
        return
