"""What every test may use: a home of its own, a store on each database, and the command line as a real process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from segue import SessionDB
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

settings.register_profile("segue", deadline=None, print_blob=True)
settings.load_profile("segue")

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The command line and the documents are tried as people do, which takes its time."""
    for item in items:
        if {"cli", "docs"} & set(item.path.parts[-2:-1]):
            item.add_marker(pytest.mark.process)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be left out, a test that was skipped is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if reporter and skipped and os.environ.get("CI") == "true":
        reporter.write_line(f"\n{len(skipped)} skipped, which CI=true does not allow:", red=True)
        for report in skipped:
            reporter.write_line(f"  {report.nodeid}: {report.longrepr[2] if report.longrepr else ''}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home folder, not made yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SEGUE_HOME", str(folder))
    return folder


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, home: Path) -> Iterator[SqlStore]:
    """An empty store on each database there is."""
    assert request.param == "sqlite"
    with SqlStore(SqliteEngine(home / "state.db")) as opened:
        yield opened


@pytest.fixture
def db(home: Path) -> Iterator[SessionDB]:
    """The Python API on an empty home."""
    with SessionDB() as opened:
        yield opened


@pytest.fixture
def run(home: Path) -> Run:
    """Run `segue` as people do: another process, its output captured."""

    def command(*arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "segue", *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            env=os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"} | environment,
        )

    return command
