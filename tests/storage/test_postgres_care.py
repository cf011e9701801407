"""What many at once, odd texts and odd answers of a server must not do."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from postgres_server import Server, psql
from psycopg import errors
from waiting import DEADLINE

from segue import SessionDB
from segue.core.errors import Invalid, StoreBusy, StoreError, StoreTaken
from segue.core.ids import LaneKey
from segue.core.lifecycle import Lane
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session
from segue.storage import patience, postgres_search
from segue.storage.engines import engine_at
from segue.storage.patience import MOST_CLASHES
from segue.storage.postgres import PATIENCE_AT_THE_DOOR, PostgresEngine
from segue.storage.postgres_connection import PostgresConnection
from segue.storage.sql import Row
from segue.storage.store import SqlStore

ALICE, BOB = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))


@pytest.fixture
def url(postgres_server: Server) -> str:
    return postgres_server.new_database()


@pytest.fixture
def peopled(url: str) -> str:
    with SqlStore(PostgresEngine(url)) as store:
        for scope in (ALICE, BOB):
            store.write(scope, create_session, Session(f"of {scope.principal}", "cli"))
    return url


def test_who_says_a_new_word_waits_for_nobody(peopled: str) -> None:
    with SqlStore(PostgresEngine(peopled)) as store:
        has_begun, may_end = threading.Event(), threading.Event()

        def slowly(tx: Transaction) -> None:
            append_message(tx, "of telegram:1", draft("user", "xylophone", 1.0))
            has_begun.set()
            assert may_end.wait(DEADLINE)

        thread = threading.Thread(target=lambda: store.write(ALICE, slowly))
        thread.start()
        try:
            assert has_begun.wait(DEADLINE)
            store.write(BOB, append_message, "of telegram:2", draft("user", "xylophone too", 1.0))
            assert thread.is_alive(), "the first has not come to its end, and the second has"
        finally:
            may_end.set()
            thread.join()
        store.write(BOB, append_message, "of telegram:2", draft("user", "xylophone again", 1.0))
    words = psql(
        peopled, "SET segue.sees_all = 'yes'; SELECT count(*) FROM segue.search_words WHERE word = 'xylophone'"
    )
    assert int(words) <= 2, "a known word is not noted again"


ODD_TEXTS = {
    "one word of marks": "हा" * 1500,
    "many different characters": "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(250_000)),
    "many long words": " ".join(f"{number:0>900}" for number in range(3000)),
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_any_text_is_stored_and_its_end_is_found(url: str, name: str) -> None:
    with SessionDB(url) as db:
        db.create_session("s")
        db.append_message("s", "user", f"{ODD_TEXTS[name]} zebra")
        db.append_message("s", "user", "nothing of it")
        assert [hit["seq"] for hit in db.search_messages("zebra")] == [1]
        assert db.search_messages("giraffe") == []


def test_a_long_call_of_a_tool_is_not_found_by_what_it_does_not_say(
    peopled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_search, "_LONGEST", 1000)
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "write", "arguments": '{"text": "' + "word " * 900 + '"}'},
    }
    with SessionDB(peopled) as db:
        db.append_message("of telegram:1", "assistant", "short", tool_calls=[call])
        assert db.search_messages("zebra") == []
        assert [hit["role"] for hit in db.search_messages("short")] == ["assistant"]


def test_a_purge_forgets_the_words(peopled: str) -> None:
    with SqlStore(PostgresEngine(peopled)) as store:
        store.write(ALICE, append_message, "of telegram:1", draft("user", "topsecretxyzzy kept", 1.0))
        store.write(BOB, append_message, "of telegram:2", draft("user", "kept", 1.0))
        store.write(OWNER, lambda tx: tx.sessions.delete(["of telegram:1"]))
        store.compact()
    assert psql(peopled, "SET segue.sees_all = 'yes'; SELECT word FROM segue.search_words") == "kept"


def test_an_answer_that_knows_nothing_is_asked_after(peopled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers say that they do not know whether a commit has happened, and keep the connection."""
    commit = PostgresConnection.commit
    losses = iter([True])

    def unsure(connection: PostgresConnection) -> None:
        commit(connection)
        if next(losses, False):
            raise errors.StatementCompletionUnknown("unknown")

    with SqlStore(PostgresEngine(peopled)) as store:
        monkeypatch.setattr(PostgresConnection, "commit", unsure)
        store.write(ALICE, append_message, "of telegram:1", draft("user", "one", 2.0))
        said = store.read(ALICE, lambda tx: tx.messages.of("of telegram:1"))
    assert [message.content for message in said] == ["one"]


def test_rows_that_nobody_read_to_their_end_disturb_nobody(peopled: str) -> None:
    engine = PostgresEngine(peopled)
    with SqlStore(engine) as store:
        kept: list[Iterator[Row]] = []
        with engine.reading(OWNER) as executor:
            kept.append(executor.stream("SELECT id FROM sessions", {}))
            next(kept[0])

        def work(tx: Transaction) -> int:
            kept.clear()  # and with it what it read from, in the middle of another transaction
            return tx.messages.count()

        assert store.read(OWNER, work) == 0


def test_words_are_looked_up_in_the_index_for_whoever_sees_everything(url: str, postgres_server: Server) -> None:
    """Rules that hide rows keep the server from it; a role without rules, which an administrator gives us, does not."""

    def plan(engine: PostgresEngine) -> str:
        with engine.reading(OWNER) as executor:
            executor.run("SET LOCAL enable_seqscan = off", {})
            sql = "EXPLAIN SELECT id FROM messages WHERE words @@ CAST('x' AS tsquery)"
            return "\n".join(row[0] for row in executor.rows(sql, {}))

    engine, alone = PostgresEngine(url), PostgresEngine(postgres_server.new_database("alone"))
    assert "idx_messages_words" in plan(engine)
    assert engine.notices == []
    assert "idx_messages_words" not in plan(alone), "the control"
    assert "slow without the role segue_all" in alone.notices[0]
    for one in (engine, alone):
        with SessionDB(one.url) as db:
            db.create_session("s")
            db.append_message("s", "user", "hello")
            assert [hit["session_id"] for hit in db.search_messages("hello")] == ["s"]
        one.close()


def test_a_role_that_always_sees_everything_is_spoken_of(postgres_server: Server) -> None:
    postgres_server.run("CREATE ROLE heir LOGIN INHERIT; GRANT segue_all TO heir")
    url = postgres_server.new_database("heir")
    with SqlStore(PostgresEngine(url)) as store:
        assert "NOINHERIT" in store.notices[0]
        store.write(OWNER, create_session, Session("mine", "cli"))
    assert psql(url, "SELECT count(*) FROM segue.sessions") == "0"


def test_a_role_that_was_made_later_is_used(postgres_server: Server) -> None:
    url = postgres_server.new_database("alone")
    PostgresEngine(url).close()
    postgres_server.run("GRANT segue_all TO alone")
    try:
        engine = PostgresEngine(url)
        assert engine.notices == []
        engine.close()
    finally:
        postgres_server.run("REVOKE segue_all FROM alone")


def test_two_who_open_it_first_make_it_once(url: str) -> None:
    started = threading.Barrier(4)
    problems: list[BaseException] = []

    def open_it() -> None:
        started.wait(DEADLINE)
        try:
            PostgresEngine(url).close()
        except BaseException as error:  # noqa: BLE001 - told by the test
            problems.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert psql(url, "SELECT count(*) FROM segue.schema_version") == "1"


def test_a_number_is_never_given_twice(peopled: str) -> None:
    engine = PostgresEngine(peopled)
    store = SqlStore(engine)
    for _ in range(20):
        store.write(ALICE, append_message, "of telegram:1", draft("user", "x", 1.0))

    def begin_anew(tx: Transaction) -> None:
        tx.sessions.delete(["of telegram:1"])
        append_message(tx, "of telegram:2", draft("user", "y", 1.0))

    with suppress(KeyboardInterrupt), engine.writing(5, OWNER) as executor:
        executor.run("DELETE FROM messages WHERE id > 3", {})
        engine.continue_numbers(executor)
        raise KeyboardInterrupt
    store.write(ALICE, append_message, "of telegram:1", draft("user", "goes on", 1.0))
    store.write(OWNER, begin_anew)
    store.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Each pause that was made before something was tried again; no time passes but these."""
    made: list[float] = []
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: sum(made), sleep=made.append))
    return made


def test_what_will_stay_in_the_way_is_said_soon(peopled: str, pauses: list[float]) -> None:
    engine = PostgresEngine(peopled)
    at = datetime.fromtimestamp(1.0, UTC)
    lane = Lane(LaneKey("k"), None, at, principal="telegram:1", created_at=at, updated_at=at)
    with SqlStore(engine) as store:
        store.write(ALICE, lambda tx: tx.lanes.insert(lane))
        with pytest.raises(StoreTaken):
            store.write(BOB, lambda tx: tx.lanes.insert(lane._replace(principal="telegram:2")))
    assert len(pauses) == MOST_CLASHES - 1, "however much patience is left"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:top@secret@db.invalid/x",
        "postgresql://me:top/secret@db.invalid/x",
        "postgresql://me:s%zzcret@db.invalid/x",
        "postgresql://me:top secret@db.invalid/x",
        "postgresql://me@[::1/secret",
        "postgresql://me:secret@db.invalid:secret/x",
        "postgresql://me@db.invalid/x?secret=1",
    ],
)
def test_an_address_that_cannot_be_meant_is_a_sentence_without_its_parts(address: str) -> None:
    with pytest.raises(Invalid) as caught:
        engine_at(address)
    told = str(caught.value)
    assert "secret" not in told
    assert "%XX" in told
    assert caught.value.__cause__ is None


def test_what_waiting_does_not_heal_is_said_at_once(
    postgres_server: Server, tmp_path: Path, pauses: list[float]
) -> None:
    with pytest.raises(StoreError, match=r"does not exist; docs/postgres\.md"):
        engine_at(postgres_server.url("nowhere", "segue"))
    with pytest.raises(StoreError, match=r"does not exist; docs/postgres\.md"):
        engine_at(postgres_server.url("postgres", "nobody"))
    assert pauses == []
    with pytest.raises(StoreBusy, match="cannot be reached"):
        engine_at(f"postgresql:///x?host={tmp_path}")
    assert sum(pauses) >= PATIENCE_AT_THE_DOOR, "the control: this may heal, and is waited for"
