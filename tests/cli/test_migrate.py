"""`segue db migrate`: there and back, killed on the way, and nothing is different."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from postgres_server import Server
from psycopg.conninfo import conninfo_to_dict

from segue import SessionDB

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def told(home: Path) -> int:
    with SessionDB(home / "state.db") as db:
        rows = [
            {"role": "user", "content": f"text {number} naïve 天气 " + "word " * 20, "timestamp": float(number)}
            for number in range(300)
        ]
        for number in range(40):
            db.import_sessions([{"id": f"s{number}", "source": "cli", "title": f"t{number}", "messages": rows}])
    return 40 * 300


def test_there_and_back_killed_on_the_way(home: Path, run: Run, told: int, postgres_server: Server) -> None:
    url = postgres_server.new_database()
    database = str(conninfo_to_dict(url)["dbname"])
    before = run("sessions", "export", "-", "--yes").stdout
    copied = 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "segue", "db", "migrate", "--to", url],
            env=os.environ | {"SEGUE_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            copied = wait_for_more(postgres_server, database, copied, process)
            process.kill()
    assert 0 < copied < told
    done = run("db", "migrate", "--to", url)
    assert f"40 sessions, {told:,} messages: equal in both." in done.stdout
    (home / "config.yaml").write_text(f"database: {url}\n", "utf-8")
    assert run("sessions", "export", "-", "--yes").stdout == before
    assert database in run("status").stdout
    assert ">>>7<<<" in run("sessions", "search", "7", "session:s3").stdout
    assert run("sessions", "rename", "s3", "Another name").returncode == 0

    refused = run("db", "migrate", "--to", "sqlite")
    assert refused.returncode == 1
    assert f"There are 40 sessions and {told:,} messages already" in refused.stderr
    assert "--replace" in refused.stderr
    back = run("db", "migrate", "--to", "sqlite", "--replace", "--yes")
    assert "equal in both." in back.stdout
    (home / "config.yaml").unlink()
    assert "Another name" in run("sessions", "list", "--limit", "50").stdout
    assert run("doctor").returncode == 0


def wait_for_more(server: Server, database: str, than: int, process: "subprocess.Popen[bytes]") -> int:
    end = time.monotonic() + 60
    while True:
        assert process.poll() is None, "it was not to finish yet"
        assert time.monotonic() < end
        if server.run("SELECT to_regclass('segue.messages')", database)[0][0]:
            found = int(server.run("SELECT count(*) FROM segue.messages", database)[0][0])
            if found > than:
                return found
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("sqlite", "used already"),
        ("mysql://x", "begins with postgresql://"),
        ("postgresql://me:secret@/x", "Leave the password out"),
        ("postgresql:///x?host=/nowhere", "cannot be reached"),
    ],
)
def test_what_cannot_be_is_said(run: Run, target: str, says: str) -> None:
    run("init")
    done = run("db", "migrate", "--to", target)
    assert done.returncode == 1
    assert says in done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
