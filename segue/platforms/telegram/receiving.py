"""Updates are passed on, one after another. Each is put down before the place moves up to which Telegram was read.

An album comes as several messages of which one has words. When that is addressed to us all of them are, whichever comes
first and whatever happens in between: so the albums that were are put down, too.
"""

import logging
from collections.abc import Sequence
from typing import Any

from segue.core.inbound import Cursor
from segue.platforms.telegram.failing import TelegramFailed
from segue.platforms.telegram.fetching import Fetch
from segue.platforms.telegram.fields import number_of
from segue.platforms.telegram.inbound import Message, Moved, Ourselves, Renamed, read_update
from segue.ports.platform import Intake

UPDATES = "updates"
"""How far Telegram was read: the number of the last update that was dealt with."""
ALBUMS = "albums"
MOST_ALBUMS = 20

_log = logging.getLogger(__name__)

_Read = Message | Renamed | Moved | None


class Receiving:
    """Takes updates in for one connection."""

    def __init__(self, intake: Intake, us: Ourselves, fetch: Fetch, albums: Sequence[str] = ()) -> None:
        self._intake = intake
        self._us = us
        self._fetch = fetch
        self._albums = list(albums)

    async def take_all(self, updates: Sequence[Any]) -> None:
        """What came at once, in order; when this returns, the place is behind the last."""
        read = [(number_of(one, "update_id"), self._read(one)) for one in updates if isinstance(one, dict)]
        for _, told in read:
            await self._note_album(told)
        for number, told in read:
            if number is not None:
                await self.take(told, Cursor(UPDATES, str(number)))
        last = next((str(number) for number, _ in reversed(read) if number is not None), None)
        if updates and last is None:
            raise TelegramFailed("Telegram brings updates without a number, so that they would come for ever.")
        if last is not None and await self._intake.cursor(UPDATES) != last:
            await self._intake.advance(Cursor(UPDATES, last))

    async def take_one(self, update: Any) -> None:
        """What is brought, and brought again if this raises."""
        told = self._read(update) if isinstance(update, dict) else None
        await self._note_album(told)
        await self.take(told, None)

    async def take(self, told: _Read, cursor: Cursor | None) -> None:
        match told:
            case Message(inbound, media, album):
                is_mention = inbound.is_mention or album in self._albums
                is_heard = media is not None and await self._intake.is_heard(inbound.source, is_mention=is_mention)
                files = (await self._fetch(media),) if media is not None and is_heard else ()
                await self._intake.receive(inbound._replace(files=files, is_mention=is_mention, cursor=cursor))
                return
            case Renamed(source):
                await self._intake.learn(source)
            case Moved(old, new):
                _log.info("The group %s on Telegram has become %s, and is another chat from now on.", old, new)
        if cursor is not None:
            await self._intake.advance(cursor)

    async def _note_album(self, told: _Read) -> None:
        if not isinstance(told, Message) or told.album is None or not told.inbound.is_mention:
            return
        if told.inbound.source.chat_type != "dm" and told.album not in self._albums:
            self._albums = [*self._albums, told.album][-MOST_ALBUMS:]
            await self._intake.advance(Cursor(ALBUMS, " ".join(self._albums)))

    def _read(self, update: dict[str, Any]) -> _Read:
        """What an update tells. One that cannot be read must not stand before all others for ever."""
        try:
            return read_update(update, self._us)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            _log.warning("An update of Telegram cannot be read, and is left aside: %s", type(error).__name__)
            return None
