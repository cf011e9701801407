"""Matrix: one account on a homeserver, on one device, in plain and in encrypted rooms."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from segue.core.errors import NotFound
from segue.core.sources import SessionSource
from segue.platforms.matrix import login
from segue.platforms.matrix.asking import Line
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.failing import LoggedOut, Refused, Trouble, before_sending, while_sending
from segue.platforms.matrix.inbound import PLATFORM, Me
from segue.platforms.matrix.inviting import Porter
from segue.platforms.matrix.keyring import Keyring
from segue.platforms.matrix.media import sent
from segue.platforms.matrix.outbound import (
    LONGEST,
    Content,
    edit_content,
    file_content,
    text_content,
    transaction_of,
)
from segue.platforms.matrix.reading import Reader
from segue.platforms.matrix.settings import MatrixSettings
from segue.platforms.matrix.taking import Taker
from segue.platforms.matrix.waiting import Waiting
from segue.ports.platform import (
    Arriving,
    Equipment,
    Intake,
    Post,
    SendLater,
    SendRefused,
    SendUnknown,
    Sent,
    Traits,
    Units,
)

TRAITS = Traits(
    Arriving.CURSOR,
    longest=LONGEST,
    units=Units.BYTES,
    has_key=True,
    can_edit=True,
    can_attach=True,
    shows_typing=True,
)
TYPING_SECONDS = 6.0
_MESSAGE = "m.room.message"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Link:
    """A login that is in use."""

    line: Line
    client: Client
    reader: Reader
    porter: Porter
    taker: Taker


class MatrixPlatform:
    def __init__(self, settings: MatrixSettings, equipment: Equipment) -> None:
        self.name = PLATFORM
        self.account = ""
        self.traits = TRAITS
        self.bot = settings.localpart
        """What people call us before a command."""
        self._settings = settings
        self._files = equipment.files
        self._keyring = Keyring(equipment.folder)
        self._link: _Link | None = None

    async def run(self, intake: Intake) -> None:
        try:
            async with self._logged_in(intake) as link:
                since = await link.reader.look_around()
                await link.client.tend()
                self._link = link
                intake.connected()
                await _together(link, since)
        except LoggedOut:
            raise login.logged_out(self._settings, self._keyring) from None

    @asynccontextmanager
    async def _logged_in(self, intake: Intake) -> AsyncIterator[_Link]:
        await asyncio.to_thread(self._keyring.open)
        device = await login.logged_in(self._settings, self._keyring)
        line = Line(self._settings.homeserver, device.access_token)
        client: Client | None = None
        try:
            client = await login.opened(self._settings, self._keyring, line, device)
            me = Me(device.user_id, await _display_name(line, device.user_id))
            porter = Porter(line, intake, me)
            taker = Taker(line, client, intake, self._files, me, Waiting(self._keyring))
            yield _Link(line, client, Reader(line, client, intake, me, porter, taker), porter, taker)
        finally:
            self._link = None
            await line.close()
            if client is not None:
                client.shut()

    async def send(self, post: Post) -> Sent:
        link = self._linked()
        room_id = post.route.chat_id
        with before_sending():
            is_encrypted = await self._is_encrypted(link, room_id)
            content = await self._content(link, post, is_encrypted=is_encrypted)
        return Sent(await _said(link, room_id, content, transaction_of(post.key), is_encrypted=is_encrypted))

    async def edit(self, post: Post, message_id: str) -> None:
        link = self._linked()
        room_id = post.route.chat_id
        if message_id in link.taker.redacted:
            raise SendRefused("Somebody has removed the message.")
        with before_sending():
            is_encrypted = await self._is_encrypted(link, room_id)
        content = edit_content(post, message_id)
        await _said(link, room_id, content, f"segue-edit-{uuid.uuid4().hex}", is_encrypted=is_encrypted)

    async def typing(self, route: SessionSource) -> None:
        if (link := self._link) is None:
            return
        said = {"typing": True, "timeout": int(TYPING_SECONDS * 1000)}
        with suppress(Trouble):
            await link.line.ask("PUT", "v3", "rooms", route.chat_id, "typing", self._settings.user, body=said)

    def _linked(self) -> _Link:
        if self._link is None:
            raise SendLater("Matrix is not connected at the moment.")
        return self._link

    async def _is_encrypted(self, link: _Link, room_id: str) -> bool:
        """Whether a room is; nothing is ever said in the open where others encrypt."""
        room = link.client.rooms.get(room_id)
        if room is None:
            await _ask_whether_plain(link, room_id)
            return False
        if room.encrypted and link.client.olm is None:
            raise SendRefused("The room is encrypted, and platforms.matrix.encryption is off.")
        return bool(room.encrypted)

    async def _content(self, link: _Link, post: Post, *, is_encrypted: bool) -> Content:
        if post.file is None:
            return text_content(post)
        try:
            path = self._files.path_of(post.file)
        except NotFound as error:
            raise SendRefused(str(error)) from error
        return file_content(post, post.file, await sent(link.line, path, post.file, encrypt=is_encrypted))


async def _together(link: _Link, since: str) -> None:
    """Read, and look after invitations, until one of them fails."""
    tasks = [asyncio.create_task(link.reader.read(since)), asyncio.create_task(link.porter.run())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask_whether_plain(link: _Link, room_id: str) -> None:
    """A room that we have not heard of yet may be one that we have just joined, or none of ours."""
    try:
        await link.line.ask("GET", "v3", "rooms", room_id, "state", "m.room.encryption")
    except Refused as refused:
        if refused.code != "M_NOT_FOUND":
            raise
        return
    raise SendLater("Who is in the encrypted room is not known yet.", 1.0)


async def _said(link: _Link, room_id: str, content: Content, transaction: str, *, is_encrypted: bool) -> str:
    """Say something in a room, once for its transaction; what the homeserver calls it."""
    kind, said = _MESSAGE, content
    if is_encrypted:
        with before_sending():
            await link.client.be_ready(room_id)
            kind, said = _sealed(link.client, room_id, content)
    with while_sending():
        answer = await link.line.ask("PUT", "v3", "rooms", room_id, "send", kind, transaction, body=said)
    if not isinstance(event_id := answer.get("event_id"), str):
        raise SendUnknown("The homeserver does not say what it calls the message.")
    return event_id


def _sealed(client: Client, room_id: str, content: Content) -> tuple[str, dict[str, Any]]:
    try:
        kind, sealed = client.encrypt(room_id, _MESSAGE, content)
    except Exception as error:  # of several kinds, none of which is for people
        raise Trouble(f"The message could not be encrypted: {type(error).__name__}.") from error
    return str(kind), sealed


async def _display_name(line: Line, user_id: str) -> str | None:
    """What we call ourselves, if we do."""
    try:
        found = (await line.ask("GET", "v3", "profile", user_id, "displayname")).get("displayname")
    except LoggedOut:
        raise
    except Refused:
        return None
    return found if isinstance(found, str) and found else None
