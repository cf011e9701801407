"""What is to be sent is sent: in order within a chat, side by side in several, and marked before and after."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from segue.agent.door import Door
from segue.core.errors import LeaseLost, StoreError
from segue.core.outbox import Letter, OutboxState, What
from segue.core.text import storable
from segue.gateway.at_work import logged_for
from segue.gateway.outages import log_store_error
from segue.hookspecs import ReplyDelivered, SendTried, Tell, nobody
from segue.ports.failpoints import Point, reached
from segue.ports.platform import Platform, Post, SendLater, SendRefused, SendUnknown, Sent
from segue.ports.store import Transaction
from segue.sessions import delivering
from segue.sessions.delivering import MOST_ATTEMPTS, as_reason, marked, pause_after

LOOK_SECONDS = 1.0
MOST_CHATS = 32
MANY = 500
"""So much waits to be sent already that what comes next is found soon enough."""
LONGEST_SEND = 60.0
"""Seconds after which a platform that does not answer is not waited for."""

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


class TriedAs(StrEnum):
    """What came of giving something to a platform."""

    DELIVERED = "delivered"
    LATER = "later"
    UNKNOWN = "unknown"
    REFUSED = "refused"


class _EditRefused(SendRefused):
    """The message that is to say it is not there any more, or stays as it is."""


class Delivery:
    """Sends what is for one platform."""

    def __init__(self, door: Door, platform: Platform, tell: Tell = nobody) -> None:
        self.door = door
        """For whoever sends there. Nothing gets through when somebody else does."""
        self._tell = tell
        self._chats: dict[str, deque[Letter]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._known: set[int] = set()
        self._alone: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._rests: dict[str, float] = {}
        self._has_looked = False
        self._is_collecting = False
        self._woken = asyncio.Event()
        self._free = asyncio.Semaphore(MOST_CHATS)
        self.platform = platform
        self.begun = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether what is for this platform is sent by us, and by nobody else."""
        return self.begun.is_set()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Send what there is, until cancelled. Nobody else sends for this platform now."""
        await self._trying(lambda: self.door.write(self._doubt))
        self.begun.set()
        try:
            while True:
                self._woken.clear()
                await self._trying(self._collect)
                if len(self._known) > MANY:
                    await asyncio.sleep(LOOK_SECONDS)  # each look goes through all that waits
                await _either(self._woken, LOOK_SECONDS)
        finally:
            self.begun.clear()
            for sender in self._senders.values():
                sender.cancel()
            if self._senders:
                await asyncio.wait(self._senders.values())
            self._chats.clear()  # what has become of these, only the store knows from now on
            self._known.clear()

    def is_idle(self) -> bool:
        """True when everything that it was woken for has been looked for, and nothing is being sent."""
        is_looking = self.is_running and (self._is_collecting or self._woken.is_set())
        return not (is_looking or self._senders)

    @property
    def is_sending(self) -> bool:
        """True while something is on its way to the platform, or waits for its turn in a chat."""
        return bool(self._senders)

    def alone_in(self, chat: str) -> asyncio.Lock:
        """Held by whoever sends something to a chat or edits something there."""
        return self._alone.setdefault(chat, asyncio.Lock())

    def rest(self, chat: str, seconds: float) -> None:
        """Something was shown in a chat just now, or could not be: for so long nothing is sent there."""
        self._rests[chat] = time.monotonic() + seconds

    def _doubt(self, tx: Transaction) -> None:
        tx.outbox.doubt_sending(self.platform.name, self.platform.account)

    async def _collect(self) -> None:
        """Find what is to be sent and not known yet, and begin to send it."""
        self._is_collecting = True
        try:
            await self._find()
        finally:
            self._is_collecting = False

    async def _find(self) -> None:
        known = frozenset(self._known)
        name, account = self.platform.name, self.platform.account
        look = self.door.glance if self._has_looked and len(known) <= MANY else self.door.read
        for letter in await look(lambda tx: tx.outbox.unsent(name, account, known)):
            self._known.add(letter.id)
            self._chats.setdefault(letter.chat, deque()).append(letter)
        self._has_looked = True
        for chat in list(self._chats):
            if chat not in self._senders:
                self._senders[chat] = asyncio.create_task(self._send_all(chat))

    async def _send_all(self, chat: str) -> None:
        """Everything for a chat, one after another: what cannot be sent now keeps back what comes behind it."""
        waiting = self._chats[chat]
        try:
            while waiting:
                if (pause := max(waiting[0].not_before - time.time(), self._rest_of(chat))) > 0:
                    await asyncio.sleep(min(pause, LOOK_SECONDS))
                    continue
                async with self.alone_in(chat), self._free:
                    if self._rest_of(chat) > 0:  # something was shown there while this waited
                        continue
                    is_done = await self._send(waiting)
                if is_done:
                    self._known.discard(waiting.popleft().id)
        finally:
            self._senders.pop(chat, None)
            if not waiting:
                self._chats.pop(chat, None)

    def _rest_of(self, chat: str) -> float:
        rest = self._rests.get(chat, 0.0) - time.monotonic()
        if rest <= 0:
            self._rests.pop(chat, None)
        return rest

    async def _send(self, waiting: "deque[Letter]") -> bool:
        """Try to send the first; whether it is dealt with."""
        try:
            with logged_for(waiting[0].lane_key, waiting[0].session_id):
                return await self._attempt(waiting, waiting[0])
        except StoreError as error:
            with logged_for(waiting[0].lane_key, waiting[0].session_id):
                log_store_error(_log, f"State of a delivery on {self.platform.name} not stored, retrying", error)
            await asyncio.sleep(LOOK_SECONDS)
            return False
        except LeaseLost:
            self.wake()  # whoever collects finds it out, too, and ends this
            await asyncio.sleep(LOOK_SECONDS)
            return False

    async def _attempt(self, waiting: "deque[Letter]", letter: Letter) -> bool:
        reached(Point.BEFORE_SENDING)
        has_key = self.platform.traits.has_key
        leaving = await self.door.write(delivering.begin_sending, letter.id, has_key=has_key)
        if leaving is None:
            return True
        letter = waiting[0] = leaving.letter
        reached(Point.AFTER_SENDING_BEGINS)
        try:
            message_id = await self._hand_over(letter, leaving.was)
        except SendLater as error:
            self._tried(TriedAs.LATER)
            at = time.time() + max(pause_after(letter.attempts), error.seconds or 0.0)
            await self.door.write(delivering.put_back, letter, leaving.was, str(error), at)
            waiting[0] = letter._replace(state=leaving.was, not_before=at)
            return False
        except SendUnknown as error:
            self._tried(TriedAs.UNKNOWN)
            return await self._doubted(waiting, letter, str(error))
        except _EditRefused:
            waiting[0] = await self.door.write(delivering.send_anew, letter)
            return False
        except SendRefused as error:
            self._tried(TriedAs.REFUSED)
            await self.door.write(delivering.give_up_letter, letter, str(error), time.time())
            _log.warning("Reply not delivered, %s refuses it: %s", self.platform.name, as_reason(str(error)))
            return True
        reached(Point.AFTER_SENT)
        await self.door.write(delivering.end_sending, letter, message_id, time.time())
        reached(Point.AFTER_DELIVERED)
        self._tried(TriedAs.DELIVERED)
        if letter.what == What.REPLY:
            self._tell(_delivered(letter, message_id))
        return True

    def _tried(self, outcome: TriedAs) -> None:
        self._tell(SendTried(self.platform.name, outcome))

    async def _hand_over(self, letter: Letter, was: str) -> str | None:
        """Let the platform have it, as a message or as what a message says from now on; what it calls that."""
        text = marked(letter.text, self.platform.traits) if letter.is_repeat else letter.text
        post = Post(letter.source, text, letter.key, letter.reply_to, letter.attachment)
        message_id, may_say_less = letter.message_id, letter.is_shown
        if message_id is None:
            message_id = name_of(await _heard(self.platform.send, post))
            may_say_less = was == OutboxState.UNKNOWN and letter.is_shown and not letter.is_repeat
        if message_id is not None and may_say_less:
            try:
                await _heard(self.platform.edit, post, message_id)
            except SendRefused as error:
                raise _EditRefused(str(error)) from None
        return message_id

    async def _doubted(self, waiting: "deque[Letter]", letter: Letter, reason: str) -> bool:
        if letter.attempts >= MOST_ATTEMPTS:
            await self.door.write(delivering.give_up_letter, letter, reason, time.time())
            return True
        at = time.time() + pause_after(letter.attempts)
        await self.door.write(delivering.doubt, letter, reason, at)
        waiting[0] = letter._replace(state=OutboxState.UNKNOWN, not_before=at)
        return False

    async def _trying(self, act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except StoreError as error:
            log_store_error(_log, f"Outbox of {self.platform.name} not read, retrying", error)


async def _heard(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a platform says, in the words of the port: whatever else it raises, what it was given may have arrived."""
    try:
        async with asyncio.timeout(LONGEST_SEND) as limit:
            return await ask(*args, **kwargs)
    except (SendLater, SendUnknown, SendRefused):
        raise
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        trouble: BaseException = error  # of its own, and not ours
    except Exception as error:  # noqa: BLE001 - of an adapter anything may come, and the others go on
        trouble = error
    told = as_reason(f"{type(trouble).__name__}: {trouble}")
    if limit.expired():
        told = f"The platform did not answer within {LONGEST_SEND:g} seconds."
    _log.warning("Delivery may or may not have arrived, retrying: %s", told, exc_info=trouble)
    raise SendUnknown(told)


def name_of(sent: Sent) -> str | None:
    """What a platform calls a message, as it can be kept; some say it as a number, and some say nothing."""
    name = getattr(sent, "message_id", None)
    return None if name is None else storable(str(name))


def _delivered(letter: Letter, message_id: str | None) -> ReplyDelivered:
    turn_id, chat = letter.turn_id, letter.chat
    return ReplyDelivered(letter.lane_key, letter.session_id, turn_id, letter.platform, chat, message_id)


async def _either(woken: asyncio.Event, seconds: float) -> None:
    """Wait until woken, or for so long. Python 3.11's `wait_for` loses a cancellation that comes with the waking."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()
