"""The script that exports and then prunes, as the page has it, run as cron runs it."""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import DEADLINE

from segue import SessionDB

pytestmark = pytest.mark.on_file

PAGE = Path(__file__).parents[2] / "docs" / "sessions.md"
DAY = 86_400.0


@pytest.fixture
def script(tmp_path: Path) -> Path:
    found = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(found) == 1
    file = tmp_path / "segue-archive"
    file.write_text(found[0])
    file.chmod(0o700)
    return file


@pytest.fixture
def cron(home: Path, tmp_path: Path) -> dict[str, str]:
    """What little cron gives a script, and a place where it finds our program."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "segue").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m segue "$@"\n')
    (programs / "segue").chmod(0o700)
    return {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin", "SEGUE_HOME": str(home), "SHELL": "/bin/sh"}


def ran(script: Path, cron: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", str(script)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=cron,
    )


def add(db: SessionDB, name: str, days: float) -> None:
    at = time.time() - days * DAY
    said = [{"role": "user", "content": f"This is {name}", "timestamp": at}]
    one = {"id": name, "source": "cli", "started_at": at, "ended_at": at, "end_reason": "user_exit", "messages": said}
    assert db.import_sessions([one])["added"] == 1


def exported(folder: Path) -> list[set[str]]:
    """The sessions in each file, oldest first."""
    return [
        {json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()} for file in sorted(folder.iterdir())
    ]


def listed(db: SessionDB) -> set[str]:
    return {str(one["id"]) for one in db.list_sessions_rich()}


def test_run_three_times_it_loses_nothing(db: SessionDB, script: Path, cron: dict[str, str], tmp_path: Path) -> None:
    add(db, "new", 1)
    for number in range(3):
        add(db, f"old-{number}", 100 + number)
        done = ran(script, cron)
        while done.returncode == 1 and "exists already" in done.stderr:  # twice in one second
            done = ran(script, cron)
        assert done.returncode == 0, done.stderr
        assert listed(db) == {"new"}
    assert exported(tmp_path / "segue-exports") == [{"new", f"old-{number}"} for number in range(3)]
    add(db, "young", 2)
    assert ran(script, cron).returncode in (0, 1), "also when there is nothing to prune"
    assert listed(db) == {"new", "young"}


def test_what_could_not_be_exported_is_not_pruned(db: SessionDB, script: Path, cron: dict[str, str]) -> None:
    """Twice at one moment: the file is there already."""
    date = Path(cron["PATH"].partition(":")[0]) / "date"
    date.write_text("#!/bin/sh\necho 20250305-091523\n")
    date.chmod(0o700)
    add(db, "first", 100)
    assert ran(script, cron).returncode == 0
    add(db, "second", 100)
    done = ran(script, cron)
    file = Path(cron["HOME"]) / "segue-exports" / "20250305-091523.jsonl"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"segue: {file} exists already and was left as it is; --yes replaces it.\n"
    assert exported(file.parent) == [{"first"}]
    assert listed(db) == {"second"}
