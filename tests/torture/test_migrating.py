"""A large store moved to a server and back, killed twice on each way: nothing differs, and memory stays flat."""

import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from homes import keep_in
from postgres_server import Server
from psycopg.conninfo import conninfo_to_dict
from torture_rounds import rounds

from segue import SessionDB, app

pytestmark = pytest.mark.torture

MESSAGES = rounds(3_000, in_torture=400_000)
OF_A_SESSION = 100
FLAT = 64 << 20
"""What a store fifty times as large may cost more at the peak."""
PATIENCE = rounds(90, in_torture=3600)
WORDS = ["river", "delta", "naïve", "天气", "桂林山水", "ไทย", "🚀", "/etc/nginx/nginx.conf", "don't", "C++"]


def conversations(messages: int) -> Iterator[dict[str, object]]:
    chance = random.Random(messages)
    for number in range(messages // OF_A_SESSION):
        said = [
            {
                "role": ("user", "assistant")[place % 2],
                "content": " ".join(chance.choices(WORDS, k=40)) + f" {number}.{place}",
                "timestamp": 1_700_000_000.0 + number * 1000 + place,
            }
            for place in range(OF_A_SESSION)
        ]
        yield {"id": f"s{number}", "source": "cli", "title": f"Title {number}", "tags": ["moved"], "messages": said}


def filled(home: Path, messages: int) -> Path:
    """A home on a file whose index is complete."""
    home.mkdir(mode=0o700)
    with SessionDB(home / "state.db") as db:
        assert db.import_sessions(conversations(messages))["added"] == messages // OF_A_SESSION
    with app.open_store(home / "state.db") as store:
        store.index_all(anew=False)
    return home


def migration(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "segue", "db", "migrate", *arguments],
        env=os.environ | {"SEGUE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def killed_on_the_way(copied: Callable[[], int], home: Path, *arguments: str) -> None:
    """Twice, each time when more is there than before and less than all."""
    than = 0
    end = time.monotonic() + PATIENCE
    for _ in range(2):
        with migration(home, *arguments) as process:
            while (found := copied()) <= than:
                assert process.poll() is None, "it was not to finish yet"
                assert time.monotonic() < end
                time.sleep(0.01)
            process.kill()
        than = found
    assert 0 < copied() < MESSAGES


def in_file(file: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])
    except sqlite3.Error:
        return 0


def on_server(server: Server, url: str) -> int:
    database = str(conninfo_to_dict(url)["dbname"])
    if not server.run("SELECT to_regclass('segue.messages')", database)[0][0]:
        return 0
    return int(server.run("SELECT count(*) FROM segue.messages", database)[0][0])


def finished(home: Path, *arguments: str) -> tuple[int, str]:
    """The peak of its memory, and what it said."""
    peak = 0
    end = time.monotonic() + PATIENCE
    with migration(home, *arguments) as process:
        while process.poll() is None:
            assert time.monotonic() < end
            peak = max(peak, peak_of(process.pid))
            time.sleep(0.02)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 0, said
    return peak, said


def peak_of(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return max((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), default=0)


def digest(home: Path) -> str:
    """Every message as it is exported, in one number."""
    told = hashlib.sha256()
    command = [sys.executable, "-m", "segue", "sessions", "export", "-", "--yes"]
    environment = os.environ | {"SEGUE_HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 20):
            told.update(piece)
    assert process.returncode == 0
    return told.hexdigest()


def test_there_and_back_killed_twice_on_each_way(tmp_path: Path, postgres_server: Server) -> None:
    small, _ = finished(filled(tmp_path / "small", 2_000), "--to", postgres_server.new_database())
    home, url = filled(tmp_path / "home", MESSAGES), postgres_server.new_database()
    before = digest(home)

    began = time.monotonic()
    killed_on_the_way(lambda: on_server(postgres_server, url), home, "--to", url)
    peak, said = finished(home, "--to", url)
    there = time.monotonic() - began
    assert f"{MESSAGES // OF_A_SESSION:,} sessions, {MESSAGES:,} messages: equal in both." in said
    assert peak < small + FLAT
    keep_in(home, url)
    assert digest(home) == before

    (home / "state.db").rename(tmp_path / "old.db")
    for companion in ("-wal", "-shm"):
        Path(f"{home / 'state.db'}{companion}").unlink(missing_ok=True)
    began = time.monotonic()
    killed_on_the_way(lambda: in_file(home / "state.db"), home, "--to", "sqlite")
    peak_back, said = finished(home, "--to", "sqlite")
    back = time.monotonic() - began
    assert "equal in both." in said
    assert peak_back < small + FLAT
    (home / "config.yaml").unlink()
    assert in_file(home / "state.db") == MESSAGES
    assert digest(home) == before
    megabytes = [one >> 20 for one in (small, peak, peak_back)]
    print(json.dumps({"messages": MESSAGES, "there": there, "back": back, "peak of 2,000, there, back": megabytes}))
