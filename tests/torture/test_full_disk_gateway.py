"""A gateway whose disk really is full: nothing is confirmed that is not safe, and on it goes with room again."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_launcher import fill
from lane_house import Building, dm

from segue.core.errors import StoreError
from segue.core.inbound import Inbound
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can mount a small disk"),
]

LONG = "This is said at length. " * 5_000
"""More than fits into what SQLite was given before the disk was full."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "segue-test", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def store(disk: Path) -> Iterator[SqlStore]:
    with SqlStore(engine_at(disk / "state.db")) as opened:
        yield opened


def test_what_arrives_is_not_confirmed_and_answered_once_there_is_room(disk: Path, store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)
    told: list[str] = []

    async def work() -> None:
        stage.say(dm("alice"), "before")
        await building.quiet()
        fill(disk / "ballast")
        late = [stage.say(dm("alice"), f"{number} {LONG}") for number in range(3)]
        inbound = Inbound(dm("bob"), "direct", LONG)
        with pytest.raises(StoreError, match="is full: nothing was written"):
            await building.gateway.desk.receive(inbound)
        await asyncio.sleep(2.5)
        assert not stage.confirmed & set(late)
        link = building.gateway.connections[0].link
        told.append(link.trouble or "")
        entries = store.read(OWNER, lambda tx: tx.inbox.listed(("waiting", "running", "done")))
        assert [entry.text for entry in entries] == ["before"], "what is there can be read"
        (disk / "ballast").unlink()
        async with asyncio.timeout(30):
            while not stage.confirmed >= set(late):
                await asyncio.sleep(0.05)
        await building.quiet()

    building.run(work, 90.0)
    assert "is full: nothing was written" in told[0], "the connection says why"
    said = "".join(stage.posted_to("alice"))
    assert [said.count(f"{number} This is said") for number in range(3)] == [1, 1, 1]


def test_with_room_all_of_it_is_confirmed_at_once(store: SqlStore) -> None:
    """The control: the same messages on the same disk, which is not full."""
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        names = [stage.say(dm("alice"), f"{number} {LONG}") for number in range(3)]
        async with asyncio.timeout(2.5):
            while not stage.confirmed >= set(names):
                await asyncio.sleep(0.02)
        await building.quiet()

    building.run(work)
    assert building.gateway.connections[0].link.trouble is None


def test_commands_that_only_read_are_answered_as_soon_as_they_can_be_put_down(disk: Path, store: SqlStore) -> None:
    """Where there is hardly any room, what is long does not fit; a question about how things stand does."""
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        for number in range(30):
            stage.say(dm("alice"), f"{number} {'word ' * 400}")
        await building.quiet()
        fill(disk / "ballast")
        with pytest.raises(StoreError, match="is full"):
            await building.gateway.desk.receive(Inbound(dm("bob"), "direct", LONG * 20))
        ballast = disk / "ballast"
        os.truncate(ballast, ballast.stat().st_size - 256 * 1024)
        stage.say(dm("alice"), "/status")
        async with asyncio.timeout(20):
            while not any("Model" in text for text in stage.posted_to("alice")):
                await asyncio.sleep(0.05)
        (disk / "ballast").unlink()
        await building.quiet()

    building.run(work)
