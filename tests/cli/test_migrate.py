"""`segue db migrate`: there and back, killed on the way, and nothing is different."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from homes import keep_in
from postgres_server import Server
from psycopg.conninfo import conninfo_to_dict
from waiting import wait_until
from zygote import Zygote

from segue import SessionDB

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
IMPATIENT = Path(__file__).parents[1] / "support" / "impatient_launcher.py"


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
    before = run("sessions", "export", "-", "--yes").stdout
    url = None
    while url is None:  # as long as it is done before it can be killed, which proves nothing
        url = killed_on_the_way(home, postgres_server, told)
    database = str(conninfo_to_dict(url)["dbname"])
    done = run("db", "migrate", "--to", url)
    assert f"40 sessions, {told:,} messages: equal in both." in done.stdout
    assert "took a new row, which was taken back." in done.stdout
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
    assert refused.returncode == 2
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


def killed_on_the_way(home: Path, server: Server, whole: int) -> str | None:
    """An empty database into which a home was copied, and the copying killed twice; None if it came to its end."""
    url = server.new_database()
    database, copied = str(conninfo_to_dict(url)["dbname"]), 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "segue", "db", "migrate", "--to", url],
            env=os.environ | {"SEGUE_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            copied = wait_for_more(server, database, copied, process)
            process.kill()
    return url if 0 < copied < whole else None


def wait_for_more(server: Server, database: str, than: int, process: "subprocess.Popen[bytes]") -> int:
    """How many messages are there as soon as there are more, and hold up any that would follow."""
    wait_until(lambda: process.poll() is not None or server.run("SELECT to_regclass('segue.messages')", database)[0][0])
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        while True:
            ended = process.poll()
            assert ended in (None, 0)
            with connection.transaction():
                connection.execute("LOCK TABLE segue.messages IN EXCLUSIVE MODE")  # after the batch that is at it
                row = connection.execute("SELECT count(*) FROM segue.messages").fetchone()
                assert row is not None
                if row[0] > than or ended is not None:
                    process.kill()
                    return int(row[0])


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("sqlite", "used already"),
        ("mysql://x", "begins with postgresql://"),
        ("postgresql://me:secret@/x", "Leave the password out"),
        ("postgresql:///x?host=/nowhere", "cannot be reached"),
    ],
)
def test_what_cannot_be_is_said(home: Path, run: Run, zygote: Zygote, target: str, says: str) -> None:
    run("init")
    environment = os.environ | {"SEGUE_HOME": str(home)}
    done = zygote.run(["db", "migrate", "--to", target], None, environment, program=IMPATIENT)
    assert done.returncode == (1 if says == "cannot be reached" else 2)
    assert says in done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
