"""What only a server can do: refuse at its own door, lose a connection, be restarted."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from postgres_server import Server, psql
from psycopg.conninfo import conninfo_to_dict
from waiting import wait_until

from segue.core.background import Process, ProcessState
from segue.core.credentials import Credential
from segue.core.errors import SchemaTooNew, StoreBusy, StoreClosed, StoreError, StoreReadOnly
from segue.core.ids import LaneKey
from segue.core.inbound import Inbound
from segue.core.inbox import entry_of
from segue.core.jobs import Job
from segue.core.leases import Run
from segue.core.lifecycle import Lane
from segue.core.links import LinkRow
from segue.core.messages import draft
from segue.core.outbox import What
from segue.core.pairing import PairedPerson, Pairing
from segue.core.policy import ResetReason
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.core.turns import Heard, Step, StepKind, StepState, Turn, TurnState
from segue.core.usage import Billing, Purpose, Usage, spent
from segue.ports.store import ResetRow, Transaction, TrashEntry
from segue.sessions.delivering import Posting, envelope_of, post
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session
from segue.storage import postgres
from segue.storage.meta import drawer_of
from segue.storage.postgres import PostgresEngine
from segue.storage.postgres_address import place_of
from segue.storage.postgres_connection import PostgresConnection, translated
from segue.storage.postgres_schema import POLICIES
from segue.storage.store import SqlStore

ALICE, BOB = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))


@pytest.fixture
def url(postgres_server: Server) -> str:
    return postgres_server.new_database()


def furnish(tx: Transaction, name: str, scope: Scope) -> None:
    session = Session(name, "cli", principal=scope.principal, audience=scope.audience, title=f"title of {name}")
    create_session(tx, session)
    tx.sessions.tag(name, [f"tag of {name}"])
    append_message(tx, name, draft("user", f"words of {name}", 1.0))
    tx.meta.set("note", f"note of {name}")
    at = datetime.fromtimestamp(1.0, UTC)
    key = LaneKey(f"lane of {name}")
    tx.lanes.insert(Lane(key, None, at, principal=scope.principal, created_at=at, updated_at=at))
    tx.lanes.add_reset(ResetRow(key, at, ResetReason.ASKED, name, None, name, True))
    entry = TrashEntry(0, f"old {name}", name, None, "", "cli", scope.principal, scope.audience, 1, 1.0)
    tx.trash.put(entry, f"payload of {name}")
    tx.turns.insert(Turn(f"turn of {name}", name, "run", TurnState.RUNNING, 1, 1, 1.0))
    tx.turns.begin_step(Step(f"turn of {name}", 1, StepKind.TOOL, "tool", "call", 0, StepState.BEGUN, 1.0))
    tx.turns.hear(Heard(f"turn of {name}", 1, "and leeks", 1.0))
    tx.ledger.add(spent(name, 1.0, Purpose.ANSWER, Usage(input_tokens=1), Billing()))
    tx.processes.insert(Process(f"process of {name}", name, "run", "sleep 1", "/", 1, ProcessState.RUNNING, 1.0))
    inbound = Inbound(SessionSource(platform="telegram", chat_id=name), name, f"words of {name}")
    entry_id = tx.inbox.add(entry_of(inbound, key, scope.principal, scope.audience, scope.principal, 1.0))
    assert entry_id is not None
    received = tx.inbox.find(entry_id)
    assert received is not None
    posting = Posting(lambda _platform, _account: None)
    post(tx, posting, envelope_of(received, name), f"words for {name}", What.REPLY, 1.0)
    tx.leases.add_run(Run(f"run of {name}", "segue chat", "host", "boot", 1, "1", 1.0, 1.0))
    tx.leases.take(f"session:{name}", "run", scope.principal, 60.0)


def let_in(tx: Transaction, name: str) -> None:
    tx.people.put(PairedPerson("telegram", name, "person", name, 1.0, "console"))
    tx.people.put_pairing(Pairing("telegram", name, 1, "", "", name, 1.0, 2.0, 0, "pending"))
    tx.inbox.move_cursor("telegram", name, "offset", "1")
    tx.leases.put_link(LinkRow("telegram", name, "run", "connected", 1.0))
    tx.tokens.add(Credential("00000000", name, "", "read", "owner", 1.0))
    tx.jobs.add(Job(name, "0 7 * * *", "UTC", "Is there tea?", 1.0))


ONLY_THE_OWNERS = {"search_words", "runs", "people", "pairings", "cursors", "links", "jobs", "tokens"}


def people(url: str) -> str:
    with SqlStore(PostgresEngine(url)) as store:
        store.write(ALICE, furnish, "alice", ALICE)
        store.write(BOB, furnish, "bob", BOB)
        store.write(OWNER, furnish, "mine", Scope(Principal("owner")))
        store.write(OWNER, let_in, "somebody")
    return url


@pytest.fixture
def peopled(url: str) -> str:
    return people(url)


@pytest.fixture(scope="module")
def looked_at(postgres_server: Server) -> str:
    """The same for all tests that change nothing."""
    return people(postgres_server.new_database())


def as_principal(principal: str) -> str:
    drawer = drawer_of(Scope(Principal(principal)))
    return f"SET segue.principal = '{principal}'; SET segue.drawer = '{drawer}'; "


@pytest.mark.parametrize("table", POLICIES)
def test_without_our_code_the_role_sees_nothing(looked_at: str, table: str) -> None:
    assert psql(looked_at, f"SELECT count(*) FROM segue.{table}") == "0"
    everything = psql(looked_at, f"SET segue.sees_all = 'yes'; SELECT count(*) FROM segue.{table}")
    assert int(everything) > 0, "there is something to be seen"


@pytest.mark.parametrize("table", sorted(POLICIES.keys() - ONLY_THE_OWNERS))
def test_as_a_principal_the_role_sees_its_own(looked_at: str, table: str) -> None:
    seen = psql(looked_at, as_principal("telegram:1") + f"SELECT * FROM segue.{table}")
    assert "alice" in seen
    assert "bob" not in seen
    assert "mine" not in seen


@pytest.mark.parametrize("table", sorted(ONLY_THE_OWNERS))
def test_what_is_only_the_owners_is_seen_by_no_other_principal(looked_at: str, table: str) -> None:
    assert psql(looked_at, as_principal("telegram:1") + f"SELECT * FROM segue.{table}") == ""


def test_nobody_lets_themselves_in(peopled: str) -> None:
    into = "INSERT INTO segue.people VALUES ('telegram', '1', 'owner', '', 1, 'me')"
    with pytest.raises(subprocess.CalledProcessError):
        psql(peopled, as_principal("telegram:1") + into)
    psql(peopled, f"SET segue.sees_all = 'yes'; {into}")


def test_nobody_else_gives_the_owners_agent_a_job(peopled: str) -> None:
    into = "INSERT INTO segue.jobs (name, schedule, zone, prompt, created_at) VALUES ('x', '* * * * *', 'UTC', 'x', 1)"
    with pytest.raises(subprocess.CalledProcessError):
        psql(peopled, as_principal("telegram:1") + into)
    psql(peopled, f"SET segue.sees_all = 'yes'; {into}")


def test_nothing_of_others_can_be_changed_or_taken_over(peopled: str) -> None:
    steal = "UPDATE segue.sessions SET principal = 'telegram:1' WHERE id = 'bob' RETURNING 1"
    assert psql(peopled, as_principal("telegram:1") + steal) == ""
    give = as_principal("telegram:1") + "UPDATE segue.sessions SET principal = 'telegram:2' WHERE id = 'alice'"
    with pytest.raises(subprocess.CalledProcessError):
        psql(peopled, give)
    into = as_principal("telegram:1") + (
        "INSERT INTO segue.messages (session_id, seq, role, timestamp) VALUES ('bob', 9, 'user', 1)"
    )
    with pytest.raises(subprocess.CalledProcessError):
        psql(peopled, into)


def test_every_table_with_rows_of_people_forces_its_rules(looked_at: str, postgres_server: Server) -> None:
    database = str(conninfo_to_dict(looked_at)["dbname"])
    sql = """
        SELECT relname FROM pg_class
        WHERE relnamespace = 'segue'::regnamespace AND relkind = 'r' AND NOT relforcerowsecurity"""
    assert {row[0] for row in postgres_server.run(sql, database)} == {"schema_version", "writers"}


def test_a_role_that_sees_everything_is_spoken_of(peopled: str, postgres_server: Server) -> None:
    database = str(conninfo_to_dict(peopled)["dbname"])
    with SqlStore(PostgresEngine(postgres_server.url(database))) as store:
        assert "a plain one" in store.notices[0]
    with SqlStore(PostgresEngine(peopled)) as store:
        assert store.notices == []


def test_a_connection_that_was_cut_off_is_replaced(peopled: str, postgres_server: Server) -> None:
    ours = "FROM pg_stat_activity WHERE application_name = 'segue'"

    def cut_off() -> None:
        postgres_server.run(f"SELECT pg_terminate_backend(pid) {ours}")
        wait_until(lambda: postgres_server.run(f"SELECT count(*) {ours}") == [(0,)], "the end of the connections")

    with SqlStore(PostgresEngine(peopled)) as store:
        for number in range(3):
            cut_off()
            store.write(OWNER, append_message, "mine", draft("user", f"again {number}", 2.0))
            cut_off()
            assert store.read(OWNER, lambda tx: tx.messages.count("mine")) == number + 2


def say_twice(store: SqlStore, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> list[str | None]:
    """Append two messages; of the first, the answer to the commit is lost, which the server has kept or not."""
    commit = PostgresConnection.commit
    losses = iter([True])

    def lossy(connection: PostgresConnection) -> None:
        if next(losses, False):
            if is_kept:
                commit(connection)
            connection.handle.close()
            raise psycopg.OperationalError("the connection was lost")
        commit(connection)

    monkeypatch.setattr(PostgresConnection, "commit", lossy)
    for text in ("one", "two"):
        store.write(OWNER, append_message, "mine", draft("user", text, 2.0))
    return [message.content for message in store.read(OWNER, lambda tx: tx.messages.of("mine"))][1:]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_commit_whose_answer_was_lost_is_asked_after(
    peopled: str, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    with SqlStore(PostgresEngine(peopled)) as store:
        assert say_twice(store, monkeypatch, is_kept=is_kept) == ["one", "two"]


def test_who_does_not_ask_says_it_twice(peopled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: done again blindly, a message that was kept is there twice."""
    monkeypatch.setattr(PostgresEngine, "_has_committed", lambda *_: False)
    with SqlStore(PostgresEngine(peopled)) as store:
        assert say_twice(store, monkeypatch, is_kept=True) == ["one", "one", "two"]


def test_what_is_wrong_is_said_in_a_sentence(
    url: str, postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PATIENCE_AT_THE_DOOR", 0.0)
    with pytest.raises(StoreBusy, match="cannot be reached"):
        PostgresEngine(f"postgresql:///x?host={tmp_path}")
    with SqlStore(PostgresEngine(url)) as store:
        with SqlStore(PostgresEngine(url, read_only=True)) as reader, pytest.raises(StoreReadOnly):
            reader.write(OWNER, lambda tx: tx.meta.set("a", "b"))
        store.close()
        with pytest.raises(StoreClosed):
            store.read(OWNER, lambda tx: tx.messages.count())
    postgres_server.run("UPDATE segue.schema_version SET version = 99", str(conninfo_to_dict(url)["dbname"]))
    with pytest.raises(SchemaTooNew, match="newer Segue"):
        PostgresEngine(url)
    assert "secret" not in place_of("postgresql://me:secret@db.example:5433/work")
    with pytest.raises(StoreError) as refused:
        PostgresEngine(f"postgresql://me:secret@/x?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_named_parameters_are_translated_and_nothing_else() -> None:
    assert translated("SELECT ':a', b::text, 100 % 3 WHERE c = :c_1 AND d LIKE '%x'") == (
        "SELECT ':a', b::text, 100 %% 3 WHERE c = %(c_1)s AND d LIKE '%%x'"
    )


def test_a_room_has_its_own(url: str) -> None:
    room = Audience("room")
    with SqlStore(PostgresEngine(url)) as store:
        store.write(Scope(Principal("telegram:1"), room), furnish, "a", Scope(Principal("telegram:1"), room))
        store.write(Scope(Principal(room), room), furnish, "r", Scope(Principal(room), room))
        seen = Scope(Principal("telegram:2"), room)
        assert [one.id for one in store.read(seen, lambda tx: list(tx.sessions.in_order()))] == ["r"]
