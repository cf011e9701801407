"""A turn that kills its gateway again and again is given up, and the lane goes on without it."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_nursery import Nursery
from lane_house import dm
from waiting import DEADLINE, POLL_INTERVAL

from segue.core.lifecycle import Phase
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.remote import Backstage

pytestmark = pytest.mark.torture

KEY = "agent:main:scripted:dm:alice"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not where tests usually are: the name of a socket has to be short."""
    with tempfile.TemporaryDirectory(prefix="stage-") as name:
        yield Path(name)


async def deaths(nursery: Nursery, request: dict[str, Any], most: int, is_over: Callable[[], bool]) -> int:
    """One gateway after another, until one comes to where it is over, or so many have died; how many died."""
    for number in range(most):
        pid = await asyncio.to_thread(nursery.start, request)
        deadline = time.monotonic() + DEADLINE
        while not (is_dead := await asyncio.to_thread(nursery.is_gone, pid, 0.0)) and not is_over():
            assert time.monotonic() < deadline, "it neither dies nor answers"
            await asyncio.sleep(POLL_INTERVAL)
        if not is_dead:
            await asyncio.to_thread(nursery.end, pid)
            return number
    return most


def request_in(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "database": str(folder / "state.db"),
        "socket": str(folder / "socket"),
        "tool_log": str(folder / "tools"),
        "pause": 0.01,
        "has_key": True,
        "looks_often": True,
        **more,
    }


def test_the_third_time_it_is_dead_its_sender_told_and_the_lane_begins_anew(nursery: Nursery, folder: Path) -> None:
    stage, request = Stage(), request_in(folder, most_attempts=3)
    said: list[str] = []
    phases: list[Phase] = []

    async def work() -> None:
        async with Backstage(stage, folder / "socket"):
            stage.say(dm("alice"), "m1 poison")
            assert await deaths(nursery, request, 10, lambda: bool(stage.posted_to("alice"))) == 3
            with SqlStore(engine_at(folder / "state.db")) as store:
                lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
                assert lane is not None
                phases.append(lane.phase)
                (dead,) = store.read(OWNER, lambda tx: tx.inbox.listed(("dead",)))
                said.append(dead.reason or "")
            stage.say(dm("bob"), "m2 please")
            stage.say(dm("alice"), "m3 please")

            def is_answered() -> bool:
                return all(name in "".join(stage.posted_to(who)) for who, name in (("bob", "m2."), ("alice", "m3.")))

            assert await deaths(nursery, request, 1, is_answered) == 0

    asyncio.run(work())
    assert (folder / "tools").read_text().split() == ["poison"] * 3
    assert phases == [Phase.SUSPENDED]
    assert "crashed repeatedly" in said[0]
    told = "".join(stage.posted_to("alice"))
    assert told.startswith("The gateway crashed repeatedly while it answered, and gives up.")
    assert told.count("m3.") == 1
    assert "".join(stage.posted_to("bob")).count("m2.") == 1


def test_without_a_limit_it_would_go_on_for_ever(nursery: Nursery, folder: Path) -> None:
    """The control: the same turn, and nobody who counts."""

    async def work() -> None:
        stage = Stage()
        async with Backstage(stage, folder / "socket"):
            stage.say(dm("alice"), "m1 poison")
            assert await deaths(nursery, request_in(folder), 6, lambda: bool(stage.posted)) == 6
            assert stage.posted == []

    asyncio.run(work())
