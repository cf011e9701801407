"""Somebody who also talks in encrypted rooms: a device with keys of its own, kept in a folder of its own."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import hasty_keys  # noqa: F401 - for what it does
from matrix_messages import Event, Message
from matrix_person import Manner, Person, relations
from nio import AsyncClient, EncryptionError, ErrorResponse, MegolmEvent  # type: ignore[import-untyped]
from nio import Event as NioEvent
from nio.crypto import decrypt_attachment, encrypt_attachment  # type: ignore[import-untyped]
from synapse_server import User


class PrivatePerson(Person):
    """A message whose key never came is one that this person cannot read."""

    def __init__(self, url: str, user: User, folder: Path, device_id: str | None = None) -> None:
        super().__init__(url, user, device_id)
        self._folder = folder

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._nio = AsyncClient(self._url, self.user_id, self.device_id, str(self._folder))
        self._nio.restore_login(self.user_id, self.device_id, self.token)
        await self._catch_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._nio.close()
        self._nio.store.database.close()
        await super().__aexit__()

    async def events(self, room: str) -> list[Event]:
        """As the others read them."""
        await self._catch_up()
        return [self._opened(room, event) for event in await super().events(room)]

    async def sealed_events(self, room: str) -> list[Event]:
        """As the server keeps them."""
        return await super().events(room)

    async def fetch(self, message: Message) -> bytes:
        if "file" not in message.content:
            return await super().fetch(message)
        file = message.content["file"]
        found: bytes = decrypt_attachment(
            await self._download(file["url"]), file["key"]["k"], file["hashes"]["sha256"], file["iv"]
        )
        return found

    async def _news(self, seconds: float) -> None:
        await self._catch_up(seconds)

    async def _catch_up(self, seconds: float = 0) -> None:
        """What happened, and what has to be said about keys."""
        _expect(await self._nio.sync(timeout=int(seconds * 1000)))
        if self._nio.should_upload_keys:
            _expect(await self._nio.keys_upload())
        if self._nio.should_query_keys:
            _expect(await self._nio.keys_query())
        if self._nio.should_claim_keys:
            _expect(await self._nio.keys_claim(self._nio.get_users_for_key_claiming()))
        await self._nio.send_to_device_messages()

    async def _is_encrypted(self, room: str) -> bool:
        await self._catch_up()
        return bool(self._nio.rooms[room].encrypted)

    async def send_many(self, room: str, contents: Sequence[Event]) -> None:
        if not await self._is_encrypted(room):
            return await super().send_many(room, contents)
        for content in contents:
            with suppress(AssertionError):  # which says that it was refused
                await self._seal(room, "m.room.message", content, {})
        return None

    async def _send(self, room: str, kind: str, content: Event, manner: Manner) -> str:
        if not await self._is_encrypted(room):
            return await super()._send(room, kind, content, manner)
        return await self._seal(room, kind, content, manner)

    async def _seal(self, room: str, kind: str, content: Event, manner: Manner) -> str:
        """To the devices that are known."""
        transaction = manner.get("transaction") or next(self._transactions)
        whole = content | relations(manner)
        sent = await self._nio.room_send(room, kind, whole, transaction, ignore_unverified_devices=True)
        return str(_expect(sent).event_id)

    async def _attachment(self, room: str, data: bytes, mimetype: str) -> Event:
        if not await self._is_encrypted(room):
            return await super()._attachment(room, data, mimetype)
        sealed, keys = encrypt_attachment(data)
        return {"file": {**keys, "url": await self._upload(sealed, "application/octet-stream")}}

    def _opened(self, room: str, event: Event) -> Event:
        sealed = NioEvent.parse_event(event)
        if not isinstance(sealed, MegolmEvent):
            return event
        sealed.room_id = room
        try:
            source = self._nio.decrypt_event(sealed).source
        except EncryptionError:
            return event
        return {**event, "type": source["type"], "content": source["content"]}


def _expect(answer: Any) -> Any:
    assert not isinstance(answer, ErrorResponse), str(answer)
    return answer
