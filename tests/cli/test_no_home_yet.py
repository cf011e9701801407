"""Commands that only look make no home, as when SEGUE_HOME is misspelt; neither does a rehearsal."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segue import SessionDB

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]

QUIET = """
    sessions list
    sessions list --json
    sessions list --all
    sessions search leeks
    sessions stats
    sessions trash list
    sessions trash empty --dry-run
    sessions prune --dry-run
    sessions export -
    status
    status --json
    insights
    insights --json
    doctor
    config show
    config check
    lanes list
    inbox list
    inbox list --json
    outbox list
    pairing list
    cron list
    batch list
    tokens list
    gateway status
    completion bash
"""
REFUSED = """
    sessions show leeks
    sessions delete leeks --dry-run
    sessions export leeks.html --session-id leeks
    inbox show 1
    inbox retry 1 --dry-run
    inbox cancel 1 --dry-run
    outbox retry 1 --dry-run
    lanes show leeks
    gateway call health
    gateway stop
    gateway restart
    backup leeks.zip
"""


@pytest.mark.parametrize("line", QUIET.strip().splitlines())
def test_looking_makes_no_home(run: Run, home: Path, line: str) -> None:
    assert run(*line.split()).returncode == 0
    assert not home.exists()


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_looking_for_what_is_not_there_makes_no_home(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*line.split()).returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert not home.exists()


def test_a_rehearsed_import_makes_no_home(run: Run, home: Path) -> None:
    line = '{"id": "a", "source": "cli", "messages": [{"role": "user", "content": "leeks"}]}\n'
    done = run("sessions", "import", "-", "--dry-run", stdin=line)
    assert (done.returncode, done.stdout) == (0, "Would be: 1 added.\n")
    assert not home.exists()


def test_a_home_without_conversations_stays_as_it_is(run: Run, home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("{}\n")
    for arguments in (["sessions", "list"], ["status"], ["backup", str(tmp_path / "backup.zip")]):
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        assert [file.name for file in home.iterdir()] == ["config.yaml"]
    assert "0.0 MB" in run("status").stdout


def test_nothing_of_the_empty_store_is_left_behind(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    assert run("sessions", "list", TMPDIR=str(folder)).returncode == 0
    assert list(folder.iterdir()) == []
    SessionDB(home / "state.db").close()
    assert run("sessions", "list", TMPDIR=str(folder)).returncode == 0
