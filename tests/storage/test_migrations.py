"""From an older file to this one: step by step, all of a step or nothing of it."""

from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from postgres_server import Server

from segue import SessionDB, app
from segue.core.errors import SchemaTooOld
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Filter
from segue.sessions.listing import list_sessions
from segue.storage import sqlite
from segue.storage.schema import IDENTITY, Column, Definer
from segue.storage.schema import SCHEMA_VERSION as NOW


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


OLDER = 4
"""The last version that counted what models used without noting each call."""
SPENT: dict[str, Any] = {
    "input_tokens": 5,
    "output_tokens": 2,
    "api_call_count": 3,
    "estimated_cost_usd": 0.5,
    "model": "m",
}


def fill(db: SessionDB) -> None:
    uses: dict[str, dict[str, Any]] = {"used": SPENT, "free": {"estimated_cost_usd": 0.0}, "unused": {}}
    for name, said in uses.items():
        db.create_session(name, "cli", started_at=1000.0)
        db.append_message(name, "user", "hello", timestamp=2000.0)
        if said:
            db.update_token_counts(name, billing_provider="p", **said)


def test_a_file_from_before_calls_were_noted_gets_an_entry_for_each_sum(home: Path) -> None:
    with SessionDB() as db:
        fill(db)
        exported = db.export_session("used")
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("DROP TABLE usage")
    connection.execute(f"UPDATE schema_version SET version = {OLDER}")
    connection.close()
    with SessionDB() as db:
        after = db.export_session("used")
        assert after is not None
        assert after["usage"] == [
            {
                "at": 2000.0, "purpose": "import", "model": "m", "provider": "p", "api_call_count": 3,
                "input_tokens": 5, "output_tokens": 2, "cache_read_tokens": 0, "cache_write_tokens": 0,
                "reasoning_tokens": 0, "estimated_cost_usd": 0.5,
            }
        ]  # fmt: skip
        assert exported is not None
        assert {**after, "usage": 0} == {**exported, "usage": 0}
        assert [name for name in ("free", "unused") if "usage" in (db.export_session(name) or {})] == ["free"]
    assert version(home) == [(NOW,)]


def test_a_server_from_before_calls_were_noted_gets_them_too(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    with SessionDB(url) as db:
        fill(db)
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE segue.usage")
        server.execute(f"UPDATE segue.schema_version SET version = {OLDER}")
    for _ in range(2):
        with SessionDB(url) as db:
            (entry,) = (db.export_session("used") or {})["usage"]
            assert (entry["at"], entry["purpose"], entry["input_tokens"]) == (2000.0, "import", 5)
            assert "usage" not in (db.export_session("unused") or {})


def test_a_file_from_before_the_search_went_by_time_finds_what_was_imported_late(home: Path) -> None:
    with SessionDB() as db:
        for name, at in [("today", 2_000_000_000.0), ("old", 1_000_000_000.0)]:
            db.create_session(name, "cli", started_at=at)
            for number in range(400):
                db.append_message(name, "user", f"lisbon {name} {number}", timestamp=at + number)
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("DROP TABLE search_blocks")
    connection.execute("UPDATE schema_version SET version = 10")
    connection.close()
    with SessionDB() as db:
        found = db.search_messages("lisbon", sort="new", limit=401)
    assert [row["session_id"] for row in found] == ["today"] * 400 + ["old"]
    assert version(home) == [(NOW,)]


# At the version of this program

SIMPLE = [("sessions", "context_window"), ("sessions", "pinned"), ("messages", "author"), ("turns", "blame")]


def without(place: Path | str, table: str, column: str) -> None:
    """Take a column away, as a program does that gave the same number to another change."""
    if isinstance(place, Path):
        connection = apsw.Connection(str(place))
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.close()
        return
    with psycopg.connect(place, autocommit=True) as server:
        server.execute(f"ALTER TABLE segue.{table} DROP COLUMN {column}")


def columns_of(place: Path | str, table: str) -> set[str]:
    if isinstance(place, Path):
        connection = apsw.Connection(str(place))
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.close()
        return set(names)
    with psycopg.connect(place) as server:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'segue' AND table_name = %s"
        return {name for (name,) in server.execute(sql, [table])}


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, home: Path) -> Path | str:
    if request.param == "sqlite":
        return home / "state.db"
    server: Server = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.mark.parametrize(("table", "column"), SIMPLE)
def test_a_missing_simple_column_is_added_at_open(place: Path | str, table: str, column: str) -> None:
    with SessionDB(place) as db:
        db.create_session("a", "cli", title="kept")
        db.append_message("a", "user", "hello")
    before = columns_of(place, table)
    without(place, table, column)
    with pytest.raises(SchemaTooOld):
        SessionDB(place, read_only=True)
    with SessionDB(place) as db:
        db.append_message("a", "user", "again", author="Alice")
        assert [message["author"] for message in db.get_messages("a")][-1] == "Alice"
        session = db.get_session("a")
        assert session is not None
        assert (session["title"], session["pinned"], session["context_window"]) == ("kept", 0, None)
    assert columns_of(place, table) == before
    SessionDB(place, read_only=True).close()


def test_a_command_that_only_looks_gets_the_column_too(home: Path) -> None:
    SessionDB().close()
    without(home / "state.db", "sessions", "context_window")
    with app.open_for_reading() as store:
        assert store.read(OWNER_AT_CONSOLE, list_sessions, Filter(), 1) == []


@pytest.mark.parametrize(
    ("column", "is_simple"),
    [
        (Column("a", "TEXT"), True),
        (Column("a", "INTEGER", "NOT NULL DEFAULT 0"), True),
        (Column("a", "TEXT", "NOT NULL"), False),
        (Column("a", "TEXT", "PRIMARY KEY NOT NULL"), False),
        (Column("a", "INTEGER", IDENTITY), False),
    ],
)
def test_a_column_is_simple_when_rows_that_are_there_need_no_value_for_it(column: Column, is_simple: bool) -> None:
    assert column.is_simple is is_simple
