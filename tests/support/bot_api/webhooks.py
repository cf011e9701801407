"""Updates that are brought to the bot: one after another, each until it is accepted."""

import asyncio
import json
import time
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from bot_api.records import Delivery
from bot_api.updates import Entry, Updates

_PATIENCE = ClientTimeout(total=30)
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class Webhook:
    def __init__(
        self, url: str, secret: str | None, updates: Updates, deliveries: list[Delivery], complaints: list[str]
    ) -> None:
        self.url = url
        self.secret = secret
        self.max_connections = 40
        self.last_error: tuple[int, str] | None = None
        self._updates = updates
        self._deliveries = deliveries
        self._complaints = complaints
        self._work = asyncio.create_task(self._bring_all())

    async def close(self) -> None:
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    def info(self) -> dict[str, Any]:
        told: dict[str, Any] = {"url": self.url, "max_connections": self.max_connections, "ip_address": "127.0.0.1"}
        if self.last_error is not None:
            told["last_error_date"], told["last_error_message"] = self.last_error
        return told

    async def _bring_all(self) -> None:
        async with ClientSession(timeout=_PATIENCE) as session:
            while True:
                if not self._updates.pending:
                    self._updates.changed.clear()
                    await self._updates.changed.wait()
                entry = self._updates.pending[0]
                await self._bring(session, entry)
                self._updates.forget(entry)

    async def _bring(self, session: ClientSession, entry: Entry) -> None:
        pause = _FIRST_PAUSE
        while not await self._is_accepted(session, entry):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _is_accepted(self, session: ClientSession, entry: Entry) -> bool:
        headers = {"Content-Type": "application/json"}
        if self.secret is not None:
            headers["X-Telegram-Bot-Api-Secret-Token"] = self.secret
        at, status = time.monotonic(), None
        try:
            async with session.post(self.url, data=entry.text.encode(), headers=headers, ssl=False) as answer:
                status = answer.status
                self._object_to(await answer.read())
                problem = f"Wrong response from the webhook: {status} {answer.reason}"
        except (ClientError, TimeoutError) as error:
            problem = f"Connection failed: {type(error).__name__}"
        self._deliveries.append(Delivery(entry.update_id, at, status))
        if status is not None and 200 <= status < 300:
            return True
        self.last_error = (int(time.time()), problem)
        return False

    def _object_to(self, body: bytes) -> None:
        """A call in the answer would be carried out without a word of how it went."""
        try:
            said = json.loads(body)
        except ValueError:
            return
        if isinstance(said, dict) and "method" in said:
            self._complaints.append(f"the webhook answers with a call of {said['method']}")
