"""Where the tools of a conversation work that is carried on from somewhere else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.on_file, pytest.mark.process]

LAUNCHER = Path(__file__).parents[1] / "support" / "chat_launcher.py"


def ask(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, str(LAUNCHER), json.dumps({"scripted": True}), "--yes", *arguments, "-q", "Look and act."],
        cwd=folder,
        env=environment | {"SEGUE_HOME": str(home), "OPENAI_API_KEY": "x"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_tools_work_where_the_conversation_began(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "notes.txt").write_text(f"notes of {folder.name}\n")
    ask(here, tmp_path / "home")
    ask(there, tmp_path / "home", "-c")
    assert (here / "marker").read_text() == "ran\nran\n"
    assert not (there / "marker").exists()
    shutil.rmtree(here)
    done = ask(there, tmp_path / "home", "-c")
    assert f"The folder of this conversation, {here}, is not there any more" in done.stderr
    assert (there / "marker").read_text() == "ran\n"
