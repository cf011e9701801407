"""A disk that is full or fails, at every single change: nothing acknowledged is lost, and on it goes when it is mended.

Each thing that the disk is asked to do fails once and for good, with both errors there are. A write that was refused
may still be found by the next process, whole: whoever brings it again has it once.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bustle import bench_on
from disk_faults import Fault, FaultyDisk
from fault_sweep import SweptStore
from lane_bench import Bench
from lane_model import SEATS
from power import Disk
from told_files import told_of

from segue.core.inbound import Cursor, Inbound
from segue.core.turns import TurnState
from segue.storage import checkpoints
from segue.storage.connection import SqliteConnection

pytestmark = pytest.mark.torture

SEED = int(os.environ.get("SEGUE_SEED", "1"))
ALICE, BOB = SEATS[0], SEATS[3]


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the same act leaves the same rows."""
    monkeypatch.setattr(SqliteConnection, "now", lambda _: 1_750_000_000.0)


@contextmanager
def swept(folder: Path) -> Iterator[tuple[SweptStore, FaultyDisk]]:
    home = folder / "home"
    home.mkdir()
    disk = FaultyDisk(Disk(home))
    with told_of(home, disk.told), SweptStore(home / "state.db", disk, SEED) as store:
        yield store, disk


def say(bench: Bench, text: str, name: str) -> None:
    bench.now += 1
    bench.arrive(Inbound(ALICE.source, name, text, cursor=Cursor("offset", name)))


def work(bench: Bench, fresh: str) -> None:
    bench.now += 1
    bench.fresh = fresh
    bench.work(ALICE.lane, bench.due(ALICE.lane))


def talk(bench: Bench) -> None:
    """A message is answered with the help of a tool, and commands are carried out."""
    say(bench, "Please look. " * 300, "m1")
    work(bench, "first")
    bench.say_between(ALICE.lane, "I look.", "result")
    say(bench, "And once more.", "m2")
    bench.end(ALICE.lane, TurnState.DONE, "I have looked.")
    say(bench, "/title tea", "m3")
    say(bench, "/new", "m4")
    work(bench, "second")
    work(bench, "third")


def test_every_change_of_every_write_may_fail(tmp_path: Path) -> None:
    with swept(tmp_path) as (store, _):
        bench = bench_on(store)
        talk(bench)
        bench.close()
        print(dict(store.tally))
        assert store.tally["faults"] > 500
        assert store.tally["ambiguous"] > 0
