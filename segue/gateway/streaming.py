"""An answer that people read while it is written, and the sign that somebody writes.

Nothing here keeps the agent waiting. What it says is put down; a task of its turn looks at the latest of it when the
time has come, and shows it. What cannot be shown is left out: the complete answer is delivered like any other.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from segue.agent.door import Door
from segue.core.chunks import MEASURES
from segue.core.errors import LeaseLost, StoreError
from segue.core.events import Event, ModelCalled, Reply, Text
from segue.core.inbox import Entry, chat_of
from segue.core.leases import Lease
from segue.core.outbox import Letter, What
from segue.core.streaming import Shown, Streaming, Wait, show
from segue.gateway.at_work import logged_for
from segue.gateway.delivery import Delivery, name_of
from segue.ports.failpoints import Point, reached
from segue.ports.platform import Platform, Post, SendFailed, SendLater, SendRefused
from segue.sessions import drafting
from segue.sessions.answering import Begun
from segue.sessions.delivering import Envelope, Posting, envelope_of, held_back, room_on
from segue.sessions.drafting import Drafted, Unshown

NAP = 0.02
"""Seconds between two looks, however many words come meanwhile."""
TYPING_SECONDS = 4.0
"""How soon platforms forget that somebody writes."""
LONGEST_ACT = 30.0
"""Seconds after which a platform that does not answer is not waited for."""
SHORTEST_PAUSE = 0.1
"""Seconds after something could not be shown."""
LEAVING_SECONDS = 2.0
"""For what is just being shown when a gateway ends."""
LONGEST_REST = 1.0
"""Seconds that a complete answer waits at most because its message was edited just now."""

_log = logging.getLogger(__name__)

Show = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an answer is shown, and by which right."""

    door: Door
    delivery: Delivery
    posting: Posting
    envelope: Envelope
    lease: Lease

    @property
    def platform(self) -> Platform:
        return self.delivery.platform


class Streams:
    """The answers of a gateway that are being written."""

    def __init__(
        self,
        door: Door,
        posting: Posting,
        delivery: Callable[[str, str], Delivery | None],
        streaming: Callable[[str], Streaming],
    ) -> None:
        self._door = door
        self._posting = posting
        self._delivery = delivery
        """Of a platform and an account."""
        self._streaming = streaming
        """Of a platform."""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def showing(self, entry: Entry | None, begun: Begun, lease: Lease) -> Iterator[Show]:
        """Show what happens in a turn to whoever wrote a message, for as long as it runs."""
        stream = self._stream(entry, begun, lease) if entry else None
        if stream is None:
            yield _nothing_shown
            return
        typing = self._start(stream, stream.type()) if stream.spot.platform.traits.shows_typing else None
        self._start(stream, stream.run())
        try:
            yield stream.show
        finally:
            stream.close()
            if typing is not None:
                typing.cancel()

    async def close(self) -> None:
        """Every turn is over, or left to others: wait until nothing is being shown any more."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVING_SECONDS)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _stream(self, entry: Entry, begun: Begun, lease: Lease) -> "Stream | None":
        delivery = self._delivery(entry.platform, entry.account)
        if delivery is None:
            return None
        turn = begun.situation.turn
        envelope = envelope_of(entry, f"{turn.id}:reply", turn.session_id, turn.id)
        if held_back(self._posting, envelope, What.REPLY, begun.preferences.send):
            return None
        return Stream(Spot(self._door, delivery, self._posting, envelope, lease), self._streaming(entry.platform))

    def _start(self, stream: "Stream", work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, stream.spot.envelope))
        return task

    def _ended(self, about: Envelope, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        with logged_for(about.lane_key, about.session_id):
            _log.warning("Answer not shown while it is written; it is delivered when complete", exc_info=error)


class Stream:
    """The answer of one turn."""

    def __init__(self, spot: Spot, streaming: Streaming) -> None:
        self.spot = spot
        self._streaming = streaming
        self._said = ""
        self._part = 0
        """Which answer of the model it is: a turn has another one after each use of tools."""
        self._is_part_over = True
        self._shown = Shown(0.0)
        self._letter: Letter | None = None
        self._not_before = 0.0
        self._woken = asyncio.Event()
        self._is_closed = not (streaming.is_enabled and spot.platform.traits.can_edit)
        self._chat = chat_of(spot.envelope.source)

    def show(self, event: Event) -> None:
        """Take in what happens. It is shown later, or never."""
        match event:
            case Text(text):
                if self._is_part_over:
                    self._begin_part()
                self._said += text
            case Reply(text, calls):
                self._said = text if calls else ""  # what ends the turn is delivered
                self._is_part_over = True
            case ModelCalled():
                self._is_part_over = True
            case _:
                return
        self._woken.set()

    def close(self) -> None:
        """Begin to show nothing more."""
        self._is_closed = True
        self._woken.set()

    async def run(self) -> None:
        """Show the latest, again and again."""
        while not self._is_closed:
            self._woken.clear()
            until = await self._look()
            await asyncio.sleep(NAP)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._woken.wait()

    async def type(self) -> None:
        """Show that somebody writes, until there is something to read."""
        while not self._shown.text:
            if not self.spot.delivery.is_running:
                await asyncio.sleep(SHORTEST_PAUSE)  # it has just begun, or another gateway sends there
                continue
            with suppress(Exception):  # whatever it is, it does not matter whether this works
                async with asyncio.timeout(TYPING_SECONDS):
                    await self.spot.platform.typing(self.spot.envelope.source)
            await asyncio.sleep(TYPING_SECONDS)

    def _begin_part(self) -> None:
        self._said = ""
        self._part += 1
        self._is_part_over = False
        begun_at = self._shown.at if self._shown.text else _now()
        self._shown = self._shown._replace(at=begun_at, length=0)

    def _decide(self) -> Shown | Wait:
        now, traits = _now(), self.spot.platform.traits
        if now < self._not_before or not self.spot.delivery.is_running:
            return Wait(max(self._not_before, now + SHORTEST_PAUSE))
        return show(self._said, self._shown, now, self._streaming, room_on(traits), MEASURES[traits.units])

    async def _look(self) -> float | None:
        """Show the latest if it is time to; when that is the case otherwise, if nothing more comes."""
        decided = self._decide()
        if isinstance(decided, Wait):
            self._not_before = max(self._not_before, decided.not_before)
            return decided.until
        async with self.spot.delivery.alone_in(self._chat):
            decided = self._decide()  # while others sent something there, more has come
            if isinstance(decided, Shown) and not self._is_closed:
                await self._show(decided)
        return _now()

    async def _show(self, decided: Shown) -> None:
        part = self._part
        try:
            is_shown = await self._act(decided.text)
        except (SendFailed, TimeoutError, StoreError, LeaseLost) as error:
            self._leave_out(error)
        else:
            if is_shown:
                self._shown = Shown(_now(), decided.text, decided.length if part == self._part else 0)
                self.spot.delivery.rest(self._chat, min(self._streaming.edit_interval, LONGEST_REST))

    async def _act(self, text: str) -> bool:
        """Send the beginning, or let the message that was sent say more; whether that was possible."""
        if self._letter is not None and self._letter.message_id is not None:
            return await self._say_more(self._letter, text)
        spot, has_key = self.spot, self.spot.platform.traits.has_key
        reached(Point.BEFORE_DRAFT)
        drafted = await spot.door.write(
            drafting.begin_draft, spot.lease, spot.posting, spot.envelope, text, time.time(), has_key=has_key
        )
        if isinstance(drafted, Unshown):
            self._pause() if drafted is Unshown.YET else self.close()
            return False
        reached(Point.AFTER_DRAFT)
        self._letter = drafted.letter
        if drafted.letter.message_id is not None:  # an earlier life has begun to show it
            return await self._say_more(drafted.letter, text)
        return await self._send(drafted, text)

    async def _send(self, drafted: Drafted, text: str) -> bool:
        spot, letter = self.spot, drafted.letter
        try:
            async with asyncio.timeout(LONGEST_ACT):
                sent = await spot.platform.send(_post(letter, text))
        except (SendLater, SendRefused):
            self._letter = None
            if drafted.is_new:
                await spot.delivery.door.write(drafting.note_unshown, spot.lease, letter.id)
            raise
        reached(Point.AFTER_SHOWN)
        message_id = name_of(sent)
        await spot.door.write(drafting.note_shown, letter.id, message_id)
        self._letter = letter._replace(message_id=message_id)
        reached(Point.AFTER_SHOWN_IS_NOTED)
        return True

    async def _say_more(self, letter: Letter, text: str) -> bool:
        spot = self.spot
        assert letter.message_id is not None
        if not await spot.door.read(drafting.may_show_more, spot.lease, letter.id):
            self.close()
            return False
        async with asyncio.timeout(LONGEST_ACT):
            await spot.platform.edit(_post(letter, text), letter.message_id)
        reached(Point.AFTER_SHOWN_MORE)
        return True

    def _leave_out(self, error: Exception) -> None:
        """What could not be shown is not missed: more of it is shown later, or all of it in the end."""
        if isinstance(error, SendRefused | LeaseLost):
            self.close()
        elif isinstance(error, SendLater):
            self._pause(error.seconds)
            self.spot.delivery.rest(self._chat, error.seconds or SHORTEST_PAUSE)
        elif self._letter is None or self._letter.message_id is not None or self.spot.platform.traits.has_key:
            self._pause()
        else:
            self.close()  # it may be there, and nobody knows its name

    def _pause(self, seconds: float | None = None) -> None:
        self._not_before = _now() + max(seconds or SHORTEST_PAUSE, self._streaming.edit_interval)


def _post(letter: Letter, text: str) -> Post:
    return Post(letter.source, text, letter.key, letter.reply_to)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _nothing_shown(_event: Event) -> None: ...
