"""A gateway whose disk fails for a while: nothing is confirmed that is not safe, and on it goes by itself."""

import asyncio
from pathlib import Path

import pytest
from disk_faults import Fault, FaultyDisk
from fault_sweep import status
from lane_house import Building, dm
from power import Disk
from told_files import told_of

from segue.core.errors import StoreFault
from segue.core.inbound import Inbound
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage

pytestmark = pytest.mark.torture


def test_what_arrives_is_not_confirmed_and_answered_once_the_disk_is_mended(tmp_path: Path) -> None:
    stage = Stage()
    disk = FaultyDisk(Disk(tmp_path))
    path = tmp_path / "state.db"
    with told_of(tmp_path, disk.told), SqlStore(SqliteEngine(path)) as store:
        building = Building(store, stage)

        async def work() -> None:
            stage.say(dm("alice"), "before")
            await building.quiet()
            disk.fail(1, Fault.FAILS)
            try:
                late = stage.say(dm("alice"), "meanwhile")
                with pytest.raises(StoreFault, match="failed"):
                    await building.gateway.desk.receive(Inbound(dm("bob"), "direct", "Take this."))
                await asyncio.sleep(1)
                assert late not in stage.confirmed
                with SqlStore(SqliteEngine(path, read_only=True)) as another:
                    watched, _ = another.read(OWNER, status)
                    assert watched.inbox["waiting"] == 0, "what is there can be read, and nothing came to it"
            finally:
                disk.mend()
            async with asyncio.timeout(5):
                while late not in stage.confirmed:
                    await asyncio.sleep(0.02)
            await building.quiet()

        building.run(work)
        said = "".join(stage.posted_to("alice"))
        assert (said.count("before"), said.count("meanwhile")) == (1, 1)
        assert stage.posted_to("bob") == [], "nobody was told that it had been taken"
