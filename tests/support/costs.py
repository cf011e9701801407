"""What a run of the tests cost, beside what it may cost: seconds per folder and the slowest files.

Seconds differ between machines, so each is also told as a multiple of a short calibration on the same machine, which
`scripts/test` takes before the tests and hands on as SEGUE_TEST_UNIT; the budget of a folder is such a multiple.
Nothing fails here: a warning is what a person acts on.
"""

import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

BUDGET = Path(__file__).parents[1] / "budget.toml"
SLOWEST_FILES = 10
_ROUNDS = 3


class Row(NamedTuple):
    """One line of what is told."""

    name: str
    seconds: float
    factor: float
    budget: float | None

    @property
    def is_over(self) -> bool:
        return self.budget is not None and self.factor > self.budget

    def __str__(self) -> str:
        allowed = "" if self.budget is None else f" of {self.budget:6.1f}"
        return f"  {self.name:<52} {self.seconds:8.1f} s  {self.factor:7.1f}{allowed}{'  OVER' if self.is_over else ''}"


class Costs:
    """Collects the duration of every test, also of those that other workers run."""

    def __init__(self, budget: Mapping[str, float], unit: float) -> None:
        self._budget = budget
        self._unit = unit
        self._files: Counter[str] = Counter()
        self._began = time.monotonic()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._files[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        elapsed = time.monotonic() - self._began
        terminalreporter.section("costs")
        for line in told(self._files, elapsed, self._budget, self._unit):
            terminalreporter.write_line(line, yellow=line.endswith("OVER"))


def told(files: Mapping[str, float], elapsed: float, budget: Mapping[str, float], unit: float) -> list[str]:
    """Return the lines to print: folders, slowest files, and the whole."""
    folders: Counter[str] = Counter()
    for name, seconds in files.items():
        folders[_folder(name)] += seconds  # type: ignore[assignment]

    def row(name: str, seconds: float, allowed: float | None = None) -> Row:
        return Row(name, seconds, seconds / unit, allowed)

    by_folder = [row(name, seconds, budget.get(name, 0.0)) for name, seconds in folders.most_common()]
    slowest = [row(name, seconds) for name, seconds in Counter(files).most_common(SLOWEST_FILES)]
    whole = row("all of it, as the clock on the wall has it", elapsed, budget.get("whole"))
    over = [one.name for one in [*by_folder, whole] if one.is_over]
    return [
        f"Calibration: {unit:.2f} s on this machine. Seconds, and multiples of the calibration of the budget's:",
        *map(str, by_folder),
        f"The {len(slowest)} slowest files:",
        *map(str, slowest),
        str(whole),
        *([f"Over the budget of {BUDGET.parent.name}/{BUDGET.name}: {', '.join(over)}"] if over else []),
    ]


def calibrate() -> float:
    """Return the seconds that this machine needs for a little of what tests do: compute, commit, start processes."""
    return sorted(_round() for _ in range(_ROUNDS))[_ROUNDS // 2]


def _round() -> float:
    began = time.perf_counter()
    digest = b""
    for number in range(200_000):
        digest = hashlib.sha256(digest + b"%d" % number).digest()
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "calibration.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE numbers (number INTEGER)")
        for number in range(100):
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        connection.close()
    for _ in range(5):
        subprocess.run([sys.executable, "-c", "import json, asyncio"], check=True)
    return time.perf_counter() - began


def _folder(file: str) -> str:
    return Path(file).parent.name


def pytest_configure(config: pytest.Config) -> None:
    """Where the calibration has been taken, in the process that hears of all tests."""
    unit = os.environ.get("SEGUE_TEST_UNIT")
    if unit and not hasattr(config, "workerinput"):
        budget = tomllib.loads(BUDGET.read_text())["budget"]
        config.pluginmanager.register(Costs(budget, float(unit)), "costs")


if __name__ == "__main__":
    print(f"{calibrate():.4f}")
