"""Homes in odd states, and people in a hurry: nothing is lost by what is meant to save it."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import DEADLINE, wait_until

from segue import SessionDB
from segue.core.scope import OWNER_AT_CONSOLE
from segue.upkeep.staging import Staging, abandoned, remove_abandoned

pytestmark = pytest.mark.process

Run = Callable[..., subprocess.CompletedProcess[str]]

WRITER = """
from itertools import count
from segue import SessionDB
with SessionDB() as db:
    for number in count():
        db.append_message("s1", "user", f"later {number}")
        print(number, flush=True)
"""


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of which each test has a copy."""
    home = tmp_path_factory.mktemp("garden") / "home"
    with SessionDB(home / "state.db") as db:
        db.create_session("s1", title="Garden", source="cli")
        for number in range(300):
            db.append_message("s1", "user", f"roses {number} " + "x" * 400)
    (home / "memory").mkdir(mode=0o700)
    (home / "memory" / "note.md").write_text("old note")
    return home


@pytest.fixture
def kept(home: Path, garden: Path, tmp_path: Path, run: Run) -> Path:
    shutil.copytree(garden, home)
    assert run("backup", str(tmp_path / "kept.zip")).returncode == 0
    return tmp_path / "kept.zip"


def damage(home: Path, marker: bytes) -> None:
    data = (home / "state.db").read_bytes()
    page = data.index(marker) // 4096
    (home / "state.db").write_bytes(data[: page * 4096] + b"\xa5" * 4096 + data[(page + 1) * 4096 :])


def test_nobody_but_the_owner_reaches_what_the_home_keeps_for_itself(home: Path, tmp_path: Path, run: Run) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    with SessionDB(principal="upkeep") as db:
        db.set_meta("restoring", str(victim))
    with SessionDB() as db:
        assert db.get_meta("upkeep:restoring") is None
        db.create_session("s1", source="cli")
        db.set_meta("upkeep:restoring", "../victim")  # even the owner cannot mean that
    run("sessions", "tag", "s1", "x")
    assert victim.exists()


UNGUARDED = """
import sys, time
from pathlib import Path
from segue.storage.connection import SqliteConnection
copying, log = SqliteConnection.copy_from, Path(sys.argv.pop())
def unguarded(self, source, advance, under_lock=bool):  # as if the copy were kept before anybody is locked out
    under_lock()
    if under_lock is not bool:
        size = log.stat().st_size
        while log.stat().st_size < size + 100:  # until others have said more
            time.sleep(0.01)
    copying(self, source, advance)
SqliteConnection.copy_from = unguarded
"""


def until_let_in(restore: Callable[[], "subprocess.CompletedProcess[str]"]) -> None:
    """Restore beside somebody who never stops writing, as often as a busy machine makes it give up."""
    while (done := restore()).returncode != 0:
        assert "for too long; try again" in done.stderr, done.stderr


@pytest.mark.parametrize("guard", ["locked", "unguarded"])
def test_what_others_say_during_a_restore_is_in_the_kept_copy(
    kept: Path, home: Path, tmp_path: Path, run: Run, guard: str
) -> None:
    log = tmp_path / "log"
    with log.open("w") as output:
        writer = subprocess.Popen([sys.executable, "-c", WRITER], stdout=output)

    def said_more(by: int) -> None:
        enough = len(log.read_bytes().splitlines()) + by
        wait_until(lambda: len(log.read_bytes().splitlines()) >= enough, f"{by} more messages")

    try:
        said_more(20)
        if guard == "locked":
            until_let_in(lambda: run("restore", str(kept), "--yes"))
        else:
            script = UNGUARDED + "from segue.cli import main; main()"
            command = [sys.executable, "-c", script, "restore", str(kept), "--yes", str(log)]
            until_let_in(lambda: subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False))
        said_more(20)
    finally:
        writer.kill()
        writer.wait()
    acknowledged = len(log.read_text().splitlines())
    copy, *later = sorted((home / "backups").glob("before-restore-*.zip"))
    assert not later or guard == "unguarded", "who is not alone may have to begin again"
    other = str(tmp_path / "other")
    assert run("restore", str(copy), SEGUE_HOME=other).returncode == 0
    said = [run("sessions", "show", "s1", "--raw", SEGUE_HOME=where).stdout for where in (other, str(home))]
    numbers = {int(line.split()[1]) for text in said for line in text.splitlines() if line.startswith("later")}
    is_whole = set(range(acknowledged - 1)) <= numbers  # in the one or in the other
    assert is_whole == (guard == "locked"), "without the lock something must be lost, or the test proves nothing"


def test_of_a_damaged_home_the_memory_is_kept_too(kept: Path, home: Path, run: Run) -> None:
    (home / "memory" / "note.md").write_text("new note")
    damage(home, b"roses 150 ")
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 0, done.stderr
    assert (home / "memory" / "note.md").read_text() == "old note"
    (memory,) = (home / "backups").glob("damaged-*.memory")
    assert (memory / "note.md").read_text() == "new note"


def test_an_unreadable_database_is_moved_only_after_somebody_agreed(kept: Path, home: Path, run: Run) -> None:
    (home / "state.db").write_bytes(b"\xa5" * 8192)
    asked = run("restore", str(kept))
    assert asked.returncode == 1
    assert (home / "state.db").read_bytes() == b"\xa5" * 8192
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 0, done.stderr
    (aside,) = (home / "backups").glob("damaged-*.db")
    assert str(aside) in done.stderr
    assert aside.read_bytes() == b"\xa5" * 8192


def test_two_restores_in_a_second_keep_two_copies(kept: Path, home: Path, run: Run) -> None:
    for _ in range(2):
        assert run("restore", str(kept), "--yes").returncode == 0
    assert len(list((home / "backups").glob("before-restore-*.zip"))) == 2


def test_a_newer_database_is_named_and_left_alone(kept: Path, home: Path, run: Run) -> None:
    with sqlite3.connect(home / "state.db") as connection:
        connection.execute("UPDATE schema_version SET version = 99")
        connection.execute("DROP INDEX idx_trash_moment")
    connection.close()
    before = (home / "state.db").read_bytes()
    done = run("doctor", "--fix")
    assert done.returncode == 1
    assert "newer Segue" in done.stdout
    assert (home / "state.db").read_bytes() == before


def test_an_empty_database_file_is_no_fault(home: Path, run: Run) -> None:
    home.mkdir(mode=0o700)
    (home / "state.db").touch(mode=0o600)
    run("doctor", "--fix")
    assert run("sessions", "list").returncode == 0


@pytest.mark.parametrize("spoil", ["bytes", "gone"])
def test_an_attachment_is_taken_from_a_sound_backup_only(home: Path, tmp_path: Path, run: Run, spoil: str) -> None:
    digest = hashlib.sha256(b"picture").hexdigest()
    with SessionDB() as db:
        db.create_session("s1", source="cli")
        for _ in range(2):
            db.append_message("s1", "user", "look", attachments=[{"sha256": digest}])
    picture = home / "attachments" / digest[:2] / digest
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"picture")
    backup = tmp_path / "b.zip"
    run("backup", str(backup))
    sound = backup.read_bytes()
    picture.unlink()
    with zipfile.ZipFile(backup) as opened:
        at = opened.getinfo(f"attachments/{digest[:2]}/{digest}").header_offset + 30 + len(f"attachments/xx/{digest}")
    if spoil == "bytes":
        backup.write_bytes(sound[: at + 22] + bytes([sound[at + 22] ^ 0x10]) + sound[at + 23 :])
    else:
        backup.unlink()
    run("doctor", "--fix")
    assert not picture.exists()
    assert digest in run("doctor").stdout
    backup.write_bytes(sound)
    assert run("doctor", "--fix").stdout.count(f"{digest} is back") == 1, "one file, however many messages need it"
    assert picture.read_bytes() == b"picture"
    assert "All is well" in run("doctor", "--fix").stdout


WAITED = 99
IMPATIENT = f"""
import os
from types import SimpleNamespace
from segue.storage import connection, patience
connection.BUSY_MILLISECONDS = 20
patience.time = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: os._exit({WAITED}))
from segue.cli import main; main()
"""


def test_a_list_never_waits_for_tidying(home: Path, run: Run) -> None:
    with SessionDB() as db:
        db.create_session("s1", source="cli")
        db.create_session("s2", source="cli")
    run("sessions", "delete", "s1", "--yes")
    holder = sqlite3.connect(home / "state.db", isolation_level=None)
    holder.execute("UPDATE trash SET trashed_at = trashed_at - 864000")
    holder.execute("BEGIN IMMEDIATE")
    try:
        command = [sys.executable, "-c", IMPATIENT, "sessions", "list"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        again = subprocess.run([*command[:3], "sessions", "tag", "s2", "x"], capture_output=True, timeout=DEADLINE)
        assert again.returncode == WAITED, "the control: what has to write would wait"
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert "will leave the trash" in run("sessions", "list").stderr


def test_odd_names_are_backed_up_and_impossible_ones_are_named(home: Path, tmp_path: Path, run: Run) -> None:
    SessionDB().close()
    (home / "memory").mkdir(mode=0o700)
    (home / "memory" / "Shot at 9.41\u202fPM 你好.png").write_text("x")
    assert run("backup", str(tmp_path / "b.zip")).returncode == 0
    assert run("restore", str(tmp_path / "b.zip"), SEGUE_HOME=str(tmp_path / "new")).returncode == 0
    assert (tmp_path / "new" / "memory" / "Shot at 9.41\u202fPM 你好.png").exists()
    with open(os.fsencode(home) + b"/memory/\xff", "w"):
        pass
    done = run("backup", str(tmp_path / "c.zip"))
    assert done.returncode == 2
    assert "rename it first" in done.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("backup",), "b.zip"),
        (("sessions", "export"), "e.jsonl"),
        (("sessions", "export"), "e.html"),
        (("insights", "--html"), "i.html"),
    ],
)
def test_an_existing_file_is_named_and_replaced_only_when_that_is_wanted(
    home: Path, tmp_path: Path, run: Run, command: tuple[str, ...], name: str
) -> None:
    with SessionDB() as db:
        db.append_message(db.create_session("a"), "user", "leeks")
    file = tmp_path / name
    file.write_bytes(b"")
    assert run(*command, str(file)).returncode == 0, "an empty file holds nothing to lose"
    written = file.read_bytes()
    assert written
    for kept in (written, b"print()"):
        file.write_bytes(kept)
        done = run(*command, str(file))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"segue: {file} exists already and was left as it is; --yes replaces it.\n"
        assert file.read_bytes() == kept
        assert run(*command, str(file), "--yes").returncode == 0
        assert file.read_bytes() != b"print()"


def test_a_backup_takes_the_place_of_no_device_or_pipe(home: Path, tmp_path: Path, run: Run) -> None:
    SessionDB().close()
    os.mkfifo(tmp_path / "pipe")
    done = run("backup", str(tmp_path / "pipe"), "--yes")
    assert done.returncode == 2
    assert "is not an ordinary file" in done.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_an_announcement_does_not_travel_with_a_backup(home: Path, tmp_path: Path, run: Run) -> None:
    with SessionDB() as db:
        db.create_session("s1", source="cli")
    run("sessions", "delete", "s1", "--yes")
    with sqlite3.connect(home / "state.db") as connection:
        connection.execute("UPDATE trash SET trashed_at = trashed_at - 864000")
    connection.close()
    assert "will leave the trash" in run("sessions", "list").stderr
    with sqlite3.connect(home / "state.db") as connection:
        (said,) = connection.execute("SELECT value FROM state_meta WHERE key = 'upkeep:announced_emptying'").fetchone()
        moved = json.dumps([one - 864000 for one in json.loads(said)])
        connection.execute("UPDATE state_meta SET value = ? WHERE key = 'upkeep:announced_emptying'", (moved,))
    connection.close()
    run("backup", str(tmp_path / "b.zip"))
    run("restore", str(tmp_path / "b.zip"), "--yes")
    assert "will leave the trash" in run("sessions", "list").stderr, "announced anew"
    assert len(json.loads(run("sessions", "trash", "list", "--json").stdout)) == 1


def test_a_folder_that_somebody_makes_ready_is_never_removed(tmp_path: Path) -> None:
    with Staging(tmp_path) as staged:
        remove_abandoned(tmp_path)
        assert staged.folder.exists()
        assert abandoned(tmp_path) == []
    assert not staged.folder.exists()
    (tmp_path / ".staging-00000000").mkdir()
    assert abandoned(tmp_path, waiting=".staging-00000000") == []
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_guarded", [True, False])
def test_salvage_begins_again_when_somebody_has_written(
    kept: Path, home: Path, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    from segue.storage import repairing

    damage(home, b"roses 150 ")
    salvaged, rounds = repairing._salvaged, []

    def overtaken(*arguments: object) -> object:
        rounds.append(1)
        if len(rounds) == 1:
            script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
            script += "c.execute(\"INSERT INTO state_meta VALUES ('late', 'word')\"); c.commit()"
            subprocess.run([sys.executable, "-c", script, str(home / "state.db")], check=True)
        return salvaged(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(repairing, "_salvaged", overtaken)
    if not is_guarded:
        monkeypatch.setattr(repairing, "_check_same", lambda *_: None)
    repairing.replace_with_salvage(home / "state.db", home / "copy.db", home / "work.db")
    assert len(rounds) == (2 if is_guarded else 1)
    with SessionDB() as db:
        assert db.get_meta("late") == ("word" if is_guarded else None)
        assert db._store.read(OWNER_AT_CONSOLE, lambda tx: len(tx.messages.of("s1"))) > 280


def test_what_is_older_than_a_table_is_salvaged_too(kept: Path, home: Path) -> None:
    from segue.storage import repairing

    with sqlite3.connect(home / "state.db") as beside:
        beside.execute("DROP TABLE people")
    beside.close()
    damage(home, b"roses 150 ")
    repairing.replace_with_salvage(home / "state.db", home / "copy.db", home / "work.db")
    with SessionDB() as db:
        assert db._store.read(OWNER_AT_CONSOLE, lambda tx: len(tx.messages.of("s1"))) > 280
        assert db._store.read(OWNER_AT_CONSOLE, lambda tx: tx.people.listed()) == []


def test_a_restore_that_cannot_be_finished_says_so(kept: Path, home: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / "attachments").symlink_to(tmp_path / "elsewhere")
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 2
    assert "is a link" in done.stderr
