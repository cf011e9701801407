"""The other side of Matrix, for the kit: a person in a room with us, on a real homeserver behind a troublesome door."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from matrix_house import MatrixHouse
from matrix_person import Person
from matrix_private_person import PrivatePerson
from odd_things import ODD
from synapse_server import Synapse
from torture_rounds import rounds
from troublesome import Troublesome
from waiting import until

from segue.core.attachments import Attachment
from segue.core.sources import SessionSource
from segue.platforms.matrix.platform import MatrixPlatform
from segue.testing.kit import Counterpart, Trouble

_RELATIONS: tuple[Any, ...] = ("m.replace", "m.thread", "m.annotation", [])
SENDING = "PUT .*/rooms/[^/]*/send/"


class MatrixCounterpart(Counterpart):
    cannot: ClassVar[Mapping[str, str]] = {
        "redelivered": "a homeserver brings again only what was not put down, which is a case of its own",
        "redelivered as new": "an event has one place in its room",
        "out of order": "a room has one order",
        "forged": "the homeserver knows who writes",
        "garbled": "a homeserver takes no text that is none",
        "skewed clock": "the homeserver dates what is said",
    }
    busy_seconds = 0.3
    backlog = rounds(130, in_torture=500)  # of which a hundred are handed out at once

    def __init__(self, synapse: Synapse, folder: Path, *, is_encrypted: bool = False) -> None:
        self._synapse = synapse
        self._proxy = Troublesome(synapse.url)
        self._house = MatrixHouse(folder / "ours", self._proxy.url, synapse.register("segue"))
        self._user = synapse.register("ann")
        self._folder = folder
        self._is_encrypted = is_encrypted
        self._person: Person | None = None
        self._adapters: list[MatrixPlatform] = []
        self._room, self._device = asyncio.run(self._meet())

    async def _meet(self) -> tuple[str, str]:
        """They and we are in a room; the room, and the device on which they are."""
        ours = self._house.user
        async with self._somebody() as ann, Person(self._synapse.url, ours) as we:
            room = await ann.create_room(ours.user_id, is_direct=True, is_encrypted=self._is_encrypted)
            await we.join(room)
            return room, ann.device_id

    def _somebody(self, device_id: str | None = None) -> Person:
        if self._is_encrypted:
            return PrivatePerson(self._synapse.url, self._user, self._folder / "ann", device_id)
        return Person(self._synapse.url, self._user, device_id)

    async def _ann(self) -> Person:
        if self._person is None:
            self._person = await self._somebody(self._device).__aenter__()
        return self._person

    def adapter(self) -> MatrixPlatform:
        self._adapters.append(self._house.adapter())
        return self._adapters[-1]

    def route(self) -> SessionSource:
        return SessionSource(platform="matrix", chat_id=self._room)

    def nowhere(self) -> SessionSource:
        return SessionSource(platform="matrix", chat_id="!nowhere:matrix.test")

    async def keep(self, name: str, content: bytes) -> Attachment:
        async def pieces() -> AsyncIterator[bytes]:
            yield content

        return await self._house.files.keep(pieces(), name, "application/octet-stream")

    async def close(self) -> None:
        if self._person is not None:
            await self._person.__aexit__()
        await asyncio.to_thread(self._proxy.close)

    async def say(self, text: str) -> str:
        return await (await self._ann()).say(self._room, text)

    async def say_many(self, texts: list[str]) -> None:
        await (await self._ann()).say_many(self._room, texts)

    async def edit(self, message_id: str, text: str) -> None:
        await (await self._ann()).edit(self._room, message_id, text)

    async def delete(self, message_id: str) -> None:
        """What we said, they remove as the one who made the room; we have heard of it when this returns."""
        await (await self._ann()).redact(self._room, message_id)
        link = self._adapters[-1]._link
        assert link is not None
        await until(lambda: message_id in link.taker.redacted)

    async def send_file(self, name: str, content: bytes, text: str = "") -> str:
        return await (await self._ann()).share(self._room, name, content, "application/octet-stream", text or None)

    async def read(self) -> list[str]:
        heard = await (await self._ann()).heard(self._room)
        return [message.body for message in heard if not message.is_redacted]

    async def files(self) -> list[bytes]:
        ann = await self._ann()
        return [await ann.fetch(one) for one in await ann.heard(self._room) if one.msgtype == "m.file"]

    async def bring_huge(self) -> None:
        await self.say("huge " * (6_000 if self._is_encrypted else 12_000))

    async def bring_odd(self) -> None:
        """What a homeserver does not take is not brought; in an encrypted room it takes everything."""
        ann, text = await self._ann(), {"msgtype": "m.text", "body": "odd"}
        file = {"url": "mxc://a/b", "key": {"k": "A" * 43}, "iv": "A" * 22, "hashes": {"sha256": "x"}}
        turns, step = itertools.count(self._is_encrypted), rounds(3, in_torture=1)

        def some() -> list[Any]:
            """Each time others, and after a few times all."""
            return ODD[next(turns) % step :: step]

        contents: list[Any] = [{**text, name: odd} for name in ("msgtype", "body", "m.mentions") for odd in some()]
        contents += [{**text, "m.relates_to": odd} for odd in some()]
        contents += [{**text, "m.relates_to": {"m.in_reply_to": {"event_id": odd}}} for odd in some()]
        contents += [
            {**text, "m.relates_to": {"rel_type": kind, "event_id": odd}} for kind in _RELATIONS for odd in some()
        ]
        sealed = [{**file, name: odd} for name in file for odd in some()]
        sealed += [{**file, "key": {"k": odd}} for odd in some()]
        contents += [{"msgtype": "m.file", "body": "odd", "file": one} for one in (*sealed, *some())]
        contents += [
            {"msgtype": "m.image", "body": "odd", "url": one, "info": one} for one in (*some(), "mxc://../config")
        ]
        await ann.send_many(self._room, contents)

    def trouble(self, trouble: Trouble, times: int = 1) -> None:
        twice = times + 1  # a request that can be repeated without harm is repeated once where nobody sees it
        match trouble:
            case Trouble.BUSY:
                self._proxy.limit(SENDING, int(self.busy_seconds * 1000), times=times)
            case Trouble.BROKEN:
                self._proxy.answer(SENDING, 502, times=times)
            case Trouble.LOST_BEFORE:
                self._proxy.hang(SENDING, 0.1, times=twice)
            case Trouble.LOST_AFTER:
                self._proxy.lose_answers(SENDING, times=twice)
            case Trouble.UNREACHABLE:
                self._proxy.go_down()

    async def go_away(self) -> None:
        await asyncio.to_thread(self._proxy.go_down)

    async def come_back(self) -> None:
        await asyncio.to_thread(self._proxy.come_up)
