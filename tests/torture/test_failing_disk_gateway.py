"""A gateway whose disk fails for a while: nothing is confirmed that is not safe, and on it goes by itself."""

from pathlib import Path

import pytest
from disk_faults import Fault, FaultyDisk
from fault_sweep import status
from lane_house import Building, dm
from power import Disk
from told_files import told_of
from waiting import DEADLINE, until

from segue.core.errors import StoreFault
from segue.core.inbound import Inbound
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import connecting
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage

pytestmark = pytest.mark.torture


def test_what_arrives_is_not_confirmed_and_answered_once_the_disk_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "FIRST_PAUSE", 0.1)
    stage = Stage()
    disk = FaultyDisk(Disk(tmp_path))
    path = tmp_path / "state.db"
    with told_of(tmp_path, disk.told), SqlStore(SqliteEngine(path)) as store:
        building = Building(store, stage)

        async def work() -> None:
            stage.say(dm("alice"), "before")
            await building.quiet(DEADLINE)
            disk.fail(1, Fault.FAILS)
            try:
                late = stage.say(dm("alice"), "meanwhile")
                with pytest.raises(StoreFault, match="failed"):
                    await building.gateway.desk.receive(Inbound(dm("bob"), "direct", "Take this."))
                link = building.gateway.connections[0].link
                await until(lambda: link.trouble, "a try to take it in")
                looks = stage.looks
                await until(lambda: stage.looks >= looks + 3, "more tries")
                assert late not in stage.confirmed
                with SqlStore(SqliteEngine(path, read_only=True)) as another:
                    watched, _ = another.read(OWNER, status)
                    assert watched.inbox["waiting"] == 0, "what is there can be read, and nothing came to it"
            finally:
                disk.mend()
            await until(lambda: late in stage.confirmed, "what arrived meanwhile taken in")
            await building.quiet(DEADLINE)

        building.run(work, 5 * DEADLINE)
        said = "".join(stage.posted_to("alice"))
        assert (said.count("before"), said.count("meanwhile")) == (1, 1)
        assert stage.posted_to("bob") == [], "nobody was told that it had been taken"
