"""Programs that call with a key while the gateway is killed again and again: each call has one outcome in the end."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from fork_server import ForkServer
from forked_house import ForkedHouse
from gateway_process import SUPPORT
from held_port import HeldPort
from torture_rounds import rounds
from waiting import DEADLINE

from segue.core.inbox import InboxState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore

pytestmark = [pytest.mark.torture, pytest.mark.timeout(rounds(600, in_torture=3600))]

LANES = 12
LIVES = (0.3, 0.9)
KILLS = rounds(6, in_torture=160)
AT_ONCE = 24
"""Calls that wait at the same time."""
_TOKEN = re.compile(r"segue_[0-9a-f]{8}_[0-9a-f]{64}")

Outcome = tuple[str, str]
"""What a call is called, and what was answered."""


class Programs:
    """They talk in twelve conversations, and call again with the same key until they have an answer."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._headers = f"{address}/v1/chat/completions", {"Authorization": f"Bearer {token}"}
        self._random = random.Random(1)
        self._free = asyncio.Semaphore(AT_ONCE)
        self.outcomes: dict[str, set[Outcome]] = {}
        """By key."""

    @property
    def unanswered(self) -> list[str]:
        return [key for key, found in self.outcomes.items() if not found]

    def new_keys(self) -> list[str]:
        """Some say something new."""
        keys = [f"lane{lane}-{len(self.outcomes)}" for lane in range(LANES) if self._random.random() < 0.3]
        return [f"{key}-{number}" for number, key in enumerate(keys)]

    async def call(self, keys: list[str]) -> None:
        """Ask until all of these have an outcome, or for as long as nobody cancels it."""
        for key in keys:
            self.outcomes.setdefault(key, set())
        async with httpx2.AsyncClient(headers=self._headers, timeout=DEADLINE, verify=False) as client:
            await asyncio.gather(*(self._ask(client, key) for key in keys))

    async def talk(self, seconds: float) -> None:
        """Say something new, and ask for some of what was cut off, until the time is over."""
        old = self._random.sample(self.unanswered, min(len(self.unanswered), LANES))
        calling = asyncio.create_task(self.call([*old, *self.new_keys()]))
        await asyncio.wait({calling}, timeout=seconds)
        await asyncio.sleep(max(seconds, 0.0) if calling.done() else 0.0)
        calling.cancel()
        await asyncio.wait({calling})

    async def _ask(self, client: httpx2.AsyncClient, key: str) -> None:
        said = {"model": "main", "messages": [{"role": "user", "content": f"wait 0.2 {key}"}]}
        headers = {"Idempotency-Key": key, "X-Segue-Conversation": key.partition("-")[0]}
        async with self._free:
            while True:
                try:
                    answer = await client.post(self._address, json=said, headers=headers)
                except httpx2.TransportError:
                    await asyncio.sleep(0.05)
                    continue
                if answer.status_code == 200:
                    found = answer.json()
                    self.outcomes[key].add((found["id"], found["choices"][0]["message"]["content"]))
                    return
                assert answer.status_code == 503, answer.text
                await asyncio.sleep(0.05)


def _said(tx: Transaction) -> list[str]:
    """What programs have said, in all conversations."""
    sessions = list(tx.sessions.in_order())
    return [row.content or "" for one in sessions for row in tx.messages.of(one.id) if row.role == "user"]


@pytest.fixture
def port() -> Iterator[HeldPort]:
    held = HeldPort()
    yield held
    held.close()


@pytest.fixture
def house(fork_server: ForkServer, tmp_path: Path, place: str | Path, port: HeldPort) -> Iterator[ForkedHouse]:
    queue, gateway = {"debounce": 0, "cap": 1000}, {"port": port.number}
    more = {"database": place} if isinstance(place, str) else {}
    made = ForkedHouse(fork_server, tmp_path, {}, queue=queue, gateway=gateway, **more)
    yield made
    made.close()


def test_every_call_with_a_key_has_one_outcome(house: ForkedHouse, place: str | Path, port: HeldPort) -> None:
    made = house.ask("tokens", "add", "laptop", "--scope", "write")
    found = _TOKEN.search(made.stdout)
    assert found is not None, made.stderr
    later = house.folder / "later"
    later.write_text(str(rounds(120, in_torture=0)))  # under torture, the minute after the last kill is waited for

    async def work() -> Programs:
        chance, programs = random.Random(2), Programs(f"http://127.0.0.1:{port.number}", found[0])
        for _ in range(KILLS):
            life = house.begin()
            await programs.talk(chance.uniform(*LIVES))
            life.kill()
            await asyncio.to_thread(life.wait)
        print(f"{KILLS} kills, {len(programs.outcomes)} calls, {len(programs.unanswered)} without an outcome yet")
        house.begin(launcher=SUPPORT / "late_launcher.py", SEGUE_TEST_LATER=str(later))
        await programs.call(programs.unanswered)
        await programs.call(list(programs.outcomes))
        return programs

    programs = asyncio.run(work())
    assert programs.outcomes
    assert {key: len(found) for key, found in programs.outcomes.items() if len(found) != 1} == {}
    assert all(text == f"You said: wait 0.2 {key}" for key, ((_, text),) in programs.outcomes.items())
    with SqlStore(engine_at(house.home / "state.db" if isinstance(place, Path) else place)) as store:
        entries = store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))
        said = store.read(OWNER, _said)
    assert {entry.state for entry in entries} == {"done"}
    assert Counter(said) == Counter(f"wait 0.2 {key}" for key in programs.outcomes)
