"""From an older file to this one: step by step, all of a step or nothing of it."""

from pathlib import Path

import apsw
import pytest

from segue import SessionDB
from segue.storage import sqlite
from segue.storage.schema import SCHEMA_VERSION as NOW
from segue.storage.schema import Definer


def version(home: Path) -> object:
    connection = apsw.Connection(str(home / "state.db"))
    found = connection.execute("SELECT version FROM schema_version").fetchall()
    connection.close()
    return found


def test_numbered_steps_run_in_order_and_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SessionDB().close()
    ran: list[int] = []
    monkeypatch.setattr(sqlite, "SCHEMA_VERSION", NOW + 3)
    monkeypatch.setattr(sqlite, "MIGRATIONS", {NOW + 3: lambda _: ran.append(3), NOW + 1: lambda _: ran.append(1)})
    SessionDB().close()
    SessionDB().close()
    assert ran == [1, 3]
    assert version(home) == [(NOW + 3,)]


def test_a_step_that_fails_leaves_the_file_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionDB() as db:
        db.create_session("a", "cli", title="kept")

    def half_done(database: Definer) -> None:
        database.run("UPDATE sessions SET title = 'spoiled'")
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "SCHEMA_VERSION", NOW + 1)
        patch.setattr(sqlite, "MIGRATIONS", {NOW + 1: half_done})
        with pytest.raises(RuntimeError, match="the power went"):
            SessionDB()
    assert version(home) == [(NOW,)]
    with SessionDB() as db:
        assert db.get_session_title("a") == "kept"
