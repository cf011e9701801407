"""What the hot paths cost, counted in steps of SQLite's own machine, so that no clock is involved."""

import re
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Filter, Transaction
from segue.sessions import listing, recording
from segue.storage.checkpoints import CHECKPOINT_EVERY
from segue.storage.connection import SqliteConnection
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

INTERACTIVE = Filter(kinds=("interactive",))
ALICE = Scope(Principal("telegram:alice"))


class Meter:
    """Counts the steps and remembers the statements of every connection that is opened."""

    def __init__(self) -> None:
        self.steps = self.compiled = 0
        self.statements: list[str] = []

    def watch(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note)
        connection.authorizer = self._compiling

    def _compiling(self, action: int, *_: str | None) -> int:
        self.compiled += action == apsw.SQLITE_SELECT
        return apsw.SQLITE_OK

    def _note(self, event: dict[str, object]) -> None:
        status = event["stmt_status"]
        assert isinstance(status, dict)
        self.steps += status["SQLITE_STMTSTATUS_VM_STEP"]
        self.statements.append(str(event["sql"]))

    def cost(self, work: Callable[[], object]) -> int:
        work()  # once, so that every connection is open
        self.steps, self.statements = 0, []
        work()
        return self.steps


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter()
    opened = SqliteConnection.__init__

    def watched(self: SqliteConnection, path: Path, **options: bool) -> None:
        opened(self, path, **options)
        meter.watch(self.handle)

    monkeypatch.setattr(SqliteConnection, "__init__", watched)
    return meter


def fill(tx: Transaction, sessions: int, messages: int) -> None:
    for number in range(sessions):
        owner = "owner" if number % 2 else "telegram:alice"
        at = 1000.0 + number
        session = Session(id=f"s{number:06}", source="cli", started_at=at, last_active_at=at, principal=owner)
        tx.sessions.insert(session)
    for number in range(messages):
        recording.append_message(tx, "s000001", draft("user", f"message {number}", 2000.0 + number))


def make(path: Path, sessions: int, messages: int) -> Path:
    with SqlStore(SqliteEngine(path)) as store:
        store.write(OWNER_AT_CONSOLE, fill, sessions, messages)
        store.index_all()
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small store and a large one."""
    folder = tmp_path_factory.mktemp("costs")
    return make(folder / "small.db", 50, 50), make(folder / "large.db", 10_000, 4_000)


WORK: dict[str, Callable[[SqlStore], object]] = {
    "append": lambda store: store.write(
        OWNER_AT_CONSOLE, recording.append_message, "s000001", draft("user", "one more", 9e5)
    ),
    "load the last 20": lambda store: store.read(OWNER_AT_CONSOLE, lambda tx: tx.messages.last("s000001", 20)),
    "list 20": lambda store: store.read(OWNER_AT_CONSOLE, listing.list_rows, INTERACTIVE),
    "list one's own 20": lambda store: store.read(ALICE, listing.list_rows, INTERACTIVE),
    "find": lambda store: store.read(OWNER_AT_CONSOLE, lambda tx: tx.sessions.find("s000001")),
    "find by prefix": lambda store: store.read(OWNER_AT_CONSOLE, lambda tx: tx.sessions.with_prefix("s000001", 10)),
}


@pytest.mark.parametrize("name", WORK)
def test_cost_does_not_grow_with_sessions_or_messages(name: str, files: tuple[Path, Path], meter: Meter) -> None:
    with SqlStore(SqliteEngine(files[0])) as small, SqlStore(SqliteEngine(files[1])) as large:
        before = meter.cost(lambda: WORK[name](small))
        after = meter.cost(lambda: WORK[name](large))
    assert before > 0
    assert after <= before * 1.1 + 20


def test_listing_reads_no_message_and_sorts_nothing(files: tuple[Path, Path], meter: Meter) -> None:
    with SqlStore(SqliteEngine(files[1])) as store:
        for scope in (OWNER_AT_CONSOLE, ALICE):
            for wanted in (INTERACTIVE, INTERACTIVE._replace(sources=("cli",))):
                assert len(store.read(scope, listing.list_rows, wanted)) == 20
    plain = apsw.Connection(str(files[1]))
    selects = {sql for sql in meter.statements if "FROM sessions s WHERE" in sql and "LIMIT" in sql}
    assert len(selects) == 4
    for sql in selects:
        unbound = dict.fromkeys(re.findall(r":(\w+)", sql), 0)
        plan = [str(row[3]) for row in plain.execute("EXPLAIN QUERY PLAN " + sql, unbound)]
        assert not any("messages" in step for step in plan), plan
        assert not any("TEMP B-TREE" in step for step in plan), plan
        assert any("USING INDEX idx_sessions_" in step for step in plan), plan
    plain.close()


@pytest.mark.parametrize(
    ("sql", "step"),
    [
        ("sessions WHERE parent_session_id = ''", "SEARCH sessions USING INDEX idx_sessions_parent"),
        ("sessions ORDER BY started_at DESC LIMIT 20", "SCAN sessions USING INDEX idx_sessions_started"),
        (
            "sessions WHERE source = '' ORDER BY started_at DESC LIMIT 20",
            "SCAN sessions USING INDEX idx_sessions_started",
        ),
        ("messages WHERE session_id = '' ORDER BY seq", "SEARCH messages USING INDEX"),
    ],
)
def test_whoever_looks_with_sql_is_served_by_an_index_and_nothing_is_sorted(
    files: tuple[Path, Path], sql: str, step: str
) -> None:
    plain = apsw.Connection(str(files[1]))
    plan = [str(row[3]) for row in plain.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {sql}")]
    plain.close()
    assert len(plan) == 1
    assert plan[0].startswith(step)


@pytest.mark.parametrize("is_stable", [True, False])
def test_no_statement_is_compiled_again_for_other_values(
    files: tuple[Path, Path], meter: Meter, monkeypatch: pytest.MonkeyPatch, is_stable: bool
) -> None:
    """And as SQLite comes it would be."""
    monkeypatch.setattr("segue.storage.connection.KEEPS_PLANS", int(is_stable))
    with SqlStore(SqliteEngine(files[1])) as store:
        for number in range(20):
            store.read(ALICE, lambda tx, key: tx.lanes.find(key), f"agent:main:telegram:dm:{number}")
            store.read(ALICE, listing.list_rows, INTERACTIVE._replace(sources=(f"source{number}",)))
    assert len(meter.statements) >= 40
    assert (meter.compiled < 20) is is_stable


@pytest.mark.parametrize("is_bounded", [True, False])
def test_the_log_begins_anew_however_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_bounded: bool
) -> None:
    """Whoever writes without a pause would make it longer and longer, for it is taken in beside them."""
    if not is_bounded:
        monkeypatch.setattr("segue.storage.checkpoints.MOST_PAGES", 10**9)
        monkeypatch.setattr("segue.storage.checkpoints.CHECKPOINT_EVERY", 10**9)
    with SqlStore(SqliteEngine(tmp_path / "state.db")) as store:
        store.write(OWNER_AT_CONSOLE, fill, 2, 0)
        for number in range(8 * CHECKPOINT_EVERY):
            said = draft("user", f"{number:06}" + "-" * 140_000, 1.0)  # with few words, which would be indexed
            store.write(OWNER_AT_CONSOLE, recording.append_message, "s000001", said)
        log = (tmp_path / "state.db-wal").stat().st_size
    assert (log < 16_000_000) is is_bounded
    assert (tmp_path / "state.db").stat().st_size > 48_000_000
