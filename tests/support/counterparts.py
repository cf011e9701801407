"""The other side of the platforms, on a Python of its own: it asks for other versions than Segue does."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

_INSTALLER = Path(__file__).parents[2] / "scripts" / "counterparts"


@cache
def counterparts_python() -> str:
    """The path of that Python; a test is skipped where it cannot be installed."""
    installed = subprocess.run([str(_INSTALLER)], capture_output=True, text=True, timeout=540)
    if installed.returncode != 0:
        pytest.skip(f"the counterparts cannot be installed: {installed.stderr.strip()[-300:]}")
    return installed.stdout.strip()


def node() -> str:
    """The path of the Node that comes with it."""
    return str(Path(counterparts_python()).with_name("node"))
