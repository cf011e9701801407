"""Several at one file: who waits, for how long, and who need not."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from waiting import wait_until

from segue import SessionDB
from segue.core.errors import StoreBusy
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions import starting
from segue.storage import connection, patience
from segue.storage.checkpoints import CHECKPOINT_EVERY
from segue.storage.patience import patiently
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.storage.waiting import A_READER, tell_wait, tell_waits_to


@pytest.fixture
def other(db: SessionDB, home: Path) -> Iterator[apsw.Connection]:
    """A connection of somebody else's, as another process would have one."""
    connection = apsw.Connection(str(home / "state.db"))
    yield connection
    connection.close()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite gives up waiting soon; whether to go on is then decided by us."""
    monkeypatch.setattr(connection, "BUSY_MILLISECONDS", 20)


def after(pauses: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Act when a writer has given up and paused that many times."""
    taken = iter(range(pauses))

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        if next(taken, None) == pauses - 1:
            act()

    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))


def test_a_writer_waits_for_another_and_loses_nothing(
    hurried: None, db: SessionDB, other: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.create_session("a", "cli")
    other.execute("BEGIN IMMEDIATE")
    after(3, lambda: other.execute("COMMIT"), monkeypatch)
    db.append_message("a", "user", "worth waiting for")
    assert not other.in_transaction, "it was waited for"
    assert db.message_count("a") == 1


def test_patience_ends_with_a_sentence(hurried: None, home: Path) -> None:
    SessionDB().close()
    other = apsw.Connection(str(home / "state.db"))
    other.execute("BEGIN IMMEDIATE")
    with SqlStore(SqliteEngine(home / "state.db"), patience=0.2) as store:
        with pytest.raises(StoreBusy, match="too long; try again"):
            store.write(OWNER_AT_CONSOLE, starting.create_session, Session("a", "cli", started_at=1.0))
        other.execute("COMMIT")
        store.write(OWNER_AT_CONSOLE, starting.create_session, Session("a", "cli", started_at=1.0))
    other.close()


@pytest.mark.parametrize(("seconds", "told"), [(0.9, 0), (5.0, 1)])
def test_what_is_waited_for_is_told_once_after_a_second(
    seconds: float, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, heard = [0.0], list[str]()

    def sleep(pause: float) -> None:
        clock[0] += pause

    def attempt(_left: float) -> None:
        if clock[0] < seconds:
            raise StoreBusy("held")

    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    tell_waits_to(heard.append)
    try:
        patiently(attempt, awaited="a friend")
    finally:
        tell_waits_to(None)
    assert heard == ["Waiting for a friend."] * told


def test_waiting_is_in_the_log_when_nobody_is_to_be_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    tell_wait(A_READER)
    assert caplog.messages == ["Waiting for another process that is reading the database."]


def test_waiting_is_by_chance_within_bounds_and_ends_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    def busy(seconds_left: float) -> None:
        assert seconds_left == pytest.approx(30 - clock[0])
        raise StoreBusy("busy")

    monkeypatch.setattr("segue.storage.patience.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("segue.storage.patience.time.sleep", sleep)
    with pytest.raises(StoreBusy):
        patiently(busy)
    assert 30 <= clock[0] <= 30.15
    assert all(0.020 <= wait <= 0.150 for wait in waits)
    assert len(set(waits)) > len(waits) / 2


def test_a_work_that_failed_for_another_reason_is_not_tried_again() -> None:
    tries = []

    def broken(_: float) -> None:
        tries.append(1)
        raise LookupError

    with pytest.raises(LookupError):
        patiently(broken)
    assert tries == [1]


def test_the_lock_is_taken_when_a_transaction_begins(db: SessionDB, other: apsw.Connection, home: Path) -> None:
    def work(tx: Transaction) -> str:
        with pytest.raises(apsw.BusyError):
            other.execute("BEGIN IMMEDIATE")
        return tx.scope.principal

    with SqlStore(SqliteEngine(home / "state.db")) as store:
        assert store.write(OWNER_AT_CONSOLE, work) == "owner"


def test_a_reader_is_answered_while_somebody_writes(db: SessionDB, other: apsw.Connection) -> None:
    db.create_session("a", "cli")
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO sessions (id, source, started_at) VALUES ('unfinished', 'cli', 1)")
    assert db.session_count() == 1
    other.execute("COMMIT")
    assert db.session_count() == 2


def test_a_commit_is_on_disk_before_it_returns(home: Path) -> None:
    engine = SqliteEngine(home / "state.db")
    with engine.alone() as connection:
        settings = {name: connection.value(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "mmap_size")}
        assert settings == {"journal_mode": "wal", "synchronous": 2, "mmap_size": 0}
        assert connection.value("PRAGMA foreign_keys") == 1
    engine.close()


def test_the_log_is_carried_over_every_fifty_writes(home: Path) -> None:
    with SessionDB() as db:
        before = (home / "state.db").stat().st_size
        for _ in range(CHECKPOINT_EVERY - 1):
            db.create_session()
        assert (home / "state.db").stat().st_size == before
        db.create_session()
        wait_until(lambda: (home / "state.db").stat().st_size > before, "the log in the file")  # taken in by a thread


def test_message_ids_ascend_whatever_was_deleted(db: SessionDB) -> None:
    db.create_session("a", "cli")
    db.create_session("b", "cli")
    first = db.append_message("a", "user", "one")
    last = db.append_message("b", "user", "two")
    db.delete_session("b")
    db.create_session("c", "cli")
    assert first < last < db.append_message("c", "user", "three")
