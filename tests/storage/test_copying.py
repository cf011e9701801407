"""Every row of one database in another, from each kind to each: equal to the last column, cut off anywhere or not."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from postgres_server import Server
from waiting import DEADLINE

from segue.core.ids import LaneKey
from segue.core.jobs import Job
from segue.core.lifecycle import Lane
from segue.core.messages import draft
from segue.core.pairing import PairedPerson, Pairing
from segue.core.policy import ResetReason
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.facade.searching import answer
from segue.ports.store import ResetRow, Transaction
from segue.sessions.discarding import discard_session, restore_conversation
from segue.sessions.recording import append_message
from segue.sessions.searching import Wish
from segue.storage import copying
from segue.storage.copying import COPIED, COPIED_TABLES, contents_of, copy_rows
from segue.storage.postgres import PostgresEngine
from segue.storage.postgres_sequences import advance_sequences, lagging_sequences
from segue.storage.probing import NotWritable, insert_row
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine, SqlStore
from segue.upkeep.migrating import migrate

NOW = 1_700_000_000.123456
AT = datetime.fromtimestamp(NOW, UTC)
TEXTS = [
    "plain", "", "naïve 天气 🚀", "nul \x00 here", "line\nline\r\n\ttab", "' \" \\ % :name %(x)s", "\ufffe\u202e",
    "x" * 70_000,
]  # fmt: skip

Make = Callable[[], Engine]


@pytest.fixture
def make_sqlite(tmp_path: Path) -> Make:
    numbers = iter(range(9))
    return lambda: SqliteEngine(tmp_path / f"{next(numbers)}.db")


@pytest.fixture
def make_postgres(postgres_server: Server) -> Make:
    return lambda: PostgresEngine(postgres_server.new_database())


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite"])
def pair(request: pytest.FixtureRequest, make_sqlite: Make, make_postgres: Make) -> Iterator[tuple[Engine, Engine]]:
    source, target = make_sqlite(), make_postgres()
    if request.param.startswith("postgres"):
        source, target = target, source
    yield source, target
    source.close()
    target.close()


def furnish(tx: Transaction, sessions: int = 30, messages: int = 18) -> None:
    for number in range(sessions):
        session = Session(
            f"s{number:03}", "cli", started_at=NOW + number, title=f"title {number}" if number % 2 else None,
            principal="owner" if number % 3 else "telegram:1", audience="" if number % 5 else "room",
            parent_session_id=f"s{number - 1:03}" if number % 7 == 6 else None, estimated_cost_usd=number / 7,
            lane_key=f"lane {number}", ended_at=NOW if number % 2 else None,
        )  # fmt: skip
        assert tx.sessions.insert(session)
        tx.sessions.tag(session.id, ["a", f"tag {number}"])
        for count in range(messages):
            role = ("user", "assistant", "tool")[count % 3]
            append_message(tx, session.id, draft(role, f"{TEXTS[count % len(TEXTS)]} {count}", NOW + count / 3))
        tx.messages.mark(session.id, messages - 3, "live", "undone")
        key = LaneKey(f"lane {number}")
        tx.lanes.insert(Lane(key, None, AT, created_at=AT, updated_at=AT))
        tx.lanes.add_reset(ResetRow(key, AT, ResetReason.ASKED, "me", None, session.id, True))
    discard_session(tx, "s005", NOW)
    tx.meta.set("fact", "kept")
    tx.jobs.add(Job("tea", "0 7 * * *", "UTC", "Is there tea?", NOW, deliver="telegram:1", last_due_at=NOW))
    tx.people.put(PairedPerson("telegram", "1", "owner", "Alice", NOW, "console"))
    tx.people.put_pairing(Pairing("telegram", "2", 1, "salt:hash", "2", "Bob", NOW, NOW + 9, 0, "pending"))


def test_every_row_is_there_and_equal(pair: tuple[Engine, Engine]) -> None:
    source, target = pair
    SqlStore(source).write(OWNER, furnish)
    copy_rows(source, target)
    assert contents_of(target) == contents_of(source)
    store = SqlStore(target)
    store.index_all()
    assert len(answer(store, OWNER, "天气", Wish(limit=1000), seconds=DEADLINE).hits) == len(
        answer(SqlStore(source), OWNER, "天气", Wish(limit=1000), seconds=DEADLINE).hits
    )
    added = store.write(OWNER, append_message, "s001", draft("user", "and it goes on", NOW))
    last = SqlStore(source).read(OWNER, lambda tx: tx.search.state()).last_id
    assert added.id > last


def test_a_copy_that_was_cut_off_goes_on(pair: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_MOST_ROWS", 60)
    monkeypatch.setattr(copying, "_MOST_CHARACTERS", 500_000)
    source, target = pair
    SqlStore(source).write(OWNER, furnish, 30, 8)
    for pieces in range(1, 20):
        left = iter(range(pieces))

        def stop(_: int, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            copy_rows(source, target, stop)
    assert contents_of(target) == contents_of(source)


def test_what_changed_meanwhile_is_brought_and_what_is_gone_goes(pair: tuple[Engine, Engine]) -> None:
    source, target = pair
    store = SqlStore(source)
    store.write(OWNER, furnish)
    copy_rows(source, target)
    store.write(OWNER, append_message, "s001", draft("user", "later", NOW))
    store.write(OWNER, lambda tx: tx.messages.mark("s002", 3, "live", "undone"))
    store.write(OWNER, lambda tx: tx.sessions.delete(["s003", "s029"]))
    store.write(OWNER, lambda tx: tx.sessions.change("s004", title="another"))
    store.write(OWNER, lambda tx: tx.meta.remove("fact"))
    copy_rows(source, target)
    assert contents_of(target) == contents_of(source)


def test_names_that_moved_and_rows_behind_the_last(pair: tuple[Engine, Engine]) -> None:
    """What must be the only one of its kind is somewhere else now: a title, an open lane, a place in a session."""
    source, target = pair
    store = SqlStore(source)
    store.write(OWNER, furnish, 8, 6)
    copy_rows(source, target)

    def move(tx: Transaction) -> None:
        tx.sessions.change("s007", title=None)
        tx.sessions.change("s001", title="title 7")
        tx.sessions.change("s000", ended_at=NOW)
        tx.sessions.change("s001", lane_key="lane 0", ended_at=None, principal="telegram:1", audience="room")
        rows = tx.messages.of("s002", every_state=True)
        tx.sessions.delete(["s002"])
        tx.sessions.insert(Session("s002", "cli", started_at=NOW))
        for row in rows:
            tx.messages.insert("s002", row.seq, row.state, draft(row.role, row.content, row.timestamp))

    store.write(OWNER, move)
    beyond = SqlStore(target)
    beyond.write(OWNER, lambda tx: tx.sessions.insert(Session("zzz", "cli", title="only there")))
    for _ in range(600):
        beyond.write(OWNER, append_message, "zzz", draft("user", "only there", NOW))
    copy_rows(source, target)
    assert contents_of(target) == contents_of(source)


def test_a_backup_is_a_file_and_comes_back(make_postgres: Make, make_sqlite: Make, tmp_path: Path) -> None:
    source = make_postgres()
    SqlStore(source).write(OWNER, furnish)
    before = contents_of(source)
    source.copy_to(tmp_path / "copy.db", bool)
    SqlStore(source).write(OWNER, lambda tx: tx.sessions.delete(["s001", "s002"]))
    SqlStore(source).write(OWNER, discard_session, "s004", NOW)
    SqlStore(source).write(OWNER, restore_conversation, "s004")  # whose messages have other numbers now
    seen: list[int] = []

    def look() -> None:
        seen.append(SqlStore(source).read(OWNER, lambda tx: tx.messages.count()))

    source.replace_with(tmp_path / "copy.db", bool, look)
    assert contents_of(source) == before
    assert len(seen) == 1
    other = make_sqlite()
    other.replace_with(tmp_path / "copy.db", bool, bool)
    assert contents_of(other) == before
    source.close()
    other.close()


def add_rows(engine: Engine, *tokens: str) -> dict[str, list[int]]:
    """Add a row for each token to every table that is copied; the ids that the database gave them."""
    given: dict[str, list[int]] = {}
    with engine.writing(DEADLINE, OWNER) as executor:
        for token in tokens:
            for table in COPIED_TABLES:
                if (number := insert_row(executor, table, token)) is not None:
                    given.setdefault(table.name, []).append(number)
    return given


def test_every_table_takes_new_rows_after_a_copy(pair: tuple[Engine, Engine]) -> None:
    source, target = pair
    before = add_rows(source, "a", "b", "c")
    assert {"messages", "resets", "trash", "usage", "inbox", "outbox"} <= before.keys()
    copy_rows(source, target)
    assert SqlStore(target).lagging_sequences() == []
    after = add_rows(target, "d", "e")
    assert {table: min(after[table]) > max(given) for table, given in before.items()} == dict.fromkeys(before, True)


def test_every_table_takes_new_rows_after_a_restore(make_postgres: Make, make_sqlite: Make, tmp_path: Path) -> None:
    source = make_sqlite()
    before = add_rows(source, "a", "b", "c")
    source.copy_to(tmp_path / "copy.db", bool)
    for target in (make_postgres(), make_sqlite()):
        add_rows(target, "replaced")
        target.replace_with(tmp_path / "copy.db", bool, bool)
        after = add_rows(target, "d", "e")
        assert all(min(after[table]) > max(given) for table, given in before.items())
        target.close()
    source.close()


def test_sequences_are_read_from_the_catalogue_and_never_go_back(postgres_server: Server) -> None:
    engine = PostgresEngine(postgres_server.new_database(role="alone"))  # who may make tables in any transaction
    with engine.writing(DEADLINE, OWNER) as executor:
        executor.run("CREATE TABLE later (number BIGINT GENERATED BY DEFAULT AS IDENTITY, text TEXT)", {})
        executor.run("INSERT INTO later (number, text) VALUES (41, 'copied')", {})
        assert [one[:3] for one in lagging_sequences(executor)] == [("later", 1, 41)]
        advance_sequences(executor)
        executor.run("INSERT INTO later (text) VALUES ('new')", {})
        assert executor.rows("SELECT max(number) FROM later", {}) == [(42,)]
        executor.run("DELETE FROM later", {})
        advance_sequences(executor)
        executor.run("INSERT INTO later (text) VALUES ('newer')", {})
        assert executor.rows("SELECT number FROM later", {}) == [(43,)]
    engine.close()


def test_a_copy_that_takes_no_new_rows_is_not_complete(
    make_sqlite: Make, make_postgres: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresEngine, "continue_numbers", lambda _self, _executor: None)
    source, target = make_sqlite(), make_postgres()
    add_rows(source, "a")
    with SqlStore(source) as here, SqlStore(target) as there:
        with pytest.raises(NotWritable, match="messages_pkey"):
            migrate(here, there, "here")
        assert there.read(OWNER, lambda tx: tx.meta.get(COPIED)) is None
        source.copy_to(tmp_path / "copy.db", bool)
        there.write(OWNER, lambda tx: tx.sessions.delete(["a"]))
        before = there.contents()
        with pytest.raises(NotWritable, match="resets_pkey"):
            there.replace_with(tmp_path / "copy.db")
        assert there.contents() == before, "a restore that takes no new rows changes nothing"


def test_the_trial_of_a_copy_leaves_nothing(pair: tuple[Engine, Engine]) -> None:
    for engine in pair:
        add_rows(engine, "a")
        before = contents_of(engine)
        assert SqlStore(engine).probe_writes() == len(COPIED_TABLES)
        assert contents_of(engine) == before
