"""A gateway whose disk really is full: nothing is confirmed that is not safe, and on it goes with room again."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_launcher import fill
from lane_house import Building, dm
from waiting import DEADLINE, until

from segue.core.errors import StoreError
from segue.core.inbound import Inbound
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import connecting
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can mount a small disk"),
]

LONG = "This is said at length. " * 5_000
"""More than fits into what SQLite was given before the disk was full."""


@pytest.fixture(autouse=True)
def _tries_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "FIRST_PAUSE", 0.1)


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
        await building.quiet(DEADLINE)
        fill(disk / "ballast")
        link = building.gateway.connections[0].link
        late = [stage.say(dm("alice"), f"{number} {LONG}") for number in range(3)]
        inbound = Inbound(dm("bob"), "direct", LONG)
        with pytest.raises(StoreError, match="is full: nothing was written"):
            await building.gateway.desk.receive(inbound)
        await until(lambda: link.trouble, "a try to take it in")
        looks = stage.looks
        await until(lambda: stage.looks >= looks + 3, "more tries")
        assert not stage.confirmed & set(late)
        told.append(str(link.trouble))
        entries = store.read(OWNER, lambda tx: tx.inbox.listed(("waiting", "running", "done")))
        assert [entry.text for entry in entries] == ["before"], "what is there can be read"
        (disk / "ballast").unlink()
        await until(lambda: stage.confirmed >= set(late), "all of it taken in")
        await building.quiet(DEADLINE)

    building.run(work, 5 * DEADLINE)
    assert "is full: nothing was written" in told[0], "the connection says why"
    said = "".join(stage.posted_to("alice"))
    assert [said.count(f"{number} This is said") for number in range(3)] == [1, 1, 1]


def test_with_room_all_of_it_is_confirmed_at_once(store: SqlStore) -> None:
    """The control: the same messages on the same disk, which is not full."""
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        names = [stage.say(dm("alice"), f"{number} {LONG}") for number in range(3)]
        await until(lambda: stage.confirmed >= set(names), "all of it taken in")
        assert stage.looks <= 2, "without a second try"
        await building.quiet(DEADLINE)

    building.run(work, 5 * DEADLINE)
    assert building.gateway.connections[0].link.trouble is None


def test_commands_that_only_read_are_answered_as_soon_as_they_can_be_put_down(disk: Path, store: SqlStore) -> None:
    """Where there is hardly any room, what is long does not fit; a question about how things stand does."""
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        for number in range(30):
            stage.say(dm("alice"), f"{number} {'word ' * 400}")
        await building.quiet(DEADLINE)
        fill(disk / "ballast")
        with pytest.raises(StoreError, match="is full"):
            await building.gateway.desk.receive(Inbound(dm("bob"), "direct", LONG * 20))
        ballast = disk / "ballast"
        os.truncate(ballast, ballast.stat().st_size - 256 * 1024)
        stage.say(dm("alice"), "/status")
        await until(lambda: any("Model" in text for text in stage.posted_to("alice")), "an answer to the command")
        (disk / "ballast").unlink()
        await building.quiet(DEADLINE)

    building.run(work, 5 * DEADLINE)
