"""A caller of webhooks, as another program is one, and a gateway with a door for it."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from lane_house import Building
from waiting import DEADLINE

from segue.core.inbox import Entry, InboxState
from segue.core.routes import Route
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.platforms.webhook.platform import WebhookPlatform
from segue.platforms.webhook.settings import read_settings
from segue.ports.store import Store
from segue.testing import ScriptedPlatform, Stage

SECRET = "a secret of the tests"
HOOK = {"secret": SECRET, "template": "Pull request {{ action }}: {{ pull_request.title }}"}


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


async def places(route: Route) -> SessionSource | None:
    """Only the scripted platform has a home channel."""
    if route.chat_id:
        return route.source
    return SessionSource(platform="scripted", chat_id="home") if route.platform == "scripted" else None


class Caller:
    """Calls the hooks of a gateway."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False)

    async def post(self, body: bytes, name: str = "github", **headers: str | bytes) -> httpx2.Response:
        named = {key.replace("_", "-").encode(): _octets(value) for key, value in headers.items()}
        return await self._client.post(f"/hooks/{name}", content=body, headers=list(named.items()))

    async def call(self, said: Any, name: str = "github", **headers: str | bytes) -> httpx2.Response:
        """With the right signature, unless another is given."""
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        return await self.post(body, name, **{"X_Hub_Signature_256": signature(body), **headers})

    async def close(self) -> None:
        await self._client.aclose()


class House:
    """A gateway with a scripted platform and a door for hooks."""

    def __init__(self, store: Store, hooks: dict[str, Any] | None = None, **more: Any) -> None:
        own = {"port": 0, "hooks": hooks or {"github": HOOK}, **more.pop("own", {})}
        clock = {"now": more.pop("now")} if "now" in more else {}
        self.store, self.stage = store, Stage()
        self.door = WebhookPlatform(read_settings(own), places, **clock)
        self.building = Building(store, self.stage, only=[ScriptedPlatform(self.stage), self.door], **more)

    def run(self, work: Callable[[Caller], Awaitable[None]]) -> None:
        async def called() -> None:
            await asyncio.wait_for(self.door.is_listening.wait(), DEADLINE)
            caller = Caller(self.door.port)
            try:
                await work(caller)
                await self.building.quiet()
            finally:
                await caller.close()

        self.building.run(called)

    def entries(self) -> list[Entry]:
        return self.store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))


def _octets(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
