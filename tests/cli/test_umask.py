"""What is made is for its owner: for nobody else, and for them in any case."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import DEADLINE


def segue(home: Path, umask: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command = ["sh", "-c", f'umask {umask:03o}; exec "$@"', "sh", sys.executable, "-m", "segue", *arguments]
    return subprocess.run(
        command,
        env=environment | {"SEGUE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


@pytest.mark.parametrize("umask", [0o777, 0o277, 0o077, 0o000])
def test_files_can_be_read_by_their_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "above" / "home"
    (tmp_path / "above").mkdir()
    said = segue(home, umask, "-q", "hello")
    assert said.returncode == 0, said.stderr
    backup = segue(home, umask, "backup", str(tmp_path / "copy.zip"))
    assert backup.returncode == 0, backup.stderr
    listed = segue(home, umask, "sessions", "list", "--json")
    assert "hello" in listed.stdout
    for path in [home, tmp_path / "copy.zip", *home.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
