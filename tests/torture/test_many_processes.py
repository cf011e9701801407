"""Real processes on one file: crowding, and being killed without warning."""

import random
import signal
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from fork_server import PIPE, Forked, ForkServer
from torture_rounds import rounds
from waiting import wait_until

from segue import SessionDB

pytestmark = pytest.mark.torture

CROWD = 8
APPENDS = rounds(100, in_torture=500)
KILLS = rounds(30, in_torture=200)
MAX_HEARD = 5
"""Appends at most that a writer has told of when its end is near."""
MAX_LIVES = 100

APPENDER = """
    import sys
    from segue import SessionDB
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with SessionDB(path) as db:
        for number in range(count):
            db.append_message("shared", "user", f"{name}:{number}")
"""

ENDLESS_APPENDER = """
    import os, sys
    from segue import SessionDB
    path, stop = sys.argv[1], sys.argv[2]
    with SessionDB(path) as db:
        while not os.path.exists(stop):
            db.append_message("shared", "user", "more")
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


Start = Callable[..., Forked]


@pytest.fixture
def start(fork_server: ForkServer) -> Start:
    def begin(code: str, *arguments: object) -> Forked:
        return fork_server.start(textwrap.dedent(code), *arguments, stdout=PIPE, stderr=PIPE)

    return begin


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


def test_eight_processes_append_without_losing_or_reordering_anything(home: Path, start: Start) -> None:
    with SessionDB() as db:
        db.create_session("shared", "cli")
    crowd = [start(APPENDER, home / "state.db", name, APPENDS) for name in range(CROWD)]
    for process in crowd:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    found = stored(home)
    assert len(found) == CROWD * APPENDS
    for name in range(CROWD):
        own = [entry for entry in found if entry.startswith(f"{name}:")]
        assert own == [f"{name}:{number}" for number in range(APPENDS)]
    assert_sound(home)


def test_without_patience_the_crowd_would_fail(home: Path, start: Start, tmp_path: Path) -> None:
    """The negative control: the same crowd, with nobody waiting for anybody."""
    with SessionDB() as db:
        db.create_session("shared", "cli")
    stop = tmp_path / "stop"
    code = textwrap.dedent(IMPATIENT) + textwrap.dedent(ENDLESS_APPENDER)
    crowd = [start(code, home / "state.db", stop) for _ in range(CROWD)]
    try:
        wait_until(lambda: any(process.poll() for process in crowd), "a writer that fails")
    finally:
        stop.touch()
        for process in crowd:
            process.communicate()
    assert_sound(home)


def test_eight_processes_may_create_the_database_at_once(home: Path, start: Start) -> None:
    code = """
        import sys
        from segue import SessionDB
        with SessionDB(sys.argv[1]) as db:
            db.append_message(db.create_session(), "user", "hello")
    """
    crowd = [start(code, home / "state.db") for _ in range(CROWD)]
    for process in crowd:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    with SessionDB() as db:
        assert db.session_count() == db.message_count() == CROWD


def lives_and_deaths(home: Path, start: Start, kills: int, spoiled: str = "") -> list[str]:
    """Start writers and kill each without warning; everything they said was stored."""
    with SessionDB(home / "state.db") as db:
        db.create_session("shared", "cli")
    acknowledged: list[str] = []
    for life in range(kills):
        process = start(textwrap.dedent(spoiled) + textwrap.dedent(WRITER), home / "state.db", life)
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(random.randint(1, MAX_HEARD))]  # it is up and writing
        acknowledged += [line.decode().strip() for line in heard]
        time.sleep(random.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        rest, errors = process.communicate()
        assert errors == b""
        complete, _, _ = rest.rpartition(b"\n")
        acknowledged += complete.decode().split()
    return acknowledged


def test_every_append_that_returned_survives_kills(home: Path, start: Start) -> None:
    acknowledged = lives_and_deaths(home, start, KILLS)
    found = stored(home)
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    assert len(found) - len(acknowledged) <= KILLS, "at most the one append in flight at each kill is unaccounted for"
    assert_sound(home)


def test_without_a_commit_for_every_append_the_kills_would_be_noticed(home: Path, start: Start) -> None:
    """The negative control: kills as above, with a commit only for every twentieth append, until one is noticed."""
    assert any(
        set(lives_and_deaths(home / str(life), start, 1, UNCOMMITTED)) - set(stored(home / str(life)))
        for life in range(MAX_LIVES)
    )
