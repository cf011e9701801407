"""Files that are damaged, foreign or too new, disks that are full or read-only: a clear sentence, and nothing lost."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import apsw
import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.core.errors import (
    ForeignDatabase,
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from segue.storage.ownership import APPLICATION_ID
from segue.storage.sqlite import SqliteEngine


def test_a_file_that_is_no_database_is_left_alone(home: Path) -> None:
    home.mkdir()
    (home / "state.db").write_text("dear diary, " * 100)
    with pytest.raises(ForeignDatabase, match="is no database"):
        SessionDB()
    assert (home / "state.db").read_text() == "dear diary, " * 100


def test_another_programs_database_is_left_alone(home: Path) -> None:
    home.mkdir()
    foreign = apsw.Connection(str(home / "state.db"))
    foreign.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY); CREATE TABLE messages (id INTEGER)")
    foreign.close()
    before = (home / "state.db").read_bytes()
    with pytest.raises(ForeignDatabase, match="another program's database"):
        SessionDB()
    assert (home / "state.db").read_bytes() == before


def test_an_empty_file_becomes_a_database(home: Path) -> None:
    home.mkdir()
    (home / "state.db").touch()
    with SessionDB() as db:
        assert db.session_count() == 0


def test_our_files_are_marked(home: Path) -> None:
    SessionDB().close()
    assert int.from_bytes((home / "state.db").read_bytes()[68:72], "big") == APPLICATION_ID


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_in_a_sentence(home: Path, read_only: bool) -> None:
    SessionDB().close()
    newer = apsw.Connection(str(home / "state.db"))
    newer.execute("UPDATE schema_version SET version = 999")
    newer.close()
    with pytest.raises(SchemaTooNew, match=r"newer Segue \(schema 999"):
        SessionDB(read_only=read_only)


def test_an_older_schema_is_brought_up_to_date_with_its_rows(home: Path) -> None:
    with SessionDB() as db:
        db.create_session("a", "cli", title="kept")
        db.append_message("a", "user", "kept too")
    older = apsw.Connection(str(home / "state.db"))
    older.execute("UPDATE schema_version SET version = 0")
    older.execute("DROP INDEX idx_sessions_recent")
    older.execute("ALTER TABLE sessions DROP COLUMN context_window")
    older.execute("ALTER TABLE messages DROP COLUMN provider")
    older.close()
    with pytest.raises(SchemaTooOld, match="open it once for writing"):
        SessionDB(read_only=True)
    with SessionDB() as db:
        session = db.get_session("a")
        assert session is not None
        assert (session["title"], session["context_window"]) == ("kept", None)
        assert db.get_messages("a")[0]["provider"] is None
    with SessionDB(read_only=True) as db:
        assert db.message_count() == 1


def append_to_all(db: SessionDB) -> None:
    for number in range(200):
        db.append_message(f"s{number}", "user", "more")


def test_a_corrupt_page_stops_writing_and_says_what_to_do(home: Path) -> None:
    with SessionDB() as db:
        for number in range(200):
            db.create_session(f"s{number}", "cli")
            db.append_message(f"s{number}", "user", "x" * 500)
    whole = (home / "state.db").read_bytes()
    start = len(whole) // 2 // 4096 * 4096
    with (home / "state.db").open("r+b") as file:
        file.seek(start)
        file.write(os.urandom(16 * 4096))
    with SessionDB() as db:
        with pytest.raises(StoreCorrupt, match="segue doctor --fix"):
            append_to_all(db)
        (home / "whole").write_bytes(whole)
        subprocess.run(
            ["cp", str(home / "whole"), str(home / "state.db")], check=True
        )  # from outside, as a person would
        with pytest.raises(StoreCorrupt, match="nothing more is written"):
            db.create_session("fresh", "cli")


FULL_DISK = """
    import resource, signal, sys
    from segue import SegueError, SessionDB
    db = SessionDB(sys.argv[1])
    db.create_session("a", "cli")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    stored, error = 0, None
    try:
        for number in range(5000):
            db.append_message("a", "user", "y" * 3000)
            stored += 1
    except SegueError as caught:
        error = caught
    print(type(error).__name__, stored, db.message_count("a"), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    db.append_message("a", "user", "after")
    print(db.message_count("a"), db.get_session("a")["message_count"])
"""


def test_a_full_disk_fails_the_write_loses_nothing_and_recovers_without_a_restart(home: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(home / "state.db")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0, result.stderr
    kind, stored, counted, after, kept = result.stdout.split()
    assert kind in ("StoreFull", "StoreFault")
    assert int(stored) == int(counted) > 0
    assert int(after) == int(kept) == int(stored) + 1
    with SessionDB() as db:
        assert db.message_count("a") == int(after)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can mount a small disk")
def test_a_really_full_small_disk_says_that_it_is_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "segue-test", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        with SessionDB(disk / "home" / "state.db") as db:
            db.create_session("a", "cli")
            stored: list[int] = []
            with pytest.raises(StoreFull, match="is full: nothing was written"):
                stored.extend(db.append_message("a", "user", "z" * 3000) for _ in range(5000))
            assert db.message_count("a") == len(stored) > 0
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can mount a read-only disk")
def test_on_a_read_only_disk_writing_is_refused_and_reading_works(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "segue-test", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    path = disk / "home" / "state.db"
    try:
        with SessionDB(path) as db:
            db.create_session("a", "cli")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(StoreReadOnly, match=r"(?i)read-only"):
            SessionDB(path)
        with SessionDB(path, read_only=True) as db:
            assert db.session_count() == 1
        with pytest.raises(StoreReadOnly, match=r"(?i)read-only file system"):
            SessionDB(disk / "other" / "state.db")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_store_opened_for_reading_refuses_to_write(home: Path) -> None:
    SessionDB().close()
    with SessionDB(read_only=True) as db, pytest.raises(StoreReadOnly, match="opened for reading only"):
        db.create_session("a", "cli")


def test_reading_only_needs_a_database_that_is_there(home: Path) -> None:
    with pytest.raises(StoreReadOnly, match="There is no database"):
        SessionDB(read_only=True)


def test_a_closed_store_says_so(home: Path) -> None:
    db = SessionDB()
    db.close()
    db.close()
    with pytest.raises(StoreError, match="closed"):
        db.session_count()


def test_an_sqlite_with_the_checkpoint_race_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreError, match="can corrupt its files"):
        SqliteEngine(home / "state.db")
