"""`segue db migrate`: there and back, killed on the way, and nothing is different."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import keep_in
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

    back = run("db", "migrate", "--to", "sqlite")
    assert "equal in both." in back.stdout, "nobody has changed the file since"
    (home / "config.yaml").unlink()
    assert "Another name" in run("sessions", "list", "--limit", "50").stdout
    assert run("doctor").returncode == 0


def test_a_copy_is_brought_up_to_date_and_what_somebody_changed_is_not_lost(
    home: Path, run: Run, postgres_server: Server
) -> None:
    url = postgres_server.new_database()
    with SessionDB(home / "state.db") as db:
        db.create_session("s1", title="One")
    assert "equal in both." in run("db", "migrate", "--to", url).stdout
    with SessionDB(home / "state.db") as db:
        db.create_session("s2", title="Two")
    compared = json.loads(run("db", "migrate", "--to", url, "--json").stdout)
    assert {table["table"]: table["rows"] for table in compared}["sessions"] == 2
    with SessionDB(url) as there:
        there.set_session_title("s1", "Changed there")
    refused = run("db", "migrate", "--to", url)
    assert refused.returncode == 1
    assert "holds 2 sessions and 0 messages" in refused.stderr
    assert "--replace" in refused.stderr
    with SessionDB(url) as there:
        assert there.get_session_title("s1") == "Changed there"
    assert "equal in both." in run("db", "migrate", "--to", url, "--replace", "--yes").stdout
    with SessionDB(url) as there:
        assert there.get_session_title("s1") == "One"
    keep_in(home, url)
    again = run("db", "migrate", "--to", f"{url}&application_name=other")
    assert "the same database" in again.stderr


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
