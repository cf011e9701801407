"""Backups while others write, and restores killed at every step: the old home or the new one, and every message."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from fork_server import PIPE, ForkServer
from torture_rounds import rounds
from waiting import wait_until

from segue import SessionDB

pytestmark = pytest.mark.torture

WRITERS = 4
WRITER = """
import itertools, sys
from segue import SessionDB
name = sys.argv[1]
with SessionDB() as db:
    db.create_session(name, source="cli")
    for number in itertools.count():
        db.append_message(name, "user", f"{name} {number} 你好 " + "x" * (number % 300))
        print(number, flush=True)
"""


SEGUE = "from segue.cli import main; main()"
Segue = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def segue(fork_server: ForkServer) -> Segue:
    """A command in a home, as a process of its own."""

    def run(home: Path, *arguments: str, is_well: bool = True) -> "subprocess.CompletedProcess[str]":
        done = fork_server.run(SEGUE, *arguments, env=of(home))
        assert done.returncode == 0 or not is_well, done.stdout + done.stderr
        return done

    return run


def of(home: Path) -> dict[str, str]:
    return os.environ | {"SEGUE_HOME": str(home)}


def said(segue: Segue, home: Path) -> dict[str, list[str]]:
    """Every message of a home, by session, through the product."""
    exported = segue(home, "sessions", "export", "-").stdout
    sessions = [json.loads(line) for line in exported.splitlines()]
    return {one["id"]: [message["content"] for message in one["messages"]] for one in sessions}


def lines_in(log: Path) -> int:
    return len(log.read_text().splitlines())


def _have(logs: list[Path], wanted: list[int]) -> bool:
    return all(lines_in(log) >= least for log, least in zip(logs, wanted, strict=True))


def test_a_backup_taken_while_four_processes_write_has_all_that_had_returned(
    home: Path, tmp_path: Path, segue: Segue, fork_server: ForkServer
) -> None:
    SessionDB().close()
    logs = [tmp_path / f"writer{number}" for number in range(WRITERS)]
    writers = []
    for number, log in enumerate(logs):
        with log.open("w") as written:
            writers.append(fork_server.start(WRITER, f"w{number}", stdout=written))
    returned = [0] * WRITERS
    try:
        for attempt in range(rounds(2, in_torture=3)):
            wanted = [before + 50 for before in returned]
            wait_until(partial(_have, logs, wanted), "more of every writer")
            returned = [lines_in(log) for log in logs]
            archive = tmp_path / f"backup{attempt}.zip"
            segue(home, "backup", str(archive))
            assert all(writer.poll() is None for writer in writers), "nobody was stopped by it"
            other = tmp_path / f"home{attempt}"
            segue(other, "restore", str(archive), "--yes")
            restored = said(segue, other)
            for number, before in enumerate(returned):
                found = restored.get(f"w{number}", [])
                assert before <= len(found) + 1  # the line may be out before its newline was seen
                assert [text.split()[:2] for text in found] == [[f"w{number}", str(at)] for at in range(len(found))]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def test_a_plain_copy_of_the_file_would_miss_what_had_returned(
    home: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    """The control of the test above: what is in the log is in no copy of the file alone."""
    script = WRITER.replace("itertools.count()", "range(130)") + "    import time; time.sleep(600)\n"
    with (tmp_path / "log").open("w") as log:
        writer = fork_server.start(script, "w", stdout=log)
    try:
        wait_until(lambda: lines_in(tmp_path / "log") == 130, "what it writes")
        shutil.copy(home / "state.db", tmp_path / "copy.db")
    finally:
        writer.kill()
        writer.wait()
    with SessionDB(tmp_path / "copy.db") as copied:
        assert copied.message_count("w") < 130


RESTORE = """
import os, signal, sys
from pathlib import Path
home, archive, fatal = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
steps = 0

def step():
    global steps
    steps += 1
    if steps == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(event, arguments):
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.chmod"):
        if any(str(home) in str(one) for one in arguments[:2]):
            step()

import time
from segue import app
from segue.cli import keeping  # before anybody counts
from segue.storage.connection import SqliteConnection
from segue.upkeep import archive as archiving, placing
import zipfile, shutil, tempfile, fcntl
{patch}
copying = SqliteConnection.copy_from
def counted(self, source, advance, under_lock=bool):
    step()
    copying(self, source, lambda pages: (step(), advance(pages)), lambda: (step(), under_lock(), step()))
    step()
SqliteConnection.copy_from = counted

contents = archiving.read_contents(archive)
sys.addaudithook(watch)
keeping._restore(app.settings(), archive, contents, time.time(), is_empty=False)
print(steps)
"""

UNSAFE = """
def overwrite(self, source, advance=bool, under_lock=bool):  # as a plain copy would: page by page into the file itself
    import os
    self.empty_log()
    target = os.open(str(self.path).encode().replace(b"state", b"./state"), os.O_WRONLY)
    data = Path(source).read_bytes()
    for at in range(0, len(data), 65536):
        os.pwrite(target, data[at:at + 65536], at)
        step()
from segue.storage.sqlite import SqliteEngine
SqliteEngine.replace_with = overwrite
from segue.storage import guards
guards._refuse_database_files = lambda *_: None
"""


Restoring = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def restoring(fork_server: ForkServer) -> Restoring:
    """Restore a home, and die at a step."""

    def run(home: Path, archive: Path, fatal: int, patch: str = "") -> "subprocess.CompletedProcess[str]":
        return fork_server.run(RESTORE.replace("{patch}", patch), home, archive, fatal, env=of(home))

    return run


@pytest.fixture
def two_homes(tmp_path: Path, segue: Segue) -> tuple[Path, Path]:
    """A home, and a backup of another state of it."""
    home = tmp_path / "old"
    for number, name in enumerate(("new", "old")):
        folder = tmp_path / name
        messages = [
            [
                {"role": "user", "content": f"{name} {at} {message} " + "é" * 400, "timestamp": 1.0 + message}
                for message in range(40 + 20 * number)
            ]
            for at in range(12)
        ]
        with SessionDB(folder / "state.db") as db:
            db.import_sessions(
                [{"id": f"{name}{at}", "source": "cli", "messages": some} for at, some in enumerate(messages)]
            )
        folder.chmod(0o700)
        for file in (folder / "memory" / "MEMORY.md", folder / "attachments" / "ab" / ("ab" * 32)):
            file.parent.mkdir(mode=0o700, parents=True)
            file.write_text(name if "memory" in str(file) else "same")
        segue(folder, "doctor", "--fix")  # closes what the umask left open
    archive = tmp_path / "new.zip"
    segue(tmp_path / "new", "backup", str(archive))
    return home, archive


NEXT = (["sessions", "list"], ["doctor", "--fix"], ["backup", "FILE"], ["sessions", "tag", "old1", "new1"])


def states(segue: Segue, home: Path, number: int = 0) -> tuple[str, str]:
    """What a person finds after the crash, whatever they do next: which conversations, and which memory."""
    arguments = [str(home.with_name("next.zip")) if one == "FILE" else one for one in NEXT[number % len(NEXT)]]
    done = segue(home, *arguments, is_well=False)
    assert done.returncode == 0 or "No session has" in done.stderr, done.stdout + done.stderr
    return "".join(sorted({name[:3] for name in said(segue, home)})), (home / "memory" / "MEMORY.md").read_text()


def test_a_restore_killed_at_any_step_leaves_the_old_home_or_the_new(
    two_homes: tuple[Path, Path], segue: Segue, restoring: Restoring
) -> None:
    home, archive = two_homes
    saved = home.with_name("saved")
    shutil.copytree(home, saved)
    expected = {"old": said(segue, home), "new": {}}
    steps = int(restoring(home, archive, 0).stdout)
    assert states(segue, home) == ("new", "new")
    expected["new"] = said(segue, home)
    assert steps > 20
    seen = set()
    for fatal in range(1, steps + 1, rounds(2, in_torture=1)):
        shutil.rmtree(home)
        shutil.copytree(saved, home)
        assert restoring(home, archive, fatal).returncode == -signal.SIGKILL
        sessions, memory = states(segue, home, fatal)
        assert sessions == memory, f"half of each after step {fatal} of {steps}"
        assert said(segue, home) == expected[sessions], f"something is missing after step {fatal} of {steps}"
        seen.add(sessions)
    assert seen == {"old", "new"}
    assert "All is well" in segue(home, "doctor", "--fix").stdout


def test_without_its_transaction_the_same_kills_would_break_a_home(
    two_homes: tuple[Path, Path], segue: Segue, restoring: Restoring
) -> None:
    home, archive = two_homes
    saved = home.with_name("saved")
    shutil.copytree(home, saved)
    whole = said(segue, home)
    steps = int(restoring(home, archive, 0, UNSAFE).stdout)
    for fatal in range(steps, 0, -1):
        shutil.rmtree(home)
        shutil.copytree(saved, home)
        assert restoring(home, archive, fatal, UNSAFE).returncode == -signal.SIGKILL
        try:
            sessions, memory = states(segue, home)
            is_broken = sessions != memory or (sessions == "old" and said(segue, home) != whole)
        except (AssertionError, FileNotFoundError):
            is_broken = True
        if is_broken:
            return
    pytest.fail("nothing broke, so that the other test proves nothing")


def test_other_processes_go_on_after_a_restore(
    home: Path, tmp_path: Path, segue: Segue, fork_server: ForkServer
) -> None:
    with SessionDB() as db:
        db.create_session("w", source="cli")
        db.append_message("w", "user", "before")
    archive = tmp_path / "backup.zip"
    segue(home, "backup", str(archive))
    log = tmp_path / "log"
    with log.open("w") as written:
        writing = WRITER.replace('    db.create_session(name, source="cli")\n', "")
        writer = fork_server.start(writing, "w", stdout=written, stderr=PIPE)
    try:
        wait_until(lambda: lines_in(log) > 50, "a writer at work")
        segue(home, "restore", str(archive), "--yes")
        reached = lines_in(log)
        wait_until(lambda: lines_in(log) > reached + 50 or writer.poll() is not None, "a writer that goes on")
        assert writer.poll() is None, "it noticed nothing"
    finally:
        writer.kill()
        _, errors = writer.communicate()
    assert b"Error" not in errors
    first, *later = [text.split()[1:2] for text in said(segue, home)["w"]]
    assert first == []
    numbers = [int(one) for (one,) in later]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "all that was said after the restore, and only that"
    assert numbers[0] <= reached < numbers[-1]
    assert "All is well" in segue(home, "doctor").stdout
