"""The gateway's door, a model behind it that answers word by word, and the clients of OpenAI before it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from open_door import OpenDoor
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from serving_house import write_settings
from waiting import DEADLINE
from wordy_model import use_wordy_model

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.store import SqlStore


class WordyDoor(OpenDoor):
    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._clients: list[AsyncOpenAI] = []

    def client(self, token: str, **more: Any) -> AsyncOpenAI:
        plain = DefaultAsyncHttpxClient(verify=False)  # nothing here is encrypted, and to prepare for it takes a while
        options: dict[str, Any] = {"max_retries": 0, "timeout": DEADLINE, "http_client": plain} | more
        made = AsyncOpenAI(api_key=token, base_url=f"{self.url}/v1", **options)
        self._clients.append(made)
        return made

    def serve(self, work: Callable[[], Awaitable[None]], seconds: float = 4 * DEADLINE) -> None:
        async def closing() -> None:
            try:
                await work()
            finally:
                for client in self._clients:
                    await client.close()
                self._clients.clear()

        super().serve(closing, seconds)


@contextmanager
def wordy_door(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Iterator[WordyDoor]:
    use_wordy_model(monkeypatch)
    opened = WordyDoor(write_settings(folder / "home", gateway={"port": 0}, **settings))
    try:
        yield opened
    finally:
        opened.close()


def entries(store: SqlStore) -> list[tuple[str, str]]:
    """Everything that was ever accepted, and how it ended."""
    states = ("waiting", "running", "done", "cancelled", "refused", "dead")
    return [(one.text, one.state) for one in store.read(OWNER, lambda tx: tx.inbox.listed(states))]


def transcripts(store: SqlStore) -> list[list[tuple[str, str | None]]]:
    """What was said in every session, the oldest first."""

    def work(tx: Any) -> list[list[tuple[str, str | None]]]:
        return [[(row.role, row.content) for row in tx.messages.of(one.id)] for one in tx.sessions.in_order()]

    return store.read(OWNER, work)
