"""A command that has to wait for others says so, and does its work when they are done."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
from homes import database_of

from segue import SessionDB
from segue.storage.postgres_schema import SCHEMA

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WAITING = "Waiting for another process that is writing to the database.\n"


@contextmanager
def locked(home: Path) -> Iterator[Callable[[], object]]:
    """Hold the lock that whoever writes a session needs; what is given lets go of it."""
    place = database_of(home)
    if isinstance(place, Path):
        file = apsw.Connection(str(place))
        file.execute("BEGIN IMMEDIATE")
        try:
            yield lambda: file.execute("COMMIT")
        finally:
            file.close()
        return
    with psycopg.connect(place) as server:
        server.execute(f"LOCK TABLE {SCHEMA}.sessions IN EXCLUSIVE MODE")
        yield server.commit


def test_waiting_for_a_lock_is_told_and_ends_with_it(home: Path, run: Run) -> None:
    with SessionDB() as db:
        db.create_session("a", "cli", title="Before")
    with locked(home) as let_go:
        waiting = subprocess.Popen(
            [sys.executable, "-m", "segue", "sessions", "rename", "a", "After"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"SEGUE_HOME": str(home)},
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == WAITING
        let_go()
        done, rest = waiting.communicate()
    assert (waiting.returncode, done, rest) == (0, "a is now called 'After'.\n", "")


def test_who_need_not_wait_is_told_nothing(home: Path, run: Run) -> None:
    with SessionDB() as db:
        db.create_session("a", "cli")
    with locked(home):
        listed = run("sessions", "list", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
