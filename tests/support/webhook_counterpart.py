"""The other side of webhooks, for the kit: a program that calls until it is told that it was heard."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import httpx2
from hooks import SECRET, Caller, signature
from odd_things import ODD
from waiting import DEADLINE

from segue.core.inbound import Inbound
from segue.core.sources import SessionSource
from segue.platforms.webhook.platform import WebhookPlatform
from segue.platforms.webhook.settings import read_settings
from segue.ports.platform import Platform
from segue.testing.kit import Counterpart

HOOK = {
    "secret": SECRET,
    "template": "{{ said }}",
    "id_header": "X-Call",
    "timestamp_header": "X-Time",
    "signed": "{timestamp}.{id}.{body}",
}
_SENT = dict.fromkeys(
    (
        "sent",
        "sent to the limit",
        "edited after sending",
        "gone before editing",
        "sent nowhere",
        "busy",
        "unreachable",
        "broken",
        "lost before sending",
        "lost after sending",
        "killed between pieces",
        "sent with file",
    ),
    "nobody reads at a hook",
)


class WebhookCounterpart(Counterpart):
    cannot: ClassVar[Mapping[str, str]] = {
        "edited": "what was called out is not edited",
        "deleted": "what was called out is not deleted",
        "with file": "a call brings no files",
        "file of nobody": "a call brings no files",
        **_SENT,
    }
    busy_seconds, longest_wait = 0.2, DEADLINE

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        self._hook = {**HOOK, **(own or {})}
        self._door: WebhookPlatform | None = None
        self._port = 0
        self._caller: Caller | None = None
        self._numbers = iter(range(10_000))
        self._calls: dict[str, tuple[bytes, dict[str, str]]] = {}
        self._calling: set[asyncio.Task[None]] = set()

    def adapter(self) -> Platform:
        own = {"port": self._port, "hooks": {"github": self._hook}}
        self._door = WebhookPlatform(read_settings(own))
        return self._door

    def route(self) -> SessionSource:
        return SessionSource(platform="webhook", chat_id="github", chat_type="channel")

    def words(self, inbound: Inbound) -> str:
        return inbound.text.partition("\n\n")[2].strip("⟦⟧")

    async def close(self) -> None:
        for task in self._calling:
            task.cancel()
        if self._calling:
            await asyncio.wait(self._calling)
        await self._hang_up()

    async def say(self, text: str) -> str:
        name = f"call-{next(self._numbers)}"
        body = json.dumps({"said": text}).encode()
        self._calls[name] = body, self._headers(name, body)
        await self._until_heard(name)
        return name

    async def say_many(self, texts: list[str]) -> None:
        """One after another; whoever does not hear yet is called again, so this does not wait."""
        self._port = self._door.port if self._door else 0

        async def call_all() -> None:
            for text in texts:
                await self.say(text)

        self._calling.add(asyncio.create_task(call_all()))

    async def bring_again(self, message_id: str, *, as_new: bool) -> None:
        await self._until_heard(message_id)

    async def bring_out_of_order(self, texts: list[str]) -> None:
        await asyncio.gather(*(self.say(text) for text in reversed(texts)))

    async def bring_dated(self, text: str, moment: float) -> None:
        body = json.dumps({"said": text}).encode()
        answer = await self._call(body, self._headers(text, body, moment))
        assert answer.status_code == httpx2.codes.UNAUTHORIZED

    async def bring_garbled(self, text: str) -> None:
        body = b'{"said": "' + text.encode() + b' \xff\xfe"}'
        await self._call(body, self._headers("garbled", body))

    async def bring_huge(self) -> None:
        body = json.dumps({"said": "x" * 2_000_000}).encode()
        with suppress(httpx2.TransportError):  # the door may be shut before all of it is there
            await self._call(body, self._headers("huge", body))

    async def bring_odd(self) -> None:
        bodies = [b"", b"{", b"7", b"null", b'"\\ud800"', b"[" * 100_000, b'{"said":' * 300 + b"1" + b"}" * 300]
        bodies += [json.dumps({"said": odd}).encode() for odd in ODD]
        for number, body in enumerate(bodies):
            await self._call(body, self._headers(f"odd-{number}", body))

    async def bring_forged(self, text: str) -> None:
        body = json.dumps({"said": text}).encode()
        forged = self._headers("forged", body) | {"X-Hub-Signature-256": signature(body, "another")}
        answer = await self._call(body, forged)
        assert answer.status_code == httpx2.codes.UNAUTHORIZED

    async def go_away(self) -> None:
        """It is we who are away, as far as the program can tell; it goes on calling."""

    async def come_back(self) -> None: ...

    def _headers(self, name: str, body: bytes, moment: float | None = None) -> dict[str, str]:
        at = str(int(time.time() if moment is None else moment))
        return {"X-Call": name, "X-Time": at, "X-Hub-Signature-256": signature(f"{at}.{name}.".encode() + body)}

    async def _until_heard(self, name: str) -> None:
        body, headers = self._calls[name]
        while True:
            with suppress(httpx2.TransportError):
                if (await self._call(body, headers)).is_success:
                    return
            await asyncio.sleep(0.05)

    async def _call(self, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        assert self._door is not None
        if self._caller is None or self._caller.port != self._door.port:
            await self._hang_up()
            self._caller = Caller(self._door.port)
        return await self._caller.post(body, **headers)

    async def _hang_up(self) -> None:
        if self._caller is not None:
            await self._caller.close()
