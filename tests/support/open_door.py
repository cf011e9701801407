"""The gateway with its door open: programs call it on this machine, as they would a real one, which it is."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from serving_house import Served
from waiting import DEADLINE, until
from websockets.asyncio.client import ClientConnection, connect

from segue.core.credentials import CHANCE, Level, made
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import probing
from segue.sessions.tokens import give_token, take_token_back
from segue.sessions.watching import addresses
from segue.testing import Stage
from segue.web import front
from segue.web.listening import listen
from segue.web.premises import Premises

Call = dict[str, Any]


def probe_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `/ready` and `/metrics` wait for a store that answers slowly because the machine is busy."""
    monkeypatch.setattr(probing, "PATIENCE", DEADLINE)
    monkeypatch.setattr(front, "ANSWER_SECONDS", DEADLINE)


class OpenDoor(Served):
    """A gateway of a home, and what listens for it."""

    def __init__(self, home: Path, stages: dict[str, Stage] | None = None, *, has_programs: bool = True) -> None:
        super().__init__(home, stages or {}, has_programs=has_programs)
        self.url = ""
        self.premises: Premises | None = None

    def token(self, name: str = "laptop", level: Level = Level.ADMIN, principal: str = "owner", **more: Any) -> str:
        credential, token = made(name, os.urandom(CHANCE), time.time(), level=level, principal=principal, **more)
        self.store.write(OWNER, give_token, credential)
        return token

    def revoke(self, name: str) -> None:
        self.store.write(OWNER, take_token_back, name)

    def serve(self, work: Callable[[], Awaitable[None]], seconds: float = 4 * DEADLINE) -> None:
        """Open the door, and do something."""
        self.run(partial(self._opened, work), seconds)

    async def beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """As `serve`, beside another gateway in the same loop."""
        await self._lives(partial(self._opened, work))

    async def _opened(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self._serving is not None
        self.premises = Premises(self.settings, self.store, self._serving)
        listening = asyncio.create_task(listen(self.premises))
        try:
            await self._until_open()
            await work()
        finally:
            listening.cancel()
            await asyncio.wait({listening})
            self.premises.close()

    async def _until_open(self) -> None:
        assert self._serving is not None
        run_id = self._serving.gateway.presence.run.id
        await until(lambda: run_id in self.store.read(OWNER, addresses), "an address")
        self.url = self.store.read(OWNER, addresses)[run_id]

        async def is_open() -> bool:
            try:
                async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
                    await client.get(f"{self.url}/health")
            except httpx2.TransportError:
                return False
            return True

        await until(is_open, "an open door")

    async def post(self, said: Any, token: str | None, **headers: str) -> httpx2.Response:
        """A call as it is, right or wrong."""
        shown = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            return await client.post(f"{self.url}/rpc", content=content, headers=shown | headers)

    async def ask(self, token: str, method: str, **params: Any) -> Any:
        """What a method answers, which may be an error."""
        answer = (await self.post(request(method, **params), token)).json()
        return answer.get("result", answer.get("error"))

    @asynccontextmanager
    async def socket(self, token: str, **headers: str) -> AsyncIterator["Line"]:
        address = self.url.replace("http", "ws", 1) + "/rpc"
        shown = {"Authorization": f"Bearer {token}"} | headers
        async with connect(address, additional_headers=shown, proxy=None, host="127.0.0.1") as connection:
            line = Line(connection)
            try:
                yield line
            finally:
                await line.close()


class Line:
    """A WebSocket: answers by their number, and beside them what is told."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.told: list[Call] = []
        self._answers: dict[int, asyncio.Future[Call]] = {}
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def ask(self, method: str, **params: Any) -> Any:
        number = len(self._answers) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self.connection.send(_text(request(method, **params) | {"id": number}))
        answer = await asyncio.wait_for(self._answers[number], DEADLINE)
        return answer.get("result", answer.get("error"))

    async def until(self, is_so: Callable[[list[Call]], bool], seconds: float = DEADLINE) -> list[Call]:
        """What was told, as soon as it is enough."""
        async with asyncio.timeout(seconds):
            while not is_so(self.told):
                self._news.clear()
                await self._news.wait()
        return self.told

    def said(self) -> list[tuple[str, str]]:
        """Who said what, as it was told."""
        messages = [one["message"] for one in self.told if one["kind"] == "message"]
        return [(one["role"], one["content"]) for one in messages]

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        async for text in self.connection:
            said = json.loads(text)
            if said.get("method") == "chat.event":
                self.told.append(said["params"])
                self._news.set()
            elif said.get("id") in self._answers:
                self._answers[said["id"]].set_result(said)


def request(method: str, **params: Any) -> Call:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}


def _text(said: Any) -> str:
    return json.dumps(said)
