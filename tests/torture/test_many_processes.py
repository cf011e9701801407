"""Real processes on one file: crowding, and being killed without warning."""

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import apsw
import pytest

from segue import SessionDB

pytestmark = pytest.mark.torture

CROWD = 8
APPENDS = 500
KILLS = 200

APPENDER = """
    import sys
    from segue import SessionDB
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with SessionDB(path) as db:
        for number in range(count):
            db.append_message("shared", "user", f"{name}:{number}")
"""

WRITER = """
    import os, sys
    from segue import SessionDB
    path, life = sys.argv[1], sys.argv[2]
    db = SessionDB(path)
    for number in range(1_000_000):
        db.append_message("shared", "user", f"{life}:{number}")
        os.write(1, f"{life}:{number}\\n".encode())
"""

IMPATIENT = """
    from segue.storage import connection, store
    connection.BUSY_MILLISECONDS = 0
    store.patiently = lambda attempt, patience: attempt(0.0)
"""

UNCOMMITTED = """
    from contextlib import contextmanager
    from segue.storage.connection import SqliteConnection
    begun = 0
    @contextmanager
    def transaction(self, begin, *, is_patient=True):
        global begun
        if not self.handle.in_transaction:
            self.handle.execute(begin)
        yield
        begun += 1
        if begun % 20 == 0:
            self.handle.execute("COMMIT")
    SqliteConnection.transaction = transaction
"""


def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    unbuffered = 0  # what is read ahead with a first line would be missing from the rest
    return subprocess.Popen(command, bufsize=unbuffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stored(home: Path) -> list[str]:
    with SessionDB(home / "state.db") as db:
        messages = db.get_messages("shared")
        assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
        session = db.get_session("shared")
        assert session is not None
        assert session["message_count"] == len(messages)
        return [message["content"] for message in messages]


def assert_sound(home: Path) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def test_eight_processes_append_without_losing_or_reordering_anything(home: Path) -> None:
    with SessionDB() as db:
        db.create_session("shared", "cli")
    crowd = [start(APPENDER, home / "state.db", name, APPENDS) for name in range(CROWD)]
    for process in crowd:
        _, errors = process.communicate(timeout=110)
        assert (process.returncode, errors) == (0, b"")
    found = stored(home)
    assert len(found) == CROWD * APPENDS
    for name in range(CROWD):
        own = [entry for entry in found if entry.startswith(f"{name}:")]
        assert own == [f"{name}:{number}" for number in range(APPENDS)]
    assert_sound(home)


def test_without_patience_the_crowd_would_fail(home: Path) -> None:
    """The negative control: the same crowd, with nobody waiting for anybody."""
    with SessionDB() as db:
        db.create_session("shared", "cli")
    code = textwrap.dedent(IMPATIENT) + textwrap.dedent(APPENDER)
    crowd = [start(code, home / "state.db", name, APPENDS) for name in range(CROWD)]
    for process in crowd:
        process.communicate(timeout=110)
    assert any(process.returncode for process in crowd)
    assert_sound(home)


def test_eight_processes_may_create_the_database_at_once(home: Path) -> None:
    code = """
        import sys
        from segue import SessionDB
        with SessionDB(sys.argv[1]) as db:
            db.append_message(db.create_session(), "user", "hello")
    """
    crowd = [start(code, home / "state.db") for _ in range(CROWD)]
    for process in crowd:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
    with SessionDB() as db:
        assert db.session_count() == db.message_count() == CROWD


def lives_and_deaths(home: Path, kills: int, spoiled: str = "") -> list[str]:
    """Start writers and kill each without warning; everything they said was stored."""
    with SessionDB() as db:
        db.create_session("shared", "cli")
    acknowledged: list[str] = []
    for life in range(kills):
        process = start(textwrap.dedent(spoiled) + textwrap.dedent(WRITER), home / "state.db", life)
        assert process.stdout is not None
        acknowledged.append(process.stdout.readline().decode().strip())  # it is up and writing
        time.sleep(random.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        rest, errors = process.communicate(timeout=30)
        assert errors == b""
        complete, _, _ = rest.rpartition(b"\n")
        acknowledged += complete.decode().split()
    return acknowledged


@pytest.mark.timeout(300)
def test_every_append_that_returned_survives_two_hundred_kills(home: Path) -> None:
    acknowledged = lives_and_deaths(home, KILLS)
    found = stored(home)
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    assert len(found) - len(acknowledged) <= KILLS, "at most the one append in flight at each kill is unaccounted for"
    assert_sound(home)


def test_without_a_commit_for_every_append_the_kills_would_be_noticed(home: Path) -> None:
    """The negative control: the same kills, with a commit only for every twentieth append."""
    acknowledged = lives_and_deaths(home, 5, UNCOMMITTED)
    assert not set(acknowledged) <= set(stored(home))
