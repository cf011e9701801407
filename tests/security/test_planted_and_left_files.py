"""Files that somebody else put in our way, and files that a process left when it was killed."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.cli.chatting.past import Past
from segue.cli.files import opened
from segue.core.errors import SegueError
from segue.tools.note_names import note_name
from segue.tools.notes import Notes
from segue.tools.recording import Record
from segue.upkeep.crashes import AGENT_LOG, LOGS, record_agent_error, record_crash

Run = Callable[..., subprocess.CompletedProcess[str]]

UNTOUCHED = "the file of somebody else"
KILLED_WHILE_IT_WRITES = """
import os, sys
from pathlib import Path
from segue.cli.files import opened
with opened(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), 9)
"""


def keep_typed(file: Path) -> None:
    Past(file).store_string("typed")


def keep_said(file: Path) -> None:
    record = Record(str(file))
    record.hear(b"said")
    record.close()


def keep_note(file: Path) -> None:
    Notes(file.parent).write(note_name(file.stem), b"noted", behind=False)


def keep_error(file: Path) -> None:
    record_agent_error(file.parents[1], ValueError("an error"))


@pytest.mark.parametrize(
    ("write", "link", "kept"),
    [
        (keep_typed, "history", "history"),
        (keep_said, "p1.part", "p1"),
        (keep_said, "p1", "p1"),
        (keep_note, "leeks.md", "leeks.md"),
        (keep_note, ".part", "leeks.md"),
        (keep_error, f"{LOGS}/{AGENT_LOG}", f"{LOGS}/{AGENT_LOG}"),
    ],
)
def test_nothing_is_written_through_a_link(tmp_path: Path, write: Callable[[Path], None], link: str, kept: str) -> None:
    victim, home = tmp_path / "victim", tmp_path / "home"
    victim.write_text(UNTOUCHED)
    planted = home / link
    planted.parent.mkdir(mode=0o700, parents=True)
    planted.symlink_to(victim)
    with suppress(OSError, SegueError):  # refused, or the link is replaced by a file: the one is as good as the other
        write(home / kept)
    assert victim.read_text() == UNTOUCHED


@pytest.mark.process
def test_a_new_configuration_is_not_written_through_a_link(home: Path, tmp_path: Path, run: Run) -> None:
    home.mkdir(mode=0o700)
    (home / "config.yaml").symlink_to(tmp_path / "victim")
    run("init")
    assert not (tmp_path / "victim").exists()


def test_a_crash_before_there_is_a_home_makes_it_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = tmp_path / "above" / "home"
        file = record_crash(home, ValueError("an error"), program="0", now=0.0)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, home, home.parent)]
    assert modes == [0o600, 0o700, 0o700, 0o700]


def test_a_link_as_home_gets_no_account_of_a_crash(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SegueError, match="symbolic link"):
        record_crash(tmp_path / "home", ValueError("an error"), program="0", now=0.0)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.process
def test_what_a_killed_export_left_is_gone_after_the_next_one(home: Path, tmp_path: Path, run: Run) -> None:
    target, other = tmp_path / "all.jsonl", tmp_path / ".all.jsonl.notes.part"
    other.write_text(UNTOUCHED)
    for _ in range(3):
        subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, str(target)], check=False, timeout=DEADLINE)
    [left] = list(tmp_path.glob(".all.jsonl.????????.part"))
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    with SessionDB() as db:
        db.create_session("s", "cli")
    with opened(target) as living:
        living.write(b"somebody else's, who is still writing")
        living.flush()
        assert not left.exists()
        assert run("sessions", "export", str(target)).returncode == 0
    assert list(tmp_path.glob(".all.jsonl.*")) == [other]
    assert target.read_bytes() == b"somebody else's, who is still writing", "whoever is done last"


def test_what_a_process_of_our_number_left_is_in_nobodys_way(tmp_path: Path) -> None:
    """In a container everybody has the same number."""
    past = Past(tmp_path / "history")
    past.store_string("one")
    past.store_string("two")
    (tmp_path / f"history.{os.getpid()}").write_text("half")
    assert past.forget(["one"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_half_a_note_is_gone_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".part").write_text("half")
    Notes(tmp_path).write(note_name("leeks"), b"whole", behind=False)
    assert [path.name for path in tmp_path.iterdir()] == ["leeks.md"]
