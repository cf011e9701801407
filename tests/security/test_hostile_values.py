"""Whatever somebody types, calls themselves or imports: it is a value, never a statement, a path or a hint."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from segue import SessionDB
from segue.core.errors import SegueError, SessionNotFound
from segue.core.portable import from_json
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.sessions.finding import get_id
from segue.storage.connection import SqliteConnection
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

Run = Callable[..., subprocess.CompletedProcess[str]]

MARK = "zqmark"
HOSTILE = [
    f"{MARK}'; DROP TABLE sessions; --",
    f'{MARK}" OR 1=1 --',
    f"{MARK}' UNION SELECT * FROM people --",
    f":{MARK} ?1 %s %(x)s {{}} $1",
    f"{MARK}%_\\*",
    f'{MARK} NEAR("a" "b", 2) NOT content:x ^y "',
]
IDS = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "a\\b",
    "C:\\windows",
    "C:",
    "nul",
    "~root",
    "$HOME",
    "`id`",
    "-rf",
    "a\nb",
    "a\tb",
    " ",
    "\u202egnp.exe",
    "%2e%2e%2f",
    "file:///etc/passwd",
    "x" * 200,
]


class Traced:
    """Every statement that is run, as its text says before any value is in it, and how many steps it took."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.steps = 0

    def note(self, event: dict[str, Any]) -> None:
        self.statements.append(event["sql"])
        self.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def during(self, work: Callable[[], object]) -> tuple[list[str], int]:
        self.statements, self.steps = [], 0
        work()
        return self.statements, self.steps


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    found, opened = Traced(), SqliteConnection.__init__

    def watched(self: SqliteConnection, path: Path, **options: bool) -> None:
        opened(self, path, **options)
        self.handle.trace_v2(apsw.SQLITE_TRACE_PROFILE, found.note)

    monkeypatch.setattr(SqliteConnection, "__init__", watched)
    return found


def use_everything(db: SessionDB, text: str) -> Iterator[Any]:
    """Every way in which a value can come to the database, and what comes back of it."""
    name = db.create_session(f"{text} id", text, model=text, user_id=text, system_prompt=text, title=text)
    call = [{"id": text, "type": "function", "function": {"name": text, "arguments": json.dumps({"a": text})}}]
    db.append_message(name, "assistant", text, tool_calls=call)
    db.append_message(name, "tool", text, tool_name=text, tool_call_id=text)
    number = db.append_message(name, "user", text)
    db.update_token_counts(name, 1, 1, model=text)
    db.set_meta(text, text)
    yield db.get_meta(text)
    yield db.get_messages(name)[0]["content"]
    session = db.get_session(name)
    assert session is not None
    yield from (session[column] for column in ("source", "model", "user_id", "system_prompt", "title"))
    assert db.resolve_session_by_title(text) == db.resolve_session_id(name[:-1]) == name
    assert db.session_count(text) == len(db.search_sessions(text)) == len(db.list_sessions_rich(text)) == 1
    db.search_messages(text, source_filter=text, exclude_sources=[text], role_filter=text)
    assert MARK in db.search_messages(MARK, limit=1)[0]["snippet"]
    exported = db.export_session(name)
    assert exported is not None
    db.rewind_to_message(name, number)
    db.end_session(name, text)
    db.delete_session(name)
    db.import_sessions([exported])
    yield db.get_messages(name)[0]["content"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_never_part_of_a_statement(home: Path, traced: Traced, text: str) -> None:
    with SessionDB() as db:
        assert set(use_everything(db, text)) == {text}
        assert db.session_count() == 1
    assert len(traced.statements) > 100
    assert [sql for sql in traced.statements if MARK in sql] == []


def test_a_value_in_a_statement_would_be_seen(home: Path, traced: Traced) -> None:
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        store.read(OWNER_AT_CONSOLE, lambda tx: tx.sessions._db.rows(f"SELECT '{MARK}'", {}))  # type: ignore[attr-defined]
    assert [sql for sql in traced.statements if MARK in sql]


@pytest.mark.parametrize("wanted", ["secret-plans", "The secret plans", "secret"])
def test_what_somebody_else_has_costs_as_much_to_look_for_as_what_nobody_has(
    home: Path, traced: Traced, wanted: str
) -> None:
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        for number in range(200):
            mine = Session(f"mine{number}", "cli", started_at=1.0, principal="telegram:1")
            store.write(OWNER_AT_CONSOLE, lambda tx, one: tx.sessions.insert(one), mine)
        theirs = Session("secret-plans", "cli", started_at=1.0, principal="telegram:2", title="The secret plans")
        store.write(OWNER_AT_CONSOLE, lambda tx: tx.sessions.insert(theirs))
        scope = Scope(Principal("telegram:1"))

        def look(name: str) -> str:
            with pytest.raises(SessionNotFound) as told:
                store.read(scope, get_id, name)
            return str(told.value).replace(name, "…")

        absent = wanted.translate(str.maketrans("st", "vw"))
        assert look(wanted) == look(absent)
        (theirs_said, theirs_cost), (nobodys_said, nobodys_cost) = (
            traced.during(lambda name=name: look(name))  # type: ignore[misc]
            for name in (wanted, absent)
        )
        assert theirs_said == nobodys_said
        assert abs(theirs_cost - nobodys_cost) <= 30, "a row is met and passed over, and nothing follows from it"


@pytest.mark.parametrize("name", IDS, ids=ascii)
def test_an_id_is_never_a_path(home: Path, tmp_path: Path, name: str) -> None:
    with SessionDB() as db:
        db.create_session(name, "cli")
        db.append_message(name, "user", "hello")
        before = set(tmp_path.rglob("*"))
        assert db.resolve_session_id(name) == name
        exported = db.export_session(name)
        assert exported is not None
        assert exported["id"] == name
        db.delete_session(name)
        db.import_sessions([exported])
        assert db.get_messages(name)[0]["content"] == "hello"
        assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["", "x" * 201, 7, None, ["a"]])
def test_what_can_be_no_id_is_refused(name: object) -> None:
    with pytest.raises(SegueError, match="its id"):
        from_json(json.dumps({"id": name, "source": "cli"}))


def test_a_nul_is_kept_out_of_ids(home: Path) -> None:
    portable = from_json(json.dumps({"id": "a\0b", "source": "cli"}))
    assert "\0" not in portable.session.id


@pytest.mark.process
@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "a\nb", "x" * 300, "-x", "~"])
def test_no_command_takes_an_id_for_a_path(home: Path, tmp_path: Path, run: Run, name: str) -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
    before = {path for path in tmp_path.rglob("*") if not path.name.startswith("state.db")}
    for arguments in (
        ["show", "--", name],
        ["export", str(tmp_path / "out"), f"--session-id={name}"],
        ["rename", "--", name, "x"],
    ):
        done = run("sessions", *arguments)
        assert done.returncode in (1, 2)
        assert "root:" not in done.stdout + done.stderr
    assert {path for path in tmp_path.rglob("*") if not path.name.startswith("state.db")} == before
