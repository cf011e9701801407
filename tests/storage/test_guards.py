"""What must not happen to the database file is refused, loudly, before it can do harm."""

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.core.errors import HomeRefused, StoreError, StoreForked
from segue.storage import guards
from segue.storage.sqlite import SqliteEngine


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_opening_a_database_file_by_path_is_refused_while_its_store_is_open(
    db: SessionDB, home: Path, suffix: str
) -> None:
    db.create_session("a", "cli")
    with pytest.raises(StoreError, match="would drop its locks"):
        (home / f"state.db{suffix}").read_bytes()


def test_the_file_is_neither_replaced_nor_removed_while_its_store_is_open(db: SessionDB, home: Path) -> None:
    (home / "other").write_text("not a database")
    for harm in (lambda: (home / "other").replace(home / "state.db"), (home / "state.db").unlink):
        with pytest.raises(StoreError, match="would drop its locks"):
            harm()
    assert db.session_count() == 0


def test_a_folder_that_everybody_shares_is_no_home(home: Path) -> None:
    home.mkdir()
    home.chmod(0o1777)
    with pytest.raises(HomeRefused, match="shared by everybody"):
        SessionDB()


def test_a_second_sqlite_in_the_same_process_is_refused(db: SessionDB, home: Path) -> None:
    with pytest.raises(StoreError, match="would drop its locks"):
        sqlite3.connect(home / "state.db")


def test_other_files_of_the_same_name_may_be_opened(db: SessionDB, tmp_path: Path) -> None:
    other = tmp_path / "state.db"
    other.write_text("mine")
    assert other.read_text() == "mine"


def test_the_file_stays_guarded_until_the_last_store_is_closed(db: SessionDB, home: Path) -> None:
    SessionDB().close()
    with pytest.raises(StoreError, match="would drop its locks"):
        (home / "state.db").read_bytes()


def test_after_closing_the_file_may_be_opened(home: Path) -> None:
    SessionDB().close()
    assert (home / "state.db").read_bytes().startswith(b"SQLite format 3")


STRAY_OPEN = """
    import sys, pathlib
    from segue import SessionDB
    from segue.storage import guards
    if sys.argv[2] == "unguarded":
        guards.forbid_opening = lambda path: None
    db = SessionDB(sys.argv[1])
    db.create_session()
    def locks():
        inode = str(pathlib.Path(sys.argv[1]).stat().st_ino)
        return sum(f":{inode} " in line for line in pathlib.Path("/proc/locks").read_text().splitlines())
    before = locks()
    try:
        open(sys.argv[1]).close()
    except Exception:
        pass
    print(before, locks())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/locks is Linux's")
def test_a_stray_open_cannot_drop_the_locks_of_the_store(home: Path) -> None:
    before, after = map(int, python(STRAY_OPEN, home / "state.db", "guarded").stdout.split())
    assert before == after > 0
    before, after = map(int, python(STRAY_OPEN, home / "state.db", "unguarded").stdout.split())
    assert before > after == 0, "without the guard the locks are gone; if not, the test above proves nothing"


FORK = """
        import os, sys
        from segue import SessionDB
        from segue.storage import guards
        if sys.argv[2] == "unguarded":
            guards.watch_for_fork = lambda owner: None
        db = SessionDB(sys.argv[1])
        db.create_session("a", "cli")
        child = os.fork()
        if child == 0:
            try:
                db.message_count("a")
                db.append_message("a", "user", "from the child")
            except Exception as error:
                print(type(error).__name__, flush=True)
            sys.exit(0)
        os.waitpid(child, 0)
        db.append_message("a", "user", "from the parent")
        print(db.message_count("a"))
"""


def test_a_store_is_useless_in_a_forked_child_and_unharmed_in_its_parent(home: Path) -> None:
    result = python(FORK, home / "state.db", "guarded")
    assert result.stdout.split() == [StoreForked.__name__, "1"], result.stderr
    unguarded = python(FORK, home / "unguarded.db", "unguarded")
    assert StoreForked.__name__ not in unguarded.stdout, "the child is stopped by the guard and by nothing else"


def test_home_and_files_are_for_their_owner_alone_whatever_the_umask(home: Path) -> None:
    previous = os.umask(0)
    try:
        with SessionDB() as db:
            db.create_session("a", "cli")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    finally:
        os.umask(previous)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_a_symbolic_link_as_home_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    SessionDB(tmp_path / "real" / "state.db").close()
    home.symlink_to(tmp_path / "real")
    for read_only in (False, True):
        with pytest.raises(HomeRefused, match="symbolic link"):
            SessionDB(read_only=read_only)


def test_a_home_that_others_could_read_is_closed_to_them(home: Path) -> None:
    home.mkdir(mode=0o755)
    SessionDB().close()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_the_folder_of_a_database_elsewhere_is_nobodys_business(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    SessionDB(tmp_path / "mine.db").close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "mine.db").stat().st_mode) == 0o600


def test_a_symbolic_link_as_database_is_refused(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "elsewhere.db").touch()
    (home / "state.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(HomeRefused, match="not a plain file"):
        SessionDB()


def test_a_pipe_as_database_is_refused_without_waiting_for_it(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / "state.db")
    with pytest.raises(HomeRefused, match="not a plain file"):
        SessionDB()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
def test_a_home_that_belongs_to_somebody_else_is_refused(home: Path) -> None:
    home.mkdir()
    os.chown(home, 12345, 12345)
    with pytest.raises(HomeRefused, match="belongs to another user"):
        SessionDB()


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /home/me/net\\040share rw - nfs4 server:/export rw
41 22 0:36 / /home/me rw - btrfs /dev/sda1 rw
42 22 0:37 / /mnt/win rw - 9p drvfs rw
43 22 0:38 / /mnt/größe rw - nfs server:/e rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/segue", "ext4"),
        ("/home/me/.segue/state.db", "btrfs"),
        ("/home/me/net share/.segue/state.db", "nfs4"),
        ("/home/me/net share", "nfs4"),
        ("/home/melanie/state.db", "ext4"),
        ("/mnt/win/state.db", "9p"),
        ("/mnt/größe/state.db", "nfs"),
    ],
)
def test_the_innermost_mount_names_the_file_system(path: str, kind: str) -> None:
    assert guards.file_system_of(Path(path), MOUNTS) == kind


def test_a_network_file_system_gets_no_write_ahead_log_and_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "is_on_network", lambda path: True)
    engine = SqliteEngine(home / "state.db")
    with engine.alone() as connection:
        assert connection.value("PRAGMA journal_mode") == "delete"
    engine.close()
    assert "network file system" in engine.notices[0]
