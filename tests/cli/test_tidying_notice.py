"""What goes by itself is told the day before, whatever command somebody happens to use."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import Beside, configure

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]

DAY = 86400


def later(home: Path, days: float) -> None:
    """Let time pass: whatever the store remembers happened that much earlier."""
    with Beside(home) as beside:
        beside.ask("UPDATE trash SET trashed_at = trashed_at - ?", days * DAY)
        beside.ask("UPDATE sessions SET last_active_at = last_active_at - ?", days * DAY)
        for key, value in beside.ask("SELECT key, value FROM state_meta WHERE substr(key, 1, 7) = ?", "upkeep:"):
            said = json.loads(value)
            if isinstance(said, list) and isinstance(said[0], str):
                continue  # names have no moment
            moved = [one - days * DAY for one in said] if isinstance(said, list) else said - days * DAY
            beside.ask("UPDATE state_meta SET value = ? WHERE key = ?", json.dumps(moved), key)


def tomorrow() -> str:
    return time.strftime("%Y-%m-%d", time.localtime(time.time() + DAY))


@pytest.mark.parametrize("command", [["sessions", "list"], ["status"], ["sessions", "trash", "list"]])
def test_the_trash_empties_itself_a_day_after_saying_so(home: Path, run: Run, command: list[str]) -> None:
    with SessionDB() as db:
        db.create_session("s1", title="Old plans", source="cli")
        db.end_session("s1", "done")
    assert run("sessions", "delete", "s1", "--yes").returncode == 0
    assert "leave" not in run(*command).stderr
    later(home, 6.5)
    before, told, after = tomorrow(), run(*command).stderr, tomorrow()
    assert "1 session will leave the trash for good after" in told
    assert before in told or after in told
    assert "leave" not in run(*command).stderr, "said once"
    later(home, 1.1)
    assert "1 session deleted more than 7 days ago left the trash for good" in run(*command).stderr
    assert run("sessions", "trash", "list", "--json").stdout == "[]\n"


def test_old_conversations_go_into_the_trash_when_a_setting_says_so(home: Path, run: Run) -> None:
    with SessionDB() as db:
        for name in ("old", "open", "pinned"):
            db.create_session(name, source="cli")
            if name != "open":
                db.end_session(name, "done")
    run("sessions", "pin", "pinned")
    configure(home, "retention:\n  prune_days: 100\n")
    later(home, 100)
    assert "1 conversation without activity for 100 days will go into the trash" in run("sessions", "list").stderr
    later(home, 1.1)
    assert "1 old session went into the trash" in run("sessions", "list").stderr
    assert [one["session_id"] for one in json.loads(run("sessions", "trash", "list", "--json").stdout)] == ["old"]
