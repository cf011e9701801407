"""What an agent is told of the past: the right conversations, cut to size, and never the one that is going on."""

from datetime import UTC

from segue.core.messages import draft
from segue.core.query import parse
from segue.core.recollection import MOST_CHARACTERS
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sessions import Kind, Session
from segue.ports.store import Transaction
from segue.sessions.recalling import Recall, recall, summarised
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0


def add(
    tx: Transaction, session_id: str, texts: list[str], kind: str = Kind.INTERACTIVE, principal: str = "owner"
) -> None:
    create_session(tx, Session(session_id, "cli", started_at=NOW, kind=kind, principal=principal))
    for number, text in enumerate(texts):
        append_message(tx, session_id, draft("assistant" if number % 2 else "user", text, NOW + number))


def ask(store: SqlStore, text: str, scope: Scope = OWNER, current: str | None = None, limit: int = 3) -> Recall:
    return store.read(scope, recall, parse(text), NOW, UTC, lambda: 5.0, current=current, limit=limit)


def names(found: Recall) -> list[str]:
    return [one.session.id for one in found.recollections]


def test_the_best_three_conversations_are_recalled_and_the_present_one_is_not(store: SqlStore) -> None:
    for number in range(5):
        store.write(OWNER, add, f"s{number}", [f"roses number {number}", "noted"])
    assert len(names(ask(store, "roses"))) == 3
    assert "s2" not in names(ask(store, "roses", current="s2", limit=10))
    assert len(names(ask(store, "roses", current="s2", limit=10))) == 4
    assert names(ask(store, "roses", current="gone", limit=1)) != []


def test_what_runs_by_itself_comes_after_people(store: SqlStore) -> None:
    store.write(OWNER, add, "job", ["roses are red"], Kind.AUTOMATION)
    store.write(OWNER, add, "talk", ["roses are red"])
    assert names(ask(store, "roses")) == ["talk", "job"]


def test_a_long_conversation_is_cut_around_its_matches(store: SqlStore) -> None:
    filler = [f"filler {number} " + "x" * 900 for number in range(300)]
    store.write(OWNER, add, "long", [*filler[:150], "the dentist is on Tuesday", *filler[150:]])
    [one] = ask(store, "dentist").recollections
    assert len(one.text) <= MOST_CHARACTERS
    assert "the dentist is on Tuesday" in one.text
    assert one.text.startswith("…\n")
    assert one.text.endswith("\n…")
    assert "filler 149 " in one.text
    assert "filler 0 " not in one.text
    assert one.opening[0].startswith("User: filler 0 ")
    assert one.closing[-1].startswith("User: filler 299 ")


def test_nobody_recalls_what_is_somebody_elses(store: SqlStore) -> None:
    store.write(OWNER, add, "alice", ["roses of alice"], Kind.INTERACTIVE, "telegram:1")
    assert names(ask(store, "roses", Scope(Principal("telegram:2")))) == []
    assert names(ask(store, "roses", Scope(Principal("telegram:1")))) == ["alice"]


def test_a_summariser_is_asked_once_for_each(store: SqlStore) -> None:
    store.write(OWNER, add, "s", ["roses", "noted"])
    found = ask(store, "roses")
    told = summarised("roses", found, lambda asked, one: f"{asked}: {len(one.text)} characters")
    assert [one.summary for one in told.recollections] == [f"roses: {len(found.recollections[0].text)} characters"]
    assert found.recollections[0].text == "User: roses\nAssistant: noted"
