"""The lanes of a gateway that is gone are worked in again: at once where that can be known, else when leases are over.

Leases are so long here that nobody waits for their end, and are over when a test says so. What is promised of them as
they are follows from how long they are, and how often a gateway looks.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from gateway_nursery import Nursery
from lane_house import dm
from waiting import DEADLINE, until

from segue.core.leases import LEASE_SECONDS
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import delivery, lanes
from segue.gateway.connecting import FIRST_PAUSE
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.remote import Backstage

pytestmark = pytest.mark.torture

TAKEN_OVER, HANDED_OVER = 20.0, 3.0
"""Seconds. For handing over, one is promised on a machine that has nothing else to do."""
WORKS_LONG = 36_000.0
LONG_LEASE = 36_000.0


class Two:
    """A gateway that goes, one that stays, and the stage of both."""

    def __init__(self, nursery: Nursery, folder: Path, place: str | Path, lease_seconds: float = LONG_LEASE) -> None:
        self.stage, self._nursery, self._place = Stage(), nursery, place
        self._socket, self._tools, self._looks = folder / "socket", folder / "tools", folder / "looks"
        self._tools.touch()
        self._looks.touch()
        self._request: dict[str, Any] = {
            "database": str(place),
            "socket": str(self._socket),
            "tool_log": str(self._tools),
            "has_key": True,
            "lease_seconds": lease_seconds,
        }
        self._living: list[int] = []

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def all_of_it() -> None:
            async with Backstage(self.stage, self._socket):
                try:
                    await work()
                finally:
                    for pid in self._living:
                        await asyncio.to_thread(self._nursery.end, pid)

        asyncio.run(all_of_it())

    async def begin(self, pause: float = 0.03, **more: Any) -> int:
        pid = await asyncio.to_thread(self._nursery.start, self._request | {"pause": pause} | more)
        self._living.append(pid)
        return pid

    async def begin_another(self) -> None:
        """One that looks often; it has when this returns."""
        await self.begin(looks_often=True, looks=str(self._looks))
        await self.look_more()

    async def look_more(self) -> None:
        """Wait until the other one has looked for something to do, again and again."""
        before = len(self._looks.read_text().splitlines())
        await until(lambda: len(self._looks.read_text().splitlines()) >= before + 5, "looks of the other gateway")

    async def end(self, pid: int, sign: int = signal.SIGKILL) -> None:
        self._living.remove(pid)
        await asyncio.to_thread(self._nursery.end, pid, sign)

    def end_leases(self) -> None:
        """It is as if their time were over."""
        with SqlStore(engine_at(self._place)) as store, store._engine.writing(DEADLINE, OWNER) as executor:
            executor.run("UPDATE leases SET expires_at = expires_at - :long", {"long": 2 * LONG_LEASE})

    def is_looking(self) -> bool:
        """Whether the tool is at work."""
        return bool(self._tools.read_text())


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["on this machine", "on another"])
def test_what_a_killed_gateway_was_at_is_carried_on(
    nursery: Nursery, tmp_path: Path, place: str | Path, is_elsewhere: bool
) -> None:
    two = Two(nursery, tmp_path, place)

    async def work() -> None:
        goes = await two.begin(WORKS_LONG, **({"host": "elsewhere"} if is_elsewhere else {}))
        two.stage.say(dm("alice"), "one tool")
        await until(two.is_looking, "the tool at work")
        await two.begin_another()
        assert two.stage.posted == [], "as long as the one lives the other keeps its hands off"
        await two.end(goes)
        if is_elsewhere:
            await two.look_more()
            assert two.stage.posted == [], "of another machine nobody knows before the lease is over"
            two.end_leases()
        await until(lambda: two.stage.posted_to("alice"), "the answer of the other gateway")

    two.run(work)


def test_who_ends_well_hands_over_at_once(nursery: Nursery, tmp_path: Path, place: str | Path) -> None:
    """Without a release the other gateway would wait for the end of leases which never comes."""
    two = Two(nursery, tmp_path, place)

    async def work() -> None:
        goes = await two.begin(host="elsewhere")
        two.stage.say(dm("alice"), "one")
        await until(lambda: two.stage.posted_to("alice"), "the first answer")
        await two.begin_another()
        await two.end(goes, signal.SIGTERM)
        two.stage.say(dm("bob"), "two")
        await until(lambda: two.stage.posted_to("bob"), "the answer of the other gateway")

    two.run(work)


def test_how_often_a_gateway_looks_is_often_enough_for_what_is_promised() -> None:
    look = max(lanes.LOOK_SECONDS, delivery.LOOK_SECONDS, FIRST_PAUSE)
    assert LEASE_SECONDS + 2 * look < TAKEN_OVER, "the platform is taken over first, then the lane"
    assert 2 * look < HANDED_OVER


if os.environ.get("SEGUE_TORTURE"):

    def test_with_leases_as_they_are_a_lane_waits_for_the_end_of_one(
        nursery: Nursery, tmp_path: Path, place: str | Path
    ) -> None:
        two = Two(nursery, tmp_path, place, LEASE_SECONDS)
        seconds: list[float] = []

        async def work() -> None:
            goes = await two.begin(WORKS_LONG, host="elsewhere")
            two.stage.say(dm("alice"), "one tool")
            await until(two.is_looking, "the tool at work")
            await two.begin_another()
            await two.end(goes)
            gone_at = time.monotonic()
            await until(lambda: two.stage.posted_to("alice"), "the answer of the other gateway")
            seconds.append(time.monotonic() - gone_at)

        two.run(work)
        print(f"{str(place).partition(':')[0][-8:]}: answered {seconds[0]:.2f} s after the kill.")
        assert seconds[0] > LEASE_SECONDS / 3
