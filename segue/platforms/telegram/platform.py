"""Telegram, through a bot: it is asked for what people say, or calls us, and is given what they are told.

The place up to which it was read is kept with what was read. Telegram is never told more than that, so what was not put
down comes again, whenever this program ends.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from telegram import BotCommand
from telegram.constants import ChatAction
from telegram.error import BadRequest, Forbidden, NetworkError, RetryAfter, TelegramError

from segue.core.commands import known
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.listening.server import CannotListen, serve
from segue.platforms.telegram import failing
from segue.platforms.telegram.fetching import fetch
from segue.platforms.telegram.inbound import KINDS, Ourselves
from segue.platforms.telegram.listening import Listening, door_of, until_one_ends
from segue.platforms.telegram.outbound import GENERAL, LONGEST, PLATFORM, target_of
from segue.platforms.telegram.receiving import ALBUMS, UPDATES, Receiving
from segue.platforms.telegram.sending import edit, send
from segue.platforms.telegram.settings import TelegramSettings, WebhookDoor
from segue.platforms.telegram.wire import Line
from segue.ports.files import Files
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits, Units

TRAITS = Traits(Arriving.CURSOR, longest=LONGEST, units=Units.UTF16, can_edit=True, can_attach=True, shows_typing=True)
WATCH_SECONDS = 60.0
"""Between two looks at whether Telegram still calls us."""
_MOST_COMMANDS = 100

_log = logging.getLogger(__name__)


class TelegramPlatform:
    """One bot."""

    def __init__(self, settings: TelegramSettings, files: Files) -> None:
        self.name = PLATFORM
        self.account = ""
        self.traits = TRAITS._replace(arriving=Arriving.ACK_GATED) if settings.webhook else TRAITS
        self.bot = ""
        """What people call us there; known when Telegram has said so."""
        self.port = settings.webhook.port if settings.webhook else 0
        """Where Telegram calls us; when any port that is free was wanted, the one that it was."""
        self._settings = settings
        self._files = files
        self._line = Line(settings)

    async def run(self, intake: Intake) -> None:
        try:
            async with self._line.opened():
                receiving = await self._met(intake)
                if self._settings.webhook is None:
                    await self._ask(intake, receiving)
                else:
                    await self._listen(intake, receiving, self._settings.webhook)
        except TelegramError as error:
            raise failing.of_listening(error) from None

    async def send(self, post: Post) -> Sent:
        async with self._sending():
            return await send(self._line, self._files, post)

    async def edit(self, post: Post, message_id: str) -> None:
        async with self._sending():
            await edit(self._line, post, message_id)

    async def typing(self, route: SessionSource) -> None:
        if route.chat_type == "channel":
            return  # where nobody is seen writing
        target = target_of(route)
        thread = 1 if route.thread_id == GENERAL else target.thread_id  # where nothing else is sent by that number
        with suppress(TelegramError):
            async with self._line.opened():
                await self._line.send_chat_action(target.chat_id, ChatAction.TYPING, thread)

    async def _met(self, intake: Intake) -> Receiving:
        """Find out who we are, and let people see what can be typed."""
        us = await self._line.get_me()
        self.bot = us.username or ""
        await self._show_commands()
        albums = (await intake.cursor(ALBUMS) or "").split()
        return Receiving(intake, Ourselves(us.id, self.bot), partial(fetch, self._line, self._files), albums)

    async def _ask(self, intake: Intake, receiving: Receiving) -> None:
        """Ask for what is new, again and again. The first time does not wait: it shows whether we may ask at all."""
        if (await self._line.get_webhook_info()).url:
            await self._line.delete_webhook(drop_pending_updates=False)
        seconds = 0
        while True:
            try:
                updates = await self._line.updates(_behind(await intake.cursor(UPDATES)), seconds, KINDS)
            except RetryAfter as error:
                await asyncio.sleep(failing.seconds_of(error))
                continue
            if not seconds:
                intake.connected()
            seconds = self._settings.poll_seconds
            await receiving.take_all(updates)

    async def _listen(self, intake: Intake, receiving: Receiving, settings: WebhookDoor) -> None:
        """Be called."""
        with door_of(settings) as door:
            self.port = door.getsockname()[1]
            await self._line.set_webhook(
                settings.url, allowed_updates=KINDS, drop_pending_updates=False, secret_token=settings.secret
            )
            _log.info("Telegram calls %s, which must lead to http://%s:%d.", settings.url, settings.host, self.port)
            intake.connected()
            await until_one_ends(
                serve(Listening(settings, receiving).app(), door, proxies=settings.trusted_proxies),
                self._watch(settings.url),
            )
        raise CannotListen("Nothing listens for Telegram any more; it is tried again.")

    async def _watch(self, url: str) -> None:
        """Look now and then whether Telegram still calls us, and whether it gets through."""
        told = None
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(NetworkError):  # whoever is called need not reach others
                found = await self._line.get_webhook_info()
                if found.url != url:
                    raise failing.TelegramFailed(failing.ELSEWHERE)
                if found.last_error_date and found.last_error_date != told:
                    told = found.last_error_date
                    _log.warning("Telegram has called %s in vain: %s", url, one_line(found.last_error_message or ""))

    async def _show_commands(self) -> None:
        wanted = [BotCommand(spec.name, spec.help) for spec in known(in_terminal=False)][:_MOST_COMMANDS]
        try:
            if list(await self._line.get_my_commands()) != wanted:
                await self._line.set_my_commands(wanted)
        except (BadRequest, Forbidden, RetryAfter) as error:
            _log.warning("Telegram does not show which commands there are: %s", failing.told(error))

    @asynccontextmanager
    async def _sending(self) -> AsyncIterator[None]:
        try:
            async with self._line.opened():
                yield
        except TelegramError as error:
            raise failing.of_sending(error) from None


def _behind(cursor: str | None) -> int | None:
    """Where to read on. Telegram takes it for all that stands before, so it is never more than what is put down."""
    return int(cursor) + 1 if cursor else None
