"""The power is cut at any change of any file: what had returned is there, and every write is whole or absent."""

import os
from pathlib import Path

import pytest
from power import Disk
from power_cuts import cut_lives
from told_files import Change, Kind
from torture_rounds import rounds

from segue.core.errors import StoreError
from segue.storage import connection

pytestmark = pytest.mark.torture

SEED = int(os.environ.get("SEGUE_SEED", "1"))
"""Another one may be tried, or the one that a failure named."""
CUTS = 150


def test_nothing_that_returned_is_lost(tmp_path: Path) -> None:
    tally = cut_lives(tmp_path, SEED, rounds(CUTS, in_torture=5_000))
    print(tally)
    assert not tally.wrong, tally.wrong[:3]
    assert 0 < tally.undone < tally.cuts, "some cuts come before what they cut off is safe, and some behind"
    for name in ("write of state.db", "write of state.db-wal", "sync of state.db-wal", "moment of rest"):
        assert name in tally.moments


def test_nothing_is_lost_while_another_thread_takes_the_log_in(tmp_path: Path) -> None:
    tally = cut_lives(tmp_path, SEED, rounds(40, in_torture=1_000), is_repeatable=False)
    print(tally)
    assert not tally.wrong, tally.wrong[:3]


def test_with_less_care_the_power_takes_what_had_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same cuts, while commits do not wait for the disk."""
    monkeypatch.setattr(connection, "SYNCHRONOUS", "NORMAL")
    tally = cut_lives(tmp_path, SEED, CUTS // 5)
    print(tally)
    assert tally.lost


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_on_a_disk_that_lies_nothing_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The control of the disk: one that says it has synced a file and has not."""
    take = Disk.take

    def lying(disk: Disk, change: Change) -> None:
        if (change.kind, change.name) != (Kind.SYNC, name):
            take(disk, change)

    monkeypatch.setattr(Disk, "take", lying)
    with pytest.raises((StoreError, AssertionError)):
        assert not cut_lives(tmp_path, SEED, CUTS).wrong
