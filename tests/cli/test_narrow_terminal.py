"""A terminal of 40 columns: lists, the chat and what was done can be read there."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

from segue import SessionDB

pytestmark = [pytest.mark.on_file, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

SEGUE = shlex.join([sys.executable, "-m", "segue"])
FIRST, SEVENTH = "20251001_120000_aaaaaaaa", "20251002_120000_bbbbbbbb"


@pytest.fixture
def terminal(db: SessionDB, home: Path) -> Iterator[Terminal]:
    parts: list[dict[str, object]] = [
        {"id": FIRST, "title": "my project with quite a long name", "end_reason": "compression", "ended_at": 2.0},
        {"id": SEVENTH, "title": "my project with quite a long name #7", "parent_session_id": FIRST},
    ]
    said = [
        {"role": "user", "content": "And then?"},
        {"role": "assistant", "content": "Once", "finish_reason": "stopped"},
    ]
    assert db.import_sessions([one | {"source": "cli", "messages": said} for one in parts])["added"] == 2
    keys = [f"{name}=" for name in os.environ if name.endswith("_API_KEY")]
    opened = Terminal(home.parent, f"SEGUE_HOME={home}", "LESS=FRX", *keys, width=40, height=30)
    yield opened
    opened.close()


def test_what_is_read_there_fits_and_keeps_what_matters(terminal: Terminal, home: Path) -> None:
    terminal.send(f"clear; {SEGUE} sessions list")
    terminal.until(f"my project… #7  {SEVENTH}")
    terminal.send(f"clear; {SEGUE} status")
    terminal.until("          2 sessions, 4 messages, 0\n          lanes, 0 in the trash\nGateway   not running")
    terminal.send(f"clear; {SEGUE} sessions show {SEVENTH}")
    terminal.until("◆ Assistant\n  #2 · ", " · stopped\nOnce")
    terminal.send(f"clear; {SEGUE} -c my project with quite a long name")
    terminal.until("compressed; this is where it goes", "╭─ my project with quite a long n… #7 ─╮", "#7 ·…")
    terminal.send("/quit")
    terminal.until(SEVENTH, "ready>")
    terminal.send(f"clear; {SEGUE} backup {home.parent / 'b.zip'}")
    screen = terminal.until("verified.\n", "ready>")
    assert sum("Backing up" in line for line in screen.splitlines()) <= 1, "the bar is drawn on one line"
    terminal.send(f"clear; {SEGUE} sessions delete {SEVENTH} --yes")
    terminal.until("1 conversation moved to the trash for 7\ndays.")
