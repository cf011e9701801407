"""The commands on a server: the same as on a file."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import Beside
from postgres_server import Emptied
from zygote import Zygote

from segue import SessionDB

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
IMPATIENT = Path(__file__).parents[1] / "support" / "impatient_launcher.py"

LINES = [
    {
        "id": f"s{number}",
        "source": ("cli", "telegram")[number % 2],
        "title": f"Title {number}",
        "started_at": 1_700_000_000.0 + number,
        "ended_at": 1_700_000_100.0,
        "end_reason": "user_exit",
        "tags": ["even"] if number % 2 == 0 else [],
        "messages": [
            {"role": "user", "content": f"What about topic{number}?", "timestamp": 1_700_000_001.0},
            {"role": "assistant", "content": "It is naïve 天气 🚀.", "timestamp": 1_700_000_002.0},
        ],
    }
    for number in range(6)
]


@pytest.fixture
def on_server(home: Path, emptied: Emptied, run: Run, tmp_path: Path) -> str:
    """A home whose conversations are on a server."""
    home.mkdir(mode=0o700)
    url = emptied.empty()
    (home / "config.yaml").write_text(f"database: {url}\n", "utf-8")
    (home / "config.yaml").chmod(0o600)
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    done = run("sessions", "import", str(file))
    assert done.returncode == 0, done.stderr
    return url


def ok(run: Run, *arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("on_server")
def test_conversations_are_listed_read_found_and_changed(run: Run, home: Path) -> None:
    assert [one["id"] for one in json.loads(ok(run, "sessions", "list", "--json"))] == [
        f"s{n}" for n in (5, 4, 3, 2, 1, 0)
    ]
    assert "What about topic3?" in ok(run, "sessions", "show", "Title 3")
    assert "topic3" in ok(run, "sessions", "search", "topic3")
    assert len(json.loads(ok(run, "sessions", "search", "天气", "--json"))) == 6
    ok(run, "sessions", "rename", "s3", "Renamed")
    ok(run, "sessions", "tag", "s3", "red")
    ok(run, "sessions", "pin", "s3")
    ok(run, "sessions", "archive", "s4")
    assert "Renamed" in ok(run, "sessions", "list", "--tag", "red")
    ok(run, "sessions", "delete", "s5", "--yes")
    assert "s5" in ok(run, "sessions", "trash", "list")
    ok(run, "sessions", "trash", "restore", "s5")
    assert "6 sessions" in ok(run, "status")
    assert "Total sessions: 6" in ok(run, "sessions", "stats")
    ok(run, "insights", "--days", "3650")
    assert not (home / "state.db").exists()


@pytest.mark.usefixtures("on_server")
def test_it_is_examined_backed_up_and_brought_back(run: Run, tmp_path: Path) -> None:
    assert "✓ server" in ok(run, "doctor")
    before = ok(run, "sessions", "export", "-", "--yes")
    ok(run, "backup", str(tmp_path / "b.zip"))
    ok(run, "sessions", "delete", "s1", "--purge", "--yes")
    ok(run, "restore", str(tmp_path / "b.zip"), "--yes")
    assert ok(run, "sessions", "export", "-", "--yes") == before
    assert "✓ search" in ok(run, "doctor", "--reindex")
    assert "topic1" in ok(run, "sessions", "search", "topic1")


@pytest.mark.usefixtures("on_server")
def test_a_sequence_behind_its_rows_is_found_and_advanced(run: Run, home: Path) -> None:
    assert "✓ sequences" in ok(run, "doctor")
    with Beside(home) as beside:
        beside.ask("SELECT setval(pg_get_serial_sequence('messages', 'id'), 3, false)")
    found = run("doctor")
    assert found.returncode == 1
    assert "behind their rows" in found.stdout
    assert "messages (next id 3, highest id 12)" in found.stdout
    assert "doctor --fix" in found.stdout
    assert "New rows get free ids again." in ok(run, "doctor", "--fix")
    assert "✓ sequences" in ok(run, "doctor")
    with SessionDB() as db:
        assert db.append_message("s1", "user", "and it goes on")


def test_the_address_is_shown_without_its_password(home: Path, run: Run, zygote: Zygote, on_server: str) -> None:
    address = on_server.replace("postgresql:///", "postgresql://segue:hunter2@/").replace("&user=segue", "")
    (home / "config.yaml").write_text(f"database: {address}\n", "utf-8")
    for command in (["status"], ["config", "show"], ["doctor"], ["status", "--json"]):
        done = run(*command)
        assert "hunter2" not in done.stdout + done.stderr
    (home / "config.yaml").write_text("database: postgresql://segue:hunter2@/x?host=/nowhere\n", "utf-8")
    done = zygote.run(["sessions", "list"], None, os.environ | {"SEGUE_HOME": str(home)}, program=IMPATIENT)
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "hunter2" not in done.stderr
