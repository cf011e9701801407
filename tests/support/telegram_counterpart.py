"""The other side of Telegram, for the kit: a person who talks to the bot, and Telegram between them."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import httpx2
from bot_api.client import World, message_id
from held_port import HeldPort
from odd_things import ODD
from torture_rounds import rounds
from waiting import until

from segue.core.attachments import Attachment
from segue.core.sources import SessionSource
from segue.platforms.telegram.platform import TelegramPlatform
from segue.platforms.telegram.settings import read_settings
from segue.ports.platform import Intake
from segue.storage.attachments import AttachmentFolder
from segue.testing.kit import Counterpart, Trouble

ALICE = 4711
SECRET = "quite-a-long-secret"
_FILES = ("document", "photo", "voice", "video", "audio")
_SENDING = ("sendMessage", "editMessageText", "sendDocument")


class CountedTelegram(TelegramPlatform):
    """Knows how often it was begun."""

    begun = 0

    async def run(self, intake: Intake) -> None:
        self.begun += 1
        await super().run(intake)


def adapter_of(world: World, folder: Path, **own: Any) -> CountedTelegram:
    """A new adapter for the bot of a world."""
    said = {"token": world.token, "api_url": world.url, "poll_seconds": 5, **own}
    return CountedTelegram(read_settings(said), AttachmentFolder(folder / "attachments"))


class TelegramCounterpart(Counterpart):
    """The bot asks."""

    cannot: ClassVar[Mapping[str, str]] = {
        "deleted": "bots are not told that something was deleted",
        "forged": "nobody calls us",
    }
    busy_seconds = 1.0
    backlog = rounds(250, in_torture=500)  # of which a hundred are handed out at once

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self._folder = folder
        self._updates: dict[str, int] = {}
        self._adapters: list[CountedTelegram] = []
        self.world.chat(ALICE, type="private", first_name="Alice")

    def adapter(self) -> TelegramPlatform:
        self._adapters.append(adapter_of(self.world, self._folder))
        return self._adapters[-1]

    def route(self) -> SessionSource:
        return SessionSource(platform="telegram", chat_id=str(ALICE))

    def nowhere(self) -> SessionSource:
        return SessionSource(platform="telegram", chat_id="99999")

    async def keep(self, name: str, content: bytes) -> Attachment:
        async def pieces() -> Any:
            yield content

        return await AttachmentFolder(self._folder / "attachments").keep(pieces(), name, None)

    async def close(self) -> None: ...

    async def say(self, text: str) -> str:
        return self._noted(await asyncio.to_thread(self.world.say, ALICE, ALICE, text))

    async def say_many(self, texts: list[str]) -> None:
        for text in texts:
            await self.say(text)

    async def edit(self, message_id: str, text: str) -> None:
        await asyncio.to_thread(self.world.edit, ALICE, int(message_id), text, edit_date=1_700_000_000)

    async def delete(self, message_id: str) -> None:
        """We do it ourselves, as the only one who can be told to."""
        await self._call("deleteMessage", chat_id=ALICE, message_id=int(message_id))

    async def send_file(self, name: str, content: bytes, text: str = "") -> str:
        told: dict[str, Any] = {"media": "document", "content": content, "file_name": name}
        return self._noted(await asyncio.to_thread(self.world.say, ALICE, ALICE, text, **told))

    async def read(self) -> list[str]:
        return await asyncio.to_thread(self.world.texts, ALICE)

    async def files(self) -> list[bytes]:
        found = []
        for kept in await asyncio.to_thread(self.world.messages, ALICE):
            told = await self._call("getFile", file_id=kept.message["document"]["file_id"])
            async with httpx2.AsyncClient() as client:
                url = f"{self.world.base_file_url}{self.world.token}/{told['file_path']}"
                found.append((await client.get(url)).content)
        return found

    async def bring_again(self, message_id: str, *, as_new: bool) -> None:
        await asyncio.to_thread(self.world.redeliver, self._updates[message_id], as_new=as_new)

    async def bring_out_of_order(self, texts: list[str]) -> None:
        held = [self.world.say(ALICE, ALICE, text, held=True)["update_id"] for text in texts]
        self.world.release(held[2], held[0], held[1])

    async def bring_dated(self, text: str, moment: float) -> None:
        await asyncio.to_thread(self.world.say, ALICE, ALICE, text, date=int(moment))

    async def bring_garbled(self, text: str) -> None:
        message = {"message_id": 9_000, "date": 1, "chat": {"id": ALICE, "type": "private"}, "text": f"{text} \ud83d"}
        await asyncio.to_thread(self.world.update, {"message": message})

    async def bring_huge(self) -> None:
        message = {"message_id": 9_001, "date": 1, "chat": {"id": ALICE, "type": "private"}, "text": "x" * 2_000_000}
        await asyncio.to_thread(self.world.update, {"message": message})

    async def bring_odd(self) -> None:
        message = {"message_id": 9_100, "date": 1, "chat": {"id": ALICE, "type": "private"}, "text": "odd"}
        whole = [{"message": odd} for odd in ODD] + [
            {odd_kind: ODD} for odd_kind in ("callback_query", "poll", "nonsense")
        ]
        fields = ("message_id", "date", "chat", "from", "text", "entities", "caption", "reply_to_message", "sticker")
        parts = [{"message": {**message, name: odd}} for name in (*fields, *_FILES) for odd in ODD]
        files = [{"message": {**message, name: {"file_id": odd}}} for name in _FILES for odd in ODD]
        inner = [{"message": {**message, "chat": {**message["chat"], "type": odd}}} for odd in ODD]  # type: ignore[dict-item]
        for update in (*whole, *parts, *files, *inner):
            await asyncio.to_thread(self.world.update, update)

    def trouble(self, trouble: Trouble, times: int = 1) -> None:
        match trouble:
            case Trouble.BUSY:
                self.world.trouble("flood", *_SENDING, times=times, retry_after=1)
            case Trouble.BROKEN:
                self.world.trouble("error", *_SENDING, times=times, status=502)
            case Trouble.LOST_BEFORE:
                self.world.trouble("drop", *_SENDING, times=times)
            case Trouble.LOST_AFTER:
                self.world.trouble("drop", *_SENDING, times=times, taken=True)
            case Trouble.UNREACHABLE:
                self.world.down()

    async def go_away(self) -> None:
        """Whoever was connected has asked once more in vain when this returns."""
        adapter = self._adapters[-1]
        begun = adapter.begun
        await asyncio.to_thread(self.world.down)
        await until(lambda: adapter.begun >= begun + 2)

    async def come_back(self) -> None:
        await asyncio.to_thread(self.world.up)

    def _noted(self, update: dict[str, Any]) -> str:
        name = str(message_id(update))
        self._updates[name] = update["update_id"]
        return name

    async def _call(self, method: str, **told: Any) -> Any:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{self.world.base_url}{self.world.token}/{method}", json=told)
        return answer.json()["result"]


class CalledTelegramCounterpart(TelegramCounterpart):
    """Telegram calls."""

    cannot: ClassVar[Mapping[str, str]] = {
        "deleted": "bots are not told that something was deleted",
        "oversize": "Telegram sends nothing so large, and would bring it again for ever",
    }

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(world, folder)
        self._port = HeldPort()
        self.url = f"http://127.0.0.1:{self._port.number}/telegram"

    def adapter(self) -> TelegramPlatform:
        door = {"url": self.url, "secret": SECRET, "port": self._port.number}
        return adapter_of(self.world, self._folder, mode="webhook", webhook=door)

    async def close(self) -> None:
        self._port.close()

    async def go_away(self) -> None:
        """Whoever is called need not notice."""
        await asyncio.to_thread(self.world.down)

    async def bring_forged(self, text: str) -> None:
        message = {"message_id": 9_002, "date": 1, "chat": {"id": ALICE, "type": "private"}, "text": text}
        body = json.dumps({"update_id": 1, "message": message})
        for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": SECRET[:-1]}):
            async with httpx2.AsyncClient() as client:
                answer = await client.post(self.url, content=body, headers=headers)
            assert answer.status_code == httpx2.codes.UNAUTHORIZED
