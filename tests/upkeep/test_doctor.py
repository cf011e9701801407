"""Twelve ways in which a home can be damaged: each is named, mended where it can be, and nothing else is touched."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.core.scope import OWNER_AT_CONSOLE
from segue.upkeep.findings import Patient
from segue.upkeep.staging import Staging

pytestmark = pytest.mark.process

Run = Callable[..., subprocess.CompletedProcess[str]]

TABLES = ("sessions", "messages", "session_tags", "lanes", "resets", "trash", "schema_version")
PICTURE = b"not really a picture"
DIGEST = hashlib.sha256(PICTURE).hexdigest()
MESSAGES = 400


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in good health, with something of everything in it, of which each test has a copy."""
    home = tmp_path_factory.mktemp("sound") / "home"
    with SessionDB(home / "state.db") as db:
        for number in range(5):
            session = db.create_session(f"s{number}", title=f"Title {number}", source="cli")
            for at in range(MESSAGES // 5):
                db.append_message(session, "user", f"message {number}-{at} " + "words " * 40)
        db.append_message("s1", "assistant", tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}])
        db.append_message("s2", "user", "look", attachments=[{"sha256": DIGEST, "name": "a.png"}])
        db._store.write(OWNER_AT_CONSOLE, lambda tx: tx.sessions.tag("s3", ["work"]))
    picture = home / "attachments" / DIGEST[:2] / DIGEST
    picture.parent.mkdir(mode=0o700, parents=True)
    picture.parent.parent.chmod(0o700)
    picture.write_bytes(PICTURE)
    picture.chmod(0o600)
    (home / "config.yaml").write_text("retention:\n  trash_days: 9\n")
    (home / "config.yaml").chmod(0o600)
    return home


@pytest.fixture
def well(home: Path, sound: Path) -> Path:
    return Path(shutil.copytree(sound, home))


def rows(home: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(home / "state.db") as connection:
        found = {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES[:-1]}
    connection.close()
    return found


def files(home: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(home)): (path.stat().st_mode, path.read_bytes().hex() if path.is_file() else "")
        for path in home.rglob("*")
        if not path.name.startswith("state.db") and "backups" not in path.parts
    }


def examined(run: Run, *arguments: str, **environment: str) -> dict[str, list[dict[str, Any]]]:
    """What each check found, only those that found something."""
    done = run("doctor", "--json", *arguments, **environment)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["well"] else 1), done.stderr
    return {one["check"]: one["findings"] for one in report["checks"] if one["findings"] and one["check"] != "backup"}


def plant(home: Path, *statements: str) -> None:
    with sqlite3.connect(home / "state.db") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def page_of(database: Path, marker: bytes) -> int:
    return database.read_bytes().index(marker) // 4096


def overwrite(database: Path, at: int, garbage: bytes) -> None:
    with database.open("r+b") as file:
        file.seek(at)
        file.write(garbage)


def test_a_home_in_good_health_is_left_exactly_as_it_is(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    assert examined(run) == {}
    assert examined(run, "--fix") == {}
    assert (rows(well), files(well)) == before


def test_a_damaged_index_is_made_anew(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    with sqlite3.connect(well / "state.db") as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'idx_sessions_titled'").fetchone()[0]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = (well / "state.db").read_bytes()
    at = data.index(b"Title 3", (root - 1) * 4096)
    assert at < root * 4096
    overwrite(well / "state.db", at, b"Titlx 3")
    found = examined(run)
    assert list(found) == ["integrity"]
    assert "idx_sessions_titled" in found["integrity"][0]["says"]
    assert "idx_sessions_titled" in examined(run, "--fix")["integrity"][0]["mended"]
    assert examined(run) == {}
    assert (rows(well), files(well)) == before


def test_of_a_damaged_page_everything_else_is_saved(well: Path, run: Run) -> None:
    before = rows(well)
    page = page_of(well / "state.db", b"message 2-40 ")
    overwrite(well / "state.db", page * 4096, b"\xa5" * 4096)
    damaged = (well / "state.db").read_bytes()
    found = examined(run)
    assert list(found) == ["integrity"]
    assert "damaged" in found["integrity"][0]["says"]
    mended = examined(run, "--fix")
    assert "rows saved" in mended["integrity"][0]["mended"]
    assert examined(run) == {}
    after = rows(well)
    kept = {row[0]: row for row in after["messages"]}
    assert kept.items() <= {row[0]: row for row in before["messages"]}.items()
    lost = [row[0] for row in before["messages"] if row[0] not in kept]
    assert lost == list(range(lost[0], lost[-1] + 1)), "only what lay on the page"
    assert 0 < len(lost) < 20
    assert {name: found for name, found in after.items() if name not in ("messages", "sessions")} == {
        name: found for name, found in before.items() if name not in ("messages", "sessions")
    }
    (copy,) = (well / "backups").glob("damaged-*.db")
    assert copy.read_bytes()[4096:] == damaged[4096:], "the damaged file is kept, page by page"


def test_a_file_that_others_can_read_is_closed(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    (well / "attachments").chmod(0o755)
    (well / "config.yaml").chmod(0o644)
    (well / "state.db").chmod(0o640)
    well.chmod(0o711)
    assert len(examined(run)["permissions"]) == 4
    assert len(examined(run, "--fix")["permissions"]) >= 4, "what SQLite makes beside the file is as open as the file"
    assert examined(run) == {}
    assert (rows(well), files(well)) == before
    assert (well / "state.db").stat().st_mode & 0o777 == 0o600


def test_another_programs_database_is_named_and_left_alone(well: Path, run: Run) -> None:
    (well / "state.db").unlink()
    with sqlite3.connect(well / "state.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    (well / "state.db").chmod(0o600)
    before = (well / "state.db").read_bytes()
    for arguments in ([], ["--fix"], []):
        found = examined(run, *arguments)
        assert list(found) == ["database"]
        assert "another program's database" in found["database"][0]["says"]
    assert (well / "state.db").read_bytes() == before


def test_what_segue_itself_writes_is_no_strangers(well: Path, run: Run) -> None:
    (well / "config.yaml").write_text("logging: {file: events.log}")
    for name in (
        "history",
        "gateway.log",
        "gateway.log.1.gz",
        "events.log",
        "events.log-20260305",
        "platforms",
        "logs",
    ):
        (well / name).mkdir() if "." not in name and name != "history" else (well / name).touch()
        (well / name).chmod(0o700 if (well / name).is_dir() else 0o600)
    assert "other files" not in examined(run)


def test_a_hint_is_said_once_below_all_that_it_is_for(well: Path, run: Run) -> None:
    for name in ("one.txt", "two.txt"):
        (well / name).touch(0o600)
    shown = run("doctor").stdout
    assert ("one.txt is not Segue's" in shown, "two.txt is not Segue's" in shown) == (True, True)
    assert shown.count("It is left alone, and no backup has it.") == 1


def test_a_strangers_file_in_the_home_is_named_and_left_alone(well: Path, run: Run) -> None:
    (well / "notes.txt").write_text("mine")
    (well / "notes.txt").chmod(0o600)
    before = rows(well), files(well)
    found = examined(run, "--fix")
    assert "notes.txt is not Segue's" in found["other files"][0]["says"]
    assert found["other files"][0]["severity"] == "advice"
    assert (rows(well), files(well)) == before


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_holds_is_not(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    script = "import os, sys; from pathlib import Path; from segue.upkeep.staging import Staging\n"
    script += "Staging(Path(sys.argv[1])).__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, str(well)], check=False)
    with Staging(well) as living:
        found = examined(run)
        assert len(found["left-overs"]) == 1
        assert "process that died" in found["left-overs"][0]["says"]
        assert examined(run, "--fix")["left-overs"][0]["mended"]
        assert examined(run) == {}
        assert living.folder.exists()
    assert (rows(well), files(well)) == before


def test_a_change_of_the_schema_that_was_cut_off_is_finished(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    plant(
        well,
        "ALTER TABLE messages DROP COLUMN extra",
        "DROP INDEX idx_trash_moment",
        "DROP TABLE resets",
        "DELETE FROM schema_version",
    )
    refused = run("sessions", "list")
    assert refused.returncode == 1
    assert "segue doctor --fix" in refused.stderr
    assert "messages.extra" in examined(run)["schema"][0]["says"]
    assert examined(run, "--fix")["schema"][0]["mended"]
    assert examined(run) == {}
    after = rows(well)
    for table in before[0]:
        assert sorted(map(str, after[table])) == sorted(map(str, before[0][table])) or table == "messages"
    assert [row[:6] for row in after["messages"]] == [row[:6] for row in before[0]["messages"]]
    assert files(well) == before[1]


def test_a_missing_attachment_is_taken_from_the_last_backup(well: Path, run: Run, tmp_path: Path) -> None:
    picture = well / "attachments" / DIGEST[:2] / DIGEST
    picture.unlink()
    found = examined(run, "--fix")
    assert DIGEST in found["attachments"][0]["says"]
    assert not found["attachments"][0]["mended"], "nothing to take it from"
    picture.write_bytes(PICTURE)
    picture.chmod(0o600)
    before = rows(well), files(well)
    assert run("backup", str(tmp_path / "b.zip")).returncode == 0
    picture.unlink()
    assert str(tmp_path / "b.zip") in examined(run)["attachments"][0]["remedy"]
    assert examined(run, "--fix")["attachments"][0]["mended"]
    assert examined(run) == {}
    assert (rows(well), files(well)) == before


def test_orphaned_messages_get_a_session_again(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    plant(well, "DELETE FROM sessions WHERE id = 's3'")
    found = examined(run)
    assert "s3" in found["orphans"][0]["says"]
    assert "tag" in found["orphans"][1]["says"]
    assert examined(run, "--fix")["orphans"][0]["mended"]
    assert examined(run) == {}
    after = rows(well)
    assert after["messages"] == before[0]["messages"]
    assert [row for row in after["sessions"] if row[0] != "s3"] == [
        row for row in before[0]["sessions"] if row[0] != "s3"
    ]
    assert "message 3-0" in run("sessions", "show", "s3").stdout
    assert files(well) == before[1]


def others(sessions: list[Any]) -> list[Any]:
    return [row for row in sessions if row[0] != "s3"]


def test_wrong_counters_are_counted_anew(well: Path, run: Run) -> None:
    before = rows(well), files(well)
    plant(well, "UPDATE sessions SET message_count = 7, tool_call_count = 7 WHERE id IN ('s1', 's4')")
    assert "2 sessions" in examined(run)["counters"][0]["says"]
    assert examined(run, "--fix")["counters"][0]["mended"]
    assert examined(run) == {}
    assert (rows(well), files(well)) == before


def test_sums_that_no_call_stands_for_get_an_entry(well: Path, run: Run) -> None:
    plant(well, "UPDATE sessions SET input_tokens = input_tokens + 7, estimated_cost_usd = 0.5 WHERE id = 's1'")
    assert examined(run)["usage"][0]["says"] == "What 1 session used is not what is noted of the calls: s1."
    assert examined(run, "--fix")["usage"][0]["mended"]
    assert examined(run) == {}
    with SessionDB() as db:
        noted = db.export_session("s1")
        assert noted is not None
        assert sum(one["input_tokens"] for one in noted["usage"]) == noted["input_tokens"] >= 7


def test_a_time_zone_that_does_not_exist_is_named(well: Path, run: Run) -> None:
    assert "Mars/Olympus" in examined(run, TZ="Mars/Olympus")["time zone"][0]["says"]
    for known in ("Europe/Berlin", "CET-1CEST", "", ":UTC"):
        assert "time zone" not in examined(run, TZ=known)
    (well / "config.yaml").write_text("session:\n  reset:\n    timezone: Mars/Olympus\n")
    before = rows(well), files(well)
    found = examined(run, "--fix")
    assert list(found) == ["configuration"]
    assert "session.reset.timezone" in found["configuration"][0]["says"]
    assert (rows(well), files(well)) == before, "a person's configuration is a person's to mend"


def test_a_network_file_system_is_named(well: Path, tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    pretended = tmp_path / "mountinfo"
    pretended.write_text("\n".join(_with_kind(line, "nfs4") for line in mounts.splitlines()))
    script = 'mount --bind "$0" "/proc/$$/mountinfo" && exec "$@"'
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        str(pretended),
        sys.executable,
        "-m",
        "segue",
        "doctor",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine lets nobody mount")
    (disk,) = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "disk"]
    assert "network file system" in disk["findings"][0]["says"]


def _with_kind(line: str, kind: str) -> str:
    before, _, after = line.partition(" - ")
    return f"{before} - {kind} {' '.join(after.split()[1:])}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "segue-test", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_is_nearly_full_is_named(well: Path, small_disk: Path, run: Run) -> None:
    home = small_disk / "home"
    shutil.copytree(well, home)
    home.chmod(0o700)
    before = rows(home), files(home)
    found = examined(run, "--fix", SEGUE_HOME=str(home))
    assert list(found) == ["disk"]
    assert "nearly full" in found["disk"][0]["says"]
    assert (rows(home), files(home)) == before


def test_a_fault_that_cannot_be_mended_now_says_why(well: Path, run: Run) -> None:
    plant(well, "UPDATE sessions SET message_count = 7 WHERE id = 's1'")
    holder = sqlite3.connect(well / "state.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        script = "import segue.storage.patience as p; p.PATIENCE = 0.2\nimport segue.storage.store as s\n"
        script += "import segue.storage.connection as c; c.BUSY_MILLISECONDS = 20\n"
        script += "s.SqlStore.__init__.__defaults__ = (0.2,)\nfrom segue.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", script, "doctor", "--fix"], capture_output=True, text=True, timeout=DEADLINE
        )
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert done.returncode == 1
    assert "could not be mended" in done.stdout


def test_it_reads_like_a_report(well: Path, run: Run) -> None:
    (well / "state.db").chmod(0o644)
    done = run("doctor")
    assert done.returncode == 1
    assert "✓ integrity" in done.stdout
    assert "✗ permissions   " in done.stdout
    assert done.stdout.endswith("1 problem, which can be mended as it says above.\n")
    assert done.stdout.count("segue doctor --fix") == 1
    assert "All is well now; 1 note above." in run("doctor", "--fix").stdout
    assert run("doctor").returncode == 0


def test_a_home_that_is_not_there_yet_is_well(run: Run, home: Path) -> None:
    done = run("doctor")
    assert done.returncode == 0
    assert not home.exists(), "looking makes nothing"


def test_a_home_that_is_somebody_elses_is_not_looked_into(home: Path, tmp_path: Path, run: Run) -> None:
    home.symlink_to(tmp_path)
    done = run("doctor", "--fix")
    assert done.returncode == 1
    assert "symbolic link" in done.stdout


def test_the_patient_is_found_even_when_its_configuration_is_wrong(home: Path) -> None:
    from segue.upkeep.doctor import patient_here

    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("nonsense: 1\n")
    patient: Patient = patient_here(0.0)
    assert patient.home == home
    assert "nonsense" in (patient.trouble or "")
    assert os.path.exists(home)
