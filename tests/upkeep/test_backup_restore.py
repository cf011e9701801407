"""A home as one file and back: complete, private, verified; and every archive that is not that is refused."""

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segue import SessionDB
from segue.core.errors import Invalid
from segue.upkeep import archive

pytestmark = pytest.mark.process

Run = Callable[..., subprocess.CompletedProcess[str]]

SECRET = "sk-proj-" + "aB3" * 16


@pytest.fixture
def kept(home: Path, tmp_path: Path, run: Run) -> Path:
    """A home with a little of everything, and the backup of it."""
    with SessionDB() as db:
        session = db.create_session("s1", title="Garden", source="cli")
        db.append_message(session, "user", "Which roses? 玫瑰 🌹")
    (home / "memory").mkdir(mode=0o700)
    (home / "memory" / "MEMORY.md").write_text("likes roses")
    (home / "attachments" / "aa").mkdir(mode=0o700, parents=True)
    (home / "attachments" / "aa" / "aaaa").write_bytes(b"\x00\xff")
    (home / "config.yaml").write_text(f"retention:\n  trash_days: 9  # {SECRET}\n")
    file = tmp_path / "kept.zip"
    done = run("backup", str(file))
    assert done.returncode == 0, done.stderr
    assert "1 session, 1 message" in done.stderr
    assert "verified" in done.stderr
    return file


def test_a_backup_is_private_and_holds_no_secret_of_the_configuration(kept: Path) -> None:
    assert kept.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(kept) as opened:
        assert set(opened.namelist()) == {
            "manifest.json",
            "state.db",
            "config.yaml",
            "memory/MEMORY.md",
            "attachments/aa/aaaa",
        }
        assert SECRET not in opened.read("config.yaml").decode()
        assert "trash_days: 9" in opened.read("config.yaml").decode()


def test_a_new_home_gets_everything(kept: Path, tmp_path: Path, run: Run) -> None:
    new = tmp_path / "new"
    done = run("restore", str(kept), SEGUE_HOME=str(new))
    assert done.returncode == 0, done.stderr
    assert (new / "memory" / "MEMORY.md").read_text() == "likes roses"
    assert (new / "attachments" / "aa" / "aaaa").read_bytes() == b"\x00\xff"
    assert "trash_days: 9" in (new / "config.yaml").read_text()
    assert "玫瑰 🌹" in run("sessions", "show", "Garden", SEGUE_HOME=str(new)).stdout
    modes = {path.stat().st_mode & 0o777 for path in new.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in new.rglob("*") if path.is_dir()} == {0o700}
    assert "All is well" in run("doctor", SEGUE_HOME=str(new)).stdout


def test_what_was_there_can_be_brought_back(kept: Path, home: Path, run: Run) -> None:
    with SessionDB() as db:
        db.create_session("s2", title="Later", source="cli")
    (home / "memory" / "MEMORY.md").write_text("likes tulips")
    asked = run("restore", str(kept))
    assert asked.returncode == 1
    assert "pass --yes" in asked.stderr
    assert run("sessions", "show", "Later").returncode == 0
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 0, done.stderr
    assert run("sessions", "show", "Later").returncode == 1
    assert (home / "memory" / "MEMORY.md").read_text() == "likes roses"
    (before,) = (home / "backups").glob("before-restore-*.zip")
    assert str(before) in done.stderr
    assert run("restore", str(before), "--yes").returncode == 0
    assert run("sessions", "show", "Later").returncode == 0
    assert (home / "memory" / "MEMORY.md").read_text() == "likes tulips"


def test_a_configuration_that_is_there_stays(kept: Path, home: Path, run: Run) -> None:
    (home / "config.yaml").write_text("retention:\n  trash_days: 30\n")
    done = run("restore", str(kept), "--yes")
    assert "config.from-backup.yaml" in done.stderr
    assert "30" in (home / "config.yaml").read_text()
    assert "trash_days: 9" in (home / "config.from-backup.yaml").read_text()


def test_a_dry_run_verifies_and_changes_nothing(kept: Path, tmp_path: Path, run: Run) -> None:
    done = run("restore", str(kept), "--dry-run", SEGUE_HOME=str(tmp_path / "none"))
    assert done.returncode == 0
    assert "sound" in done.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_single_wrong_byte_is_noticed_and_nothing_is_changed(kept: Path, home: Path, at: float, run: Run) -> None:
    data = bytearray(kept.read_bytes())
    with zipfile.ZipFile(kept) as opened:
        database = opened.getinfo(archive.DATABASE)
    beginning = database.header_offset + 30 + len(archive.DATABASE)  # behind what the ZIP format says of it
    data[beginning + int(database.compress_size * at)] ^= 0x40
    kept.write_bytes(data)
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 2
    assert str(kept) in done.stderr
    assert "Traceback" not in done.stderr
    assert "Which roses?" in run("sessions", "show", "Garden").stdout


def test_every_single_wrong_byte_is_noticed(kept: Path) -> None:
    data = kept.read_bytes()
    sound = archive.read_contents(kept)
    for at in range(0, len(data), 97):
        kept.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            assert archive.verify(kept) == sound, at  # a byte that nobody reads, such as a date of the ZIP format
        except Invalid:
            continue


def test_a_backup_replaces_an_older_one_only_when_it_is_complete(kept: Path, home: Path, run: Run) -> None:
    before = kept.read_bytes()
    (home / "state.db").write_bytes(b"broken" * 1000)
    done = run("backup", str(kept), "--yes")
    assert done.returncode == 1
    assert kept.read_bytes() == before
    assert list(kept.parent.glob(".*.part")) == []


@pytest.mark.parametrize("ruin", ["header", "middle", "gone"])
def test_a_damaged_home_can_be_restored(kept: Path, home: Path, ruin: str, run: Run) -> None:
    data = bytearray((home / "state.db").read_bytes())
    data[slice(0, 4096) if ruin == "header" else slice(4096, 20480)] = b"\xa5" * (4096 if ruin == "header" else 16384)
    (home / "state.db").write_bytes(data)
    if ruin == "gone":
        (home / "state.db").unlink()
    done = run("restore", str(kept), "--yes")
    assert done.returncode == 0, done.stderr
    assert "Which roses?" in run("sessions", "show", "Garden").stdout
    if ruin != "gone":
        (damaged,) = (home / "backups").glob("damaged-*.db")
        assert damaged.read_bytes()[4096:20480] == bytes(data[4096:20480])


def test_damage_is_reported_with_the_last_backup_that_there_is(kept: Path, home: Path, run: Run) -> None:
    with SessionDB() as db:
        for number in range(200):
            db.append_message("s1", "user", f"filler {number} " * 30)
    data = (home / "state.db").read_bytes()
    page = data.index(b"filler 100 ") // 4096
    (home / "state.db").write_bytes(data[: page * 4096] + b"\xa5" * 4096 + data[(page + 1) * 4096 :])
    done = run("sessions", "show", "s1")
    assert done.returncode == 1
    assert f"segue restore {kept}" in done.stderr


def rewritten(change: Callable[[dict[str, Any], dict[str, bytes]], None], source: Path, target: Path) -> Path:
    with zipfile.ZipFile(source) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    with zipfile.ZipFile(target, "w") as opened:
        for name, data in members.items():
            opened.writestr(name, data)
        opened.writestr("manifest.json", json.dumps(manifest))
    return target


def smuggle(name: str) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members[name] = b""
        manifest["files"][name] = [0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]

    return change


@pytest.mark.parametrize(
    "change",
    [
        smuggle("../escaped"),
        smuggle("memory/../../escaped"),
        smuggle("/tmp/escaped"),
        smuggle("memory"),
        smuggle("memory/./x"),
        smuggle("memory\\x"),
        smuggle(".bashrc"),
        smuggle("state.db-wal"),
        lambda manifest, members: members.update({"memory/unlisted": b"x"}),
        lambda manifest, members: members.pop("memory/MEMORY.md"),
        lambda manifest, members: manifest.update(segue_backup=2),
        lambda manifest, members: manifest.pop("sessions"),
        lambda manifest, members: manifest.update(files="x"),
        lambda manifest, members: manifest["files"].pop("state.db"),
        lambda manifest, members: manifest["files"]["memory/MEMORY.md"].__setitem__(0, 10**18),
        lambda manifest, members: members.update({"memory/MEMORY.md": b"likes weeds"}),
    ],
)
def test_an_archive_that_lies_is_refused(kept: Path, tmp_path: Path, change: Any) -> None:
    lying = rewritten(change, kept, tmp_path / "lying.zip")
    folder = tmp_path / "unpacked" / "here"
    folder.mkdir(parents=True)
    with pytest.raises(Invalid):
        archive.unpack(lying, folder)
    assert not any("escaped" in str(path) for path in tmp_path.rglob("*"))


def test_other_files_are_refused_in_a_sentence(tmp_path: Path, run: Run) -> None:
    text = tmp_path / "letter.txt"
    text.write_text("dear all")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as opened:
        opened.writestr("x", "y")
    for file in (text, other, tmp_path / "none.zip"):
        done = run("restore", str(file), "--yes")
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert str(file) in done.stderr
    assert run("backup", str(tmp_path)).returncode == 2
    SessionDB().close()
    done = run("backup", str(tmp_path / "no" / "folder.zip"))
    assert done.returncode == 2
    assert "could not be written" in done.stderr


def test_links_in_the_home_are_not_followed(home: Path, tmp_path: Path, run: Run) -> None:
    SessionDB().close()
    (tmp_path / "private").write_text("elsewhere")
    (home / "memory").mkdir()
    os.symlink(tmp_path / "private", home / "memory" / "link")
    done = run("backup", str(tmp_path / "b.zip"), "--json")
    assert "memory/link" not in json.loads(done.stdout)["files"]
