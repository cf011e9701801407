"""A disk that is full or fails, at every single change: nothing acknowledged is lost, and on it goes when it is mended.

Each thing that the disk is asked to do fails once and for good, with both errors there are. A write that was refused
may still be found by the next process, whole: whoever brings it again has it once.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from all_rows import all_rows, is_sound
from bustle import bench_on
from disk_faults import FaultyDisk
from fault_sweep import SweptStore, every_fault
from lane_bench import Bench
from lane_model import SEATS
from power import Disk, place
from told_files import told_of
from torture_rounds import rounds

from segue.core.inbound import Cursor, Inbound
from segue.core.inbox import InboxState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import TurnState
from segue.sessions.accepting import Accepted
from segue.sessions.admitting import admit_all
from segue.storage import checkpoints, sqlite
from segue.storage.connection import SqliteConnection
from segue.storage.schema import SCHEMA_VERSION
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

pytestmark = pytest.mark.torture

SEED = int(os.environ.get("SEGUE_SEED", "1"))
ALICE = SEATS[0]


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
        try:
            yield store, disk
        finally:
            disk.mend()  # closing would only be told of what SQLite itself passes over then


class _Plain(SqlStore):
    """The same store, whose writes are left in peace."""

    def __init__(self, store: SweptStore) -> None:
        super().__init__(store.engine)


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
    assert store.tally["ambiguous"] > 0, "some are found by the next process although they were refused"


@pytest.mark.parametrize("way", [SqlStore.write_at_once, SqlStore.write_together])
def test_every_change_may_fail_when_messages_share_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., list[Any]]
) -> None:
    """As the desk of a gateway puts them down."""
    monkeypatch.setattr(sqlite, "QUICK_SECONDS", 60.0)  # however slow the machine is
    with swept(tmp_path) as (store, _):
        bench = bench_on(_Plain(store))
        arrived = [(Inbound(one.source, f"m{at}", "words " * 200), bench.now) for at, one in enumerate(SEATS)]

        def put_down(one: SqlStore) -> list[Accepted]:
            (outcome,) = way(one, OWNER, [partial(admit_all, arrived=arrived, routing=bench.routing)])
            if isinstance(outcome, Exception):
                raise outcome
            return list(outcome)

        accepted = store.sweep(put_down, is_repeatable=True)
        assert all(one.is_new for one in accepted)
        assert not any(one.is_new for one in put_down(store))
        bench.close()
        print(dict(store.tally))
    assert store.tally["ambiguous"] > 0


def test_an_error_that_is_passed_over_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a store that keeps the disk's errors to itself."""

    @contextmanager
    def silence(_engine: SqliteEngine) -> Iterator[None]:
        with suppress(apsw.Error):
            yield

    with swept(tmp_path) as (store, _):
        bench = bench_on(store)
        monkeypatch.setattr(SqliteEngine, "_our_errors", silence)
        with pytest.raises(AssertionError, match="it returned, and nothing was written"):
            talk(bench)
        bench.close()


def test_writes_without_transactions_would_be_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other control: each statement is a commit of its own."""

    @contextmanager
    def piecemeal(_connection: SqliteConnection, _begin: str, *, is_patient: bool = True) -> Iterator[None]:
        yield

    with swept(tmp_path) as (store, _):
        bench = bench_on(store)
        monkeypatch.setattr(SqliteConnection, "transaction", piecemeal)
        with pytest.raises(AssertionError, match="unknown"):
            talk(bench)
        bench.close()


def test_every_change_of_the_index_may_fail(tmp_path: Path) -> None:
    with swept(tmp_path) as (store, _):
        bench = bench_on(_Plain(store))
        talk(bench)
        bench.close()
        store.sweep(lambda one: one.index_all())
        assert store.read(OWNER, lambda tx: tx.search.is_whole())
        assert store.read(OWNER, lambda tx: tx.search.state()).indexed_to > 0
        print(dict(store.tally))
    assert store.tally["faults"] > 20


def test_a_file_may_fail_at_every_change_as_it_is_rewritten(tmp_path: Path) -> None:
    with swept(tmp_path) as (store, _):
        bench = bench_on(_Plain(store))
        talk(bench)
        bench.close()
        store.sweep(lambda one: one.compact(), stride=rounds(17, in_torture=1))
        print(dict(store.tally))
    assert store.tally["faults"] > 20


def test_a_new_file_may_fail_at_every_change(tmp_path: Path) -> None:
    """Whoever tries again when the disk is mended has an empty database."""
    home = tmp_path / "home"
    failures = 0
    for nth, fault in every_fault(rounds(17, in_torture=1)):
        disk = FaultyDisk(Disk(place({}, home)))
        with told_of(home, disk.told):
            disk.fail(nth, fault)
            try:
                opened = SqliteEngine(home / "state.db")
            except fault.said:
                failures += 1
                disk.mend()
            else:
                disk.mend()
                opened.close()
            engine = SqliteEngine(home / "state.db")
            assert is_sound(engine), (nth, fault)
            assert all_rows(engine)["schema_version"] == {(SCHEMA_VERSION,)}, (nth, fault)
            engine.close()
        if disk.failed is None:
            break
    print(failures)
    assert failures > 20


class _NoThread:
    def __init__(self, **_how: object) -> None: ...

    def start(self) -> None:
        raise RuntimeError("there can be no more threads")


def test_a_log_that_cannot_be_taken_in_keeps_what_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken in behind the commit, which stands whatever becomes of that."""
    monkeypatch.setattr(checkpoints, "CHECKPOINT_EVERY", 1)
    monkeypatch.setattr(checkpoints, "threading", SimpleNamespace(Lock=threading.Lock, Thread=_NoThread))
    count = checkpoints.Checkpoints.count
    chance = random.Random(SEED)
    brought: set[str] = set()
    with swept(tmp_path) as (store, disk):
        bench = bench_on(_Plain(store))
        for nth, fault in every_fault():

            def failing(self: checkpoints.Checkpoints, writer: SqliteConnection, fault: Any = (nth, fault)) -> None:
                disk.fail(*fault)
                count(self, writer)

            name = f"m{len(brought)}"
            with monkeypatch.context() as patch:
                patch.setattr(checkpoints.Checkpoints, "count", failing)
                say(bench, "words", name)
            if disk.failed is None:
                break
            brought.add(name)
            if fault.is_lasting:
                with pytest.raises(fault.said):
                    say(bench, "not now", "refused")
            image = place(disk.disk.without_power(chance), tmp_path / "image")
            assert held_in(image / "state.db") >= brought, f"seed {SEED}, {fault.name} at change {nth}"
            disk.mend()
        bench.close()
    print(len(brought))
    assert len(brought) > 20


def held_in(path: Path) -> set[str]:
    """The messages of a file that is sound."""
    with SqlStore(engine := SqliteEngine(path)) as store:
        assert is_sound(engine)
        return {entry.message_id for entry in store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))}
