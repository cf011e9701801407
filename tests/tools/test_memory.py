"""Notes outlast everything but their deletion, and nothing is read or written outside their folder."""

import asyncio
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

from segue.ports.tool import ToolFailed
from segue.tools import notes
from segue.tools.memory import Memory
from segue.tools.notes import MOST_BYTES


def do(folder: Path, action: str, name: str | None = None, text: str | None = None) -> str:
    said = {"action": action, "name": name, "text": text}
    return asyncio.run(Memory(folder).run(said, "s"))


def refused(folder: Path, action: str, name: str | None = None, text: str | None = None) -> str:
    with pytest.raises(ToolFailed) as told:
        do(folder, action, name, text)
    return str(told.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "memory"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_note_is_written_read_added_to_and_deleted(folder: Path) -> None:
    assert do(folder, "write", "Travel plans", "# Lisbon\nin May") == "The note travel-plans is kept; it has 15 bytes."
    assert do(folder, "append", "travel-plans", "by train") == "The note travel-plans is kept; it has 24 bytes."
    assert do(folder, "read", "travel-plans.md") == "# Lisbon\nin May\nby train"
    do(folder, "write", "travel-plans", "Porto")
    assert do(folder, "read", "travel-plans") == "Porto"
    assert do(folder, "delete", "travel-plans") == "The note travel-plans is deleted."
    assert "There is no note travel-plans" in refused(folder, "read", "travel-plans")
    assert "There is no note travel-plans" in refused(folder, "delete", "travel-plans")


def test_notes_and_skills_are_listed_with_how_they_begin(folder: Path) -> None:
    do(folder, "append", "skills/deploy", "\n\n# How to\x1b[31m deploy\nthen")
    do(folder, "write", "b", "x" * 200)
    do(folder, "write", "a", "é")
    told = do(folder, "list").splitlines()
    assert told == [
        "3 notes:",
        "- a (2 bytes): é",
        f"- b (200 bytes): {'x' * 79}…",
        "- skills/deploy (27 bytes): # How to deploy",
    ]


def test_looking_makes_nothing(folder: Path) -> None:
    assert do(folder, "list") == "There are no notes yet."
    refused(folder, "read", "a")
    refused(folder, "delete", "skills/a")
    assert not folder.parent.exists()


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_folders_and_files_are_the_owners_alone(folder: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        do(folder, "write", "skills/a", "x")
        do(folder, "write", "b", "x")
    finally:
        os.umask(before)
    assert [mode(path) for path in (folder.parent, folder, folder / "skills")] == [0o700] * 3
    assert [mode(path) for path in (folder / "b.md", folder / "skills" / "a.md")] == [0o600] * 2
    assert sorted(os.listdir(folder)) == ["b.md", "skills"]


@pytest.mark.parametrize("action", ["read", "write", "append", "delete"])
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, action: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder.mkdir(parents=True)
    (folder / "a.md").symlink_to(secret)
    (folder / "dangling.md").symlink_to(tmp_path / "new")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.md").write_text("secret")
    (folder / "skills").symlink_to(tmp_path / "elsewhere")
    text = "x" if action in ("write", "append") else None
    assert "a is a symbolic link, which is not followed" in refused(folder, action, "a", text)
    assert "is a symbolic link" in refused(folder, action, "dangling", text)
    assert "it must be a folder" in refused(folder, action, "skills/b", text)
    assert secret.read_text() == (tmp_path / "elsewhere" / "b.md").read_text() == "secret"
    assert (folder / "a.md").is_symlink()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("action", ["list", "read", "write", "delete"])
def test_a_folder_that_is_a_link_is_refused(folder: Path, tmp_path: Path, action: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").write_text("secret")
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    told = refused(folder, action, None if action == "list" else "a", "x" if action == "write" else None)
    assert told.startswith(f"The notes in {folder} cannot be used (")
    assert (tmp_path / "elsewhere" / "a.md").read_text() == "secret"


def test_what_is_no_note_is_not_listed_and_not_waited_for(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.md")
    (folder / "sub.md").mkdir()
    for name in (".hidden.md", "My Note.md", "a.txt", ".part"):
        (folder / name).write_text("x")
    (folder / "link.md").symlink_to("a.txt")
    assert do(folder, "list") == "There are no notes yet."
    assert "pipe is no file" in refused(folder, "read", "pipe")
    assert "sub is no file" in refused(folder, "write", "sub", "x")


def test_a_note_has_an_end(folder: Path) -> None:
    assert "at most" not in do(folder, "write", "a", "x" * MOST_BYTES)
    assert "longer than 64.0 kB" in refused(folder, "append", "a", "y")
    assert "longer than 64.0 kB" in refused(folder, "write", "b", "é" * (MOST_BYTES // 2 + 1))
    assert do(folder, "read", "a") == "x" * MOST_BYTES
    (folder / "a.md").write_text("z" * (MOST_BYTES + 9))
    assert do(folder, "read", "a").endswith("z\n[The note goes on; it is longer than a note may be.]")
    assert os.listdir(folder) == ["a.md"]


def test_there_are_only_so_many_notes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 3)
    for name in ("a", "b", "skills/c"):
        do(folder, "write", name, "x")
    assert "There are 3 notes, and no room for more" in refused(folder, "append", "d", "x")
    do(folder, "append", "a", "more")
    do(folder, "delete", "b")
    do(folder, "write", "d", "x")


@contextmanager
def somebody_else() -> Iterator[None]:
    """Without the rights of the user who may do everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_is_told() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder = Path(place, "memory")
        do(folder, "write", "a", "kept")
        (folder / "a.md").chmod(0o644)
        folder.chmod(0o555)
        with somebody_else():
            assert do(folder, "read", "a") == "kept"
            for action, text in (("write", "x"), ("append", "x"), ("delete", None)):
                told = refused(folder, action, "a", text)
                assert told.startswith(f"The notes in {folder} cannot be used (Permission denied): ")
            assert "Permission denied" in refused(folder / "deeper", "write", "a", "x")
        folder.chmod(0o755)
        assert do(folder, "read", "a") == "kept"


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").touch()
    assert "cannot be used (Not a directory)" in refused(tmp_path / "memory", "list")
    assert "cannot be used (Not a directory)" in refused(tmp_path / "memory", "write", "a", "x")


def test_what_several_add_at_once_is_all_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_PATIENCE", DEADLINE)

    def add(number: int) -> None:
        for turn in range(10):
            do(folder, "append", "log", f"{number}.{turn}")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = do(folder, "read", "log").splitlines()
    assert sorted(lines) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(10))


def test_nobody_waits_for_ever_for_somebody_who_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_PATIENCE", 0.1)
    do(folder, "write", "a", "x")
    holding = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(holding, fcntl.LOCK_EX)
        assert "Somebody else is writing notes" in refused(folder, "write", "a", "y")
        assert do(folder, "read", "a") == "x"
    finally:
        os.close(holding)
    do(folder, "write", "a", "y")


KILLED = """
import os, signal, sys
from pathlib import Path
from segue.tools import notes
from segue.tools.note_names import note_name

def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, sys.argv[2], dies)
notes.Notes(Path(sys.argv[1])).write(note_name("a"), b"after" * 1000)
"""


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_note_is_never_half_written(folder: Path, at: str) -> None:
    do(folder, "write", "a", "before")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), at], timeout=DEADLINE)
    assert killed.returncode == -9
    assert do(folder, "read", "a") == "before"
    assert do(folder, "list") == "1 note:\n- a (6 bytes): before"
    do(folder, "write", "a", "again")
    assert os.listdir(folder) == ["a.md"]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"action": "read"}, "memory needs the argument name to read."),
        ({"action": "write", "name": "a"}, "memory needs the argument text to write."),
        ({"action": "append", "text": "a"}, "memory needs the argument name to append."),
        ({"action": "forget"}, "The argument action of memory is one of list, read, write, append, delete;"),
        ({"action": "read", "name": "../a"}, "'../a' is no name of a note"),
    ],
)
def test_what_is_missing_is_told(folder: Path, said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ToolFailed) as told:
        asyncio.run(Memory(folder).run(said, "s"))
    assert str(told.value).startswith(sentence)
    assert Memory(folder).risk(said) is None


def test_only_deleting_is_asked_about(folder: Path) -> None:
    risks = {
        action: Memory(folder).risk({"action": action, "name": "My note", "text": "x"})
        for action in ("list", "read", "write", "append", "delete")
    }
    assert risks.pop("delete") == "delete the note my-note"
    assert set(risks.values()) == {None}


def test_a_name_that_is_nearly_right_is_suggested(folder: Path) -> None:
    do(folder, "write", "travel-plans", "x")
    assert refused(folder, "read", "travel-plan").endswith("perhaps travel-plans is meant.")
    assert refused(folder, "read", "zzz").endswith("list shows all.")
