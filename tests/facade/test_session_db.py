"""`SessionDB`: every method by name and result, for several threads and several people."""

import inspect
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from examples import also_in_torture
from homes import NewHome, database_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from torture_rounds import rounds

from segue import OWNER, SessionDB
from segue.app import open_store
from segue.core.errors import (
    Ambiguous,
    Invalid,
    InvalidMessage,
    InvalidSession,
    MessageNotFound,
    SessionNotFound,
    StoreClosed,
    StoreReadOnly,
    TitleTaken,
    TitleTooLong,
)
from segue.core.messages import Spot, draft
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.titles import next_title
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import restore_conversation, trash_before

DAY = 86400.0
CALLS = [{"id": "call_1", "function": {"name": "terminal", "arguments": "{}"}}]
METHODS = [
    *("create_session", "end_session", "reopen_session", "get_session", "set_session_archived"),
    *("append_message", "get_messages", "get_messages_as_conversation", "clear_messages"),
    *("rewind_to_message", "restore_rewound", "update_token_counts", "update_system_prompt"),
    *("set_session_title", "get_session_title", "resolve_session_by_title", "get_next_title_in_lineage"),
    *("resolve_session_id", "list_sessions_rich", "search_sessions"),
    *("session_count", "message_count", "export_session", "export_all", "import_sessions"),
    *("prune_sessions", "delete_session", "get_meta", "set_meta", "vacuum", "close"),
]


@pytest.mark.parametrize("name", METHODS)
def test_there_is_a_documented_method(name: str) -> None:
    method = getattr(SessionDB, name, None)
    assert method is not None
    assert inspect.getdoc(method)


# As the documentation has it


def test_the_documented_example_runs(db: SessionDB) -> None:
    db.create_session(
        session_id="sess_abc123",
        source="cli",
        model="anthropic/claude-sonnet-4.6",
        user_id="user_1",
        parent_session_id=None,
    )
    db.end_session("sess_abc123", end_reason="user_exit")
    db.reopen_session("sess_abc123")
    db.append_message(session_id="sess_abc123", role="user", content="How do I fix the build?")
    number = db.append_message(
        session_id="sess_abc123",
        role="assistant",
        content="Here's the answer...",
        tool_calls=[{"id": "call_1", "function": {"name": "terminal", "arguments": "{}"}}],
        token_count=150,
        finish_reason="stop",
        reasoning="Let me think about this...",
    )
    messages = db.get_messages("sess_abc123")
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[1]["id"] == number
    conversation = db.get_messages_as_conversation("sess_abc123")
    assert conversation[0] == {"role": "user", "content": "How do I fix the build?"}
    assert [one["role"] for one in conversation] == ["user", "assistant", "tool"]
    db.set_session_title("sess_abc123", "Fix Docker Build")
    assert db.resolve_session_by_title("Fix Docker Build") == "sess_abc123"
    assert db.get_next_title_in_lineage("Fix Docker Build") == "Fix Docker Build #2"
    data = db.export_session("sess_abc123")
    assert data is not None
    assert len(data["messages"]) == 2
    assert db.export_all(source="cli") == [data]
    assert db.prune_sessions(older_than_days=90) == 0
    assert db.prune_sessions(older_than_days=30, source="telegram") == 0
    db.clear_messages("sess_abc123")
    assert db.get_messages("sess_abc123") == []
    db.delete_session("sess_abc123")
    assert db.get_session("sess_abc123") is None


# Sessions


def test_a_new_session_gets_an_id_that_reads_like_a_diary(db: SessionDB) -> None:
    names = {db.create_session() for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", name) for name in names)


def test_every_column_can_be_said_at_the_beginning(db: SessionDB) -> None:
    said = {
        "source": "telegram",
        "model": "m",
        "system_prompt": "be good",
        "user_id": "u",
        "parent_session_id": "p",
        "title": "my project",
        "kind": "automation",
        "agent": "helper",
        "cwd": "/tmp",
        "spawned_by": "s",
        "branched_from": "b",
        "principal": "telegram:1",
        "started_at": 5.5,
    }
    db.create_session("x", **said, model_config={"temperature": 0.5, "é": None})  # type: ignore[arg-type]
    row = db.get_session("x")
    assert row is not None
    assert {name: row[name] for name in said} == said
    assert row["model_config"] == '{"temperature":0.5,"é":null}'
    assert (row["last_active_at"], row["ended_at"], row["message_count"]) == (5.5, None, 0)


@pytest.mark.parametrize(
    ("source", "kind"),
    [("cli", "interactive"), ("telegram", "interactive"), ("cron", "automation"), ("subagent", "subagent")],
)
def test_the_kind_of_a_session_follows_from_its_source(db: SessionDB, source: str, kind: str) -> None:
    row = db.get_session(db.create_session(source=source))
    assert row is not None
    assert row["kind"] == kind


@pytest.mark.parametrize(
    "arguments",
    [{"session_id": "x" * 201}, {"source": ""}, {"kind": "nonsense"}, {"title": "x" * 101}, {"title": "taken"}],
    ids=lambda one: next(iter(one)),
)
def test_a_session_that_cannot_be_is_refused_whole(db: SessionDB, arguments: dict[str, Any]) -> None:
    db.create_session("holder", title="taken")
    with pytest.raises(Invalid):
        db.create_session(**arguments)
    assert db.session_count() == 1


def test_a_session_ends_once_and_can_begin_again(db: SessionDB) -> None:
    name = db.create_session()
    db.end_session(name, "user_exit")
    db.end_session(name, "timeout")
    row = db.get_session(name)
    assert row is not None
    assert row["end_reason"] == "user_exit"
    assert row["ended_at"] >= row["started_at"]
    db.reopen_session(name)
    row = db.get_session(name)
    assert row is not None
    assert (row["ended_at"], row["end_reason"]) == (None, None)


def test_usage_and_prompt_are_kept(db: SessionDB) -> None:
    name = db.create_session()
    db.update_token_counts(name, 10, 20, "m", 1, 2, 3, estimated_cost_usd=0.5, cost_status="estimated")
    db.update_token_counts(name, 1, 2, api_call_count=1, billing_provider="p")
    db.update_system_prompt(name, "half \ud800 prompt")
    row = db.get_session(name)
    assert row is not None
    tokens = [row[f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write", "reasoning")]
    assert tokens == [11, 22, 1, 2, 3]
    assert (row["estimated_cost_usd"], row["cost_status"], row["billing_provider"]) == (0.5, "estimated", "p")
    assert (row["model"], row["api_call_count"], row["system_prompt"]) == ("m", 1, "half \ufffd prompt")
    db.update_token_counts(name, 5, absolute=True)
    row = db.get_session(name)
    assert row is not None
    assert (row["input_tokens"], row["output_tokens"], row["estimated_cost_usd"]) == (5, 0, 0.5)


def test_an_archived_session_is_hidden_until_it_is_asked_for(db: SessionDB) -> None:
    name = db.create_session()
    assert db.set_session_archived(name, True)
    assert db.list_sessions_rich() == []
    assert [row["id"] for row in db.list_sessions_rich(archived_only=True)] == [name]
    assert [row["id"] for row in db.list_sessions_rich(include_archived=True)] == [name]
    assert db.set_session_archived(name, False)
    assert [row["id"] for row in db.list_sessions_rich()] == [name]
    assert not db.set_session_archived("nobody", True)


# Messages


def test_a_message_comes_back_with_all_its_columns(db: SessionDB) -> None:
    name = db.create_session()
    said: dict[str, Any] = {
        "role": "assistant",
        "content": [{"type": "text", "text": "nul \x00"}],
        "tool_name": "terminal",
        "tool_calls": CALLS,
        "tool_call_id": "call_0",
        "token_count": 7,
        "finish_reason": "stop",
        "reasoning": "hm",
        "reasoning_content": "hmm",
        "reasoning_details": [{"a": 1}],
        "codex_reasoning_items": [],
        "codex_message_items": [{"id": "m"}],
        "platform_message_id": "1",
        "author": "Zoë",
        "provider": "p",
        "attachments": [{"name": "a"}],
        "extra": {"unheard": "of"},
        "timestamp": 12.5,
    }
    number = db.append_message(name, **said)
    (row,) = db.get_messages(name)
    assert {key: row[key] for key in said} == said
    assert (row.pop("outcome"), row.pop("pruned")) == (None, None)  # the agent's own business
    rest = {key: value for key, value in row.items() if key not in said}
    assert rest == {"id": number, "session_id": name, "seq": 1, "state": "live", "active": 1, "compacted": 0}


@pytest.mark.parametrize(
    ("wishes", "shown"),
    [
        ({}, [1, 2, 3]),
        ({"include_inactive": True}, [1, 2, 3, 4, 5]),
        ({"limit": 2}, [1, 2]),
        ({"limit": 2, "offset": 1}, [2, 3]),
        ({"limit": 2, "offset": 9}, []),
        ({"limit": 0}, []),
        ({"offset": 1}, [2, 3]),
        ({"last": 2}, [2, 3]),
        ({"last": 2, "include_inactive": True}, [4, 5]),
        ({"last": 99}, [1, 2, 3]),
    ],
)
def test_messages_can_be_read_in_part(db: SessionDB, wishes: dict[str, Any], shown: list[int]) -> None:
    name = db.create_session()
    numbers = [db.append_message(name, "user", str(number)) for number in range(5)]
    db.rewind_to_message(name, numbers[3])
    assert [message["seq"] for message in db.get_messages(name, **wishes)] == shown


def test_a_message_that_cannot_be_kept_changes_nothing(db: SessionDB) -> None:
    name = db.create_session()
    before = db.export_all()
    for role, content in (("operator", "x"), ("user", {1, 2}), ("user", float("nan"))):
        with pytest.raises(InvalidMessage):
            db.append_message(name, role, content)
    with pytest.raises(SessionNotFound):
        db.append_message("nobody", "user", "x")
    assert db.export_all() == before


def test_an_undo_says_what_it_did_and_can_be_taken_back(db: SessionDB) -> None:
    name = db.create_session()
    numbers = [
        db.append_message(name, role, text)
        for role, text in (("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"))
    ]
    before = db.export_all()
    undone = db.rewind_to_message(name, numbers[2])
    assert (undone["rewound_count"], undone["new_head_id"]) == (2, numbers[1])
    assert (undone["target_message"]["id"], undone["target_message"]["content"]) == (numbers[2], "three")
    assert db.message_count(name) == 2
    assert [message["active"] for message in db.get_messages(name, include_inactive=True)] == [1, 1, 0, 0]
    assert db.restore_rewound(name, numbers[2]) == 2
    assert db.export_all() == before
    assert db.rewind_to_message(name, numbers[0])["new_head_id"] is None
    with pytest.raises(MessageNotFound):
        db.rewind_to_message(name, numbers[0])


def test_what_is_not_there_has_no_messages(db: SessionDB) -> None:
    assert db.get_messages("nobody") == []
    assert db.message_count("nobody") == 0
    assert db.export_session("nobody") is None
    assert db.get_session("nobody") is None
    assert db.get_session_title("nobody") is None
    assert db.resolve_session_id("nobody") is None
    assert db.resolve_session_by_title("nobody") is None
    assert db.delete_session("nobody") is False


def test_what_was_returned_is_there_for_the_next_program(home: Path) -> None:
    with SessionDB() as first:
        name = first.create_session(title="my project")
        first.append_message(name, "user", "hello")
        before = first.export_all()
    with SessionDB() as second, SessionDB(read_only=True) as third:
        assert second.export_all() == third.export_all() == before


# Titles, lists, counts


def test_titles_are_set_found_and_refused(db: SessionDB) -> None:
    first, second = db.create_session(), db.create_session()
    assert db.set_session_title(first, " my  project ") is True
    assert db.get_session_title(first) == "my project"
    with pytest.raises(TitleTaken, match=first):
        db.set_session_title(second, "my project")
    with pytest.raises(TitleTooLong):
        db.set_session_title(second, "x" * 101)
    with pytest.raises(SessionNotFound):
        db.set_session_title("nobody", "x")
    assert db.set_session_title(first, None) is True
    assert db.get_session_title(first) is None
    assert db.resolve_session_by_title("my project") is None


def test_ids_are_resolved_by_their_beginning(db: SessionDB) -> None:
    for name in ("abc1", "abc2", "xyz"):
        db.create_session(name)
    assert db.resolve_session_id("x") == "xyz"
    with pytest.raises(Ambiguous, match="abc1"):
        db.resolve_session_id("abc")


def test_a_listed_conversation_has_preview_and_last_activity(db: SessionDB) -> None:
    name = db.create_session(title="my project", started_at=5.0)
    db.append_message(name, "user", "word " * 100, timestamp=9.0)
    (row,) = db.list_sessions_rich()
    assert row["preview"] == ("word " * 100)[:60]
    assert (row["id"], row["title"], row["last_active"], row["message_count"]) == (name, "my project", 9.0, 1)
    assert row["tags"] == []


@pytest.mark.parametrize(
    ("wishes", "shown"),
    [
        ({}, ["tip", "telegram", "plain"]),
        ({"source": "telegram"}, ["telegram"]),
        ({"exclude_sources": ["telegram"]}, ["tip", "plain"]),
        ({"limit": 2}, ["tip", "telegram"]),
        ({"limit": 2, "offset": 2}, ["plain"]),
        ({"include_children": True}, ["sub", "cron", "tip", "root", "telegram", "plain"]),
        ({"kind": "automation"}, ["cron"]),
        ({"kind": "subagent"}, ["sub"]),
        ({"min_message_count": 1}, ["telegram"]),
        ({"include_archived": True}, ["archived", "tip", "telegram", "plain"]),
        ({"archived_only": True}, ["archived"]),
        ({"tag": "work"}, []),
    ],
)
def test_conversations_are_listed_as_asked(db: SessionDB, wishes: dict[str, Any], shown: list[str]) -> None:
    db.create_session("plain", started_at=1.0)
    db.create_session("telegram", "telegram", started_at=2.0)
    db.append_message("telegram", "user", "hello", timestamp=2.5)
    db.create_session("root", started_at=3.0)
    db.create_session("tip", parent_session_id="root", started_at=4.0)
    db.create_session("cron", "cron", started_at=5.0)
    db.create_session("sub", "subagent", started_at=6.0, spawned_by="root")
    db.create_session("archived", started_at=7.0)
    db.set_session_archived("archived", True)
    assert [row["id"] for row in db.list_sessions_rich(**wishes)] == shown


def test_sessions_and_messages_are_counted(db: SessionDB) -> None:
    db.create_session("a")
    db.create_session("b", "cron", parent_session_id="a")
    db.set_session_archived("a", True)
    for name in ("a", "a", "b"):
        db.append_message(name, "user", "hello")
    assert (db.session_count(), db.session_count("cron"), db.session_count(include_archived=False)) == (2, 1, 0)
    assert (db.message_count(), db.message_count("a"), db.message_count("b")) == (3, 2, 1)
    assert {row["id"] for row in db.search_sessions()} == {"a", "b"}
    assert [row["id"] for row in db.search_sessions("cron")] == ["b"]
    assert len(db.search_sessions(limit=1)) == len(db.search_sessions(limit=1, offset=1)) == 1


def test_a_compressed_conversation_is_found_and_read_as_one(db: SessionDB, home: Path) -> None:
    db.create_session("a", title="my project")
    for text in ("one", "two"):
        db.append_message("a", "user", text)
    with open_store() as store:
        summary = draft("user", "so far", 9e9)
        store.write(OWNER_AT_CONSOLE, compress_session, "a", child_id="b", summary=summary, kept=Spot("a", 2), now=9e9)
    db.append_message("b", "user", "three")
    assert db.resolve_session_by_title("my project") == "b"
    assert db.get_session_title("b") == "my project #2"
    assert db.get_next_title_in_lineage("my project") == "my project #3"
    assert [one["content"] for one in db.get_messages_as_conversation("b")] == ["so far", "two", "three"]
    assert [row["id"] for row in db.list_sessions_rich()] == ["b"]
    assert [message["content"] for message in db.get_messages("b")] == ["so far", "three"]


# Out, in, away


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "other" / "state.db") as opened:
        yield opened


def test_an_export_comes_in_elsewhere_unchanged(db: SessionDB, other: SessionDB) -> None:
    first = db.create_session(title="my project", model_config={"a": 1})
    db.append_message(first, "user", [{"type": "text", "text": "é\x00"}], extra={"x": None})
    db.create_session("second", "telegram", parent_session_id=first)
    assert len(db.export_all("telegram")) == 1
    report = other.import_sessions(db.export_all())
    assert (report["added"], report["unchanged"], report["errors"]) == (2, 0, [])
    assert [one["session_id"] for one in report["sessions"]] == [first, "second"]
    assert other.export_all() == db.export_all()
    assert other.import_sessions(db.export_all())["unchanged"] == 2


@pytest.mark.parametrize(("policy", "outcome"), [("skip", "skipped"), ("replace", "replaced"), ("copy", "copied")])
def test_a_conflict_is_settled_as_asked(db: SessionDB, policy: str, outcome: str) -> None:
    db.create_session("a")
    report = db.import_sessions([{"id": "a", "source": "telegram"}], on_conflict=policy)
    assert report[outcome] == 1
    assert db.session_count("telegram") == (policy != "skip")


def test_what_cannot_come_in_is_reported_by_its_place_and_the_rest_comes_in(db: SessionDB) -> None:
    sessions: list[Any] = [{"id": "a", "source": "cli"}, {"id": ""}, "nonsense", None, {"id": "b", "source": "cli"}]
    report = db.import_sessions(sessions)
    assert report["added"] == 2
    assert [error["number"] for error in report["errors"]] == [2, 3, 4]
    assert all(error["error"] for error in report["errors"])
    assert db.session_count() == 2


def test_an_unknown_policy_is_refused(db: SessionDB) -> None:
    with pytest.raises(Invalid):
        db.import_sessions([], on_conflict="nonsense")


def test_a_deleted_conversation_can_be_had_back(db: SessionDB, home: Path) -> None:
    db.create_session("a", title="my project")
    db.create_session("b", parent_session_id="a")
    before = db.export_all()
    assert db.delete_session("b") is True
    assert db.session_count() == 0
    with open_store() as store:
        assert len(store.read(OWNER_AT_CONSOLE, trash_before)) == 2
        store.write(OWNER_AT_CONSOLE, restore_conversation, "a")
    assert db.export_all() == before


def test_pruning_says_how_many_sessions_went(db: SessionDB) -> None:
    for name, source in (("old", "cli"), ("old there", "telegram"), ("open", "cli")):
        db.create_session(name, source, started_at=1.0)
        if name != "open":
            db.end_session(name, "user_exit")
    db.create_session("young")
    db.end_session("young", "user_exit")
    assert db.prune_sessions(90, source="slack") == 0
    assert db.prune_sessions(90, source="telegram") == 1
    assert db.prune_sessions() == 1
    assert {row["id"] for row in db.search_sessions()} == {"open", "young"}
    assert db.prune_sessions(older_than_days=0) == 1


# The store itself


def test_small_facts_are_kept(db: SessionDB) -> None:
    assert db.get_meta("fact") is None
    for value in ("one", "zwei é\x00", "", "half \ud800"):
        db.set_meta("fact", value)
        assert db.get_meta("fact") == value.replace("\ud800", "\ufffd").replace("\x00", "\u2400")


def test_a_vacuum_changes_nothing(db: SessionDB) -> None:
    name = db.create_session()
    db.append_message(name, "user", "hello")
    before = db.export_all()
    db.vacuum()
    assert db.export_all() == before


def test_a_closed_store_says_so_and_may_be_closed_twice(home: Path) -> None:
    with SessionDB() as db:
        name = db.create_session()
    db.close()
    for use in (db.session_count, db.create_session, lambda: db.get_session(name)):
        with pytest.raises(StoreClosed):
            use()


def test_a_store_for_reading_takes_nothing(home: Path) -> None:
    with SessionDB() as db:
        name = db.create_session()
        before = db.export_all()
    with SessionDB(read_only=True) as db:
        for write in (db.create_session, lambda: db.append_message(name, "user", "x"), lambda: db.set_meta("a", "b")):
            with pytest.raises(StoreReadOnly):
                write()
        assert db.export_all() == before


def test_there_must_be_something_to_read(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly):
        SessionDB(tmp_path / "none.db", read_only=True)


# Threads


def test_eight_threads_lose_nothing(db: SessionDB) -> None:
    name = db.create_session()
    start = threading.Barrier(8)

    def work(number: int) -> list[int]:
        start.wait()
        rows = []
        for step in range(50):
            rows.append(db.append_message(name, "user", f"{number}:{step}", tool_calls=CALLS))
            if step % 20 == 0:
                row = db.get_session(name)
                assert row is not None
                assert row["message_count"] >= step + 1
        return rows

    with ThreadPoolExecutor(8) as pool:
        rows = [row for rows in pool.map(work, range(8)) for row in rows]
    assert len(set(rows)) == 400
    messages = db.get_messages(name)
    assert [message["seq"] for message in messages] == list(range(1, 401))
    for number in range(8):
        own = [message["content"] for message in messages if message["content"].startswith(f"{number}:")]
        assert own == [f"{number}:{step}" for step in range(50)]
    row = db.get_session(name)
    assert row is not None
    assert (row["message_count"], row["tool_call_count"]) == (400, 400)


# People


BOB, CAROL = "telegram:1", "telegram:2"
SECRET = "secret"


@contextmanager
def gathered(open_for: Callable[[str], SessionDB]) -> Iterator[dict[str, SessionDB]]:
    """The owner and two people, each with a session, a title, a message and something in the trash."""
    handles = {person: open_for(person) for person in (OWNER, BOB, CAROL)}
    for person, handle in handles.items():
        handle.create_session(f"{person} id", "telegram", title=f"title of {person}")
        handle.append_message(f"{person} id", "user", f"{SECRET} of {person}")
        handle.create_session(f"trash of {person}")
        handle.delete_session(f"trash of {person}")
    yield handles
    for handle in handles.values():
        handle.close()


@pytest.fixture
def people(prepared_home: Path) -> Iterator[dict[str, SessionDB]]:
    with gathered(lambda person: SessionDB(principal=person)) as handles:
        yield handles


@pytest.fixture(scope="module")
def readers(new_home: NewHome) -> Iterator[dict[str, SessionDB]]:
    """The same people for all tests that change nothing."""
    database = database_of(new_home("people"))
    with gathered(lambda person: SessionDB(database, principal=person)) as handles:
        yield handles


READS: dict[str, Callable[[SessionDB, str], object]] = {
    "get_session": lambda db, whose: db.get_session(f"{whose} id"),
    "get_messages": lambda db, whose: db.get_messages(f"{whose} id", include_inactive=True),
    "get_messages, the last": lambda db, whose: db.get_messages(f"{whose} id", last=5),
    "get_session_title": lambda db, whose: db.get_session_title(f"{whose} id"),
    "resolve_session_by_title": lambda db, whose: db.resolve_session_by_title(f"title of {whose}"),
    "resolve_session_id": lambda db, whose: db.resolve_session_id(f"{whose} id"),
    "resolve_session_id, by its beginning": lambda db, whose: db.resolve_session_id(f"{whose} i"),
    "message_count": lambda db, whose: db.message_count(f"{whose} id"),
    "export_session": lambda db, whose: db.export_session(f"{whose} id"),
    "list_sessions_rich": lambda db, whose: of(whose, db.list_sessions_rich(limit=99, include_archived=True)),
    "list_sessions_rich, all": lambda db, whose: of(whose, db.list_sessions_rich(limit=99, include_children=True)),
    "search_sessions": lambda db, whose: of(whose, db.search_sessions(limit=99)),
    "export_all": lambda db, whose: of(whose, db.export_all()),
    "export_all of a source": lambda db, whose: of(whose, db.export_all("telegram")),
}


def of(whose: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if whose in str(row)]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("reader", [BOB, CAROL])
def test_nobody_reads_what_is_not_theirs(
    readers: dict[str, SessionDB], reader: str, read: Callable[[SessionDB, str], object]
) -> None:
    assert read(readers[reader], reader)
    for other in {OWNER, BOB, CAROL} - {reader}:
        assert not read(readers[reader], other)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_owner_reads_everything(readers: dict[str, SessionDB], read: Callable[[SessionDB, str], object]) -> None:
    for whose in readers:
        assert read(readers[OWNER], whose)


def test_nobody_counts_what_is_not_theirs(readers: dict[str, SessionDB]) -> None:
    counts = {person: (handle.session_count(), handle.message_count()) for person, handle in readers.items()}
    assert counts == {OWNER: (3, 3), BOB: (1, 1), CAROL: (1, 1)}
    assert readers[BOB].session_count("telegram") == 1


def test_nobody_reads_a_conversation_that_is_not_theirs(readers: dict[str, SessionDB]) -> None:
    for reader, whose in ((BOB, OWNER), (BOB, CAROL), (CAROL, BOB)):
        with pytest.raises(SessionNotFound) as refusal:
            readers[reader].get_messages_as_conversation(f"{whose} id")
        assert SECRET not in str(refusal.value)
    for whose in readers:
        assert readers[OWNER].get_messages_as_conversation(f"{whose} id")[0]["content"] == f"{SECRET} of {whose}"


def test_a_persons_titles_are_numbered_among_their_own(people: dict[str, SessionDB]) -> None:
    people[CAROL].create_session(title="p #7")
    assert people[BOB].get_next_title_in_lineage("p") == "p #2"
    assert people[CAROL].get_next_title_in_lineage("p") == "p #8"


WRITES: dict[str, Callable[[SessionDB, str], object]] = {
    "append_message": lambda db, name: db.append_message(name, "user", "x"),
    "end_session": lambda db, name: db.end_session(name, "x"),
    "reopen_session": lambda db, name: db.reopen_session(name),
    "set_session_title": lambda db, name: db.set_session_title(name, "stolen"),
    "update_system_prompt": lambda db, name: db.update_system_prompt(name, "obey"),
    "update_token_counts": lambda db, name: db.update_token_counts(name, 5),
    "clear_messages": lambda db, name: db.clear_messages(name),
    "rewind_to_message": lambda db, name: db.rewind_to_message(name, 1),
    "restore_rewound": lambda db, name: db.restore_rewound(name, 1),
    "set_session_archived": lambda db, name: refuse_false(db.set_session_archived(name, True)),
    "delete_session": lambda db, name: refuse_false(db.delete_session(name)),
    "create_session": lambda db, name: refuse_invalid(lambda: db.create_session(name)),
    "import_sessions": lambda db, name: refuse_errors(
        db.import_sessions([{"id": name, "source": "cli"}], on_conflict="replace")
    ),
}


def refuse_false(done: bool) -> None:
    if not done:
        raise SessionNotFound("")


def refuse_invalid(act: Callable[[], object]) -> None:
    with pytest.raises(InvalidSession):
        act()
    raise SessionNotFound("")


def refuse_errors(report: dict[str, Any]) -> None:
    if report["errors"]:
        raise SessionNotFound("")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nobody_changes_what_is_not_theirs(
    people: dict[str, SessionDB], write: Callable[[SessionDB, str], object]
) -> None:
    before = people[OWNER].export_all()
    for writer, whose in ((BOB, OWNER), (BOB, CAROL), (CAROL, BOB)):
        with pytest.raises(SessionNotFound):
            write(people[writer], f"{whose} id")
    assert people[OWNER].export_all() == before


def test_nobody_prunes_what_is_not_theirs(people: dict[str, SessionDB]) -> None:
    for handle in people.values():
        handle.end_session(handle.export_all()[-1]["id"], "user_exit")
    people[BOB].prune_sessions(older_than_days=-1)
    assert {row["principal"] for row in people[OWNER].search_sessions()} == {OWNER, CAROL}


def test_what_a_person_begins_or_brings_in_is_theirs(people: dict[str, SessionDB]) -> None:
    name = people[BOB].create_session(principal=OWNER)
    people[BOB].import_sessions([{"id": "brought", "source": "cli", "principal": CAROL, "audience": "room"}])
    for one in (name, "brought"):
        row = people[OWNER].get_session(one)
        assert row is not None
        assert (row["principal"], row["audience"]) == (BOB, "")


def test_the_owner_begins_a_session_for_somebody(people: dict[str, SessionDB]) -> None:
    name = people[OWNER].create_session(principal=BOB)
    assert people[BOB].get_session(name) is not None
    assert people[CAROL].get_session(name) is None


def test_a_person_neither_reads_nor_changes_what_the_owner_keeps_beside_the_sessions(
    people: dict[str, SessionDB],
) -> None:
    people[OWNER].set_meta("fact", SECRET)
    assert people[BOB].get_meta("fact") != SECRET
    people[BOB].set_meta("fact", "overwritten")
    assert people[OWNER].get_meta("fact") == SECRET


# Everything together, against a model that fits on a page


@dataclass
class Remembered:
    """What one session must be."""

    principal: str
    title: str | None = None
    archived: int = 0
    end_reason: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def live(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["live"]]

    @property
    def counters(self) -> dict[str, Any]:
        said = [" ".join((one["text"] or "").split()) for one in self.live if one["role"] == "user"]
        return {
            "message_count": len(self.live),
            "tool_call_count": sum(message["calls"] for message in self.live),
            "first_line": next(filter(None, said), "").replace("\x00", "\u2400")[:200],
            "last_active_at": max([1.0, *(message["at"] for message in self.messages)]),
        }


class Conversations(RuleBasedStateMachine):
    """The owner and two people use one store; whatever they do, each sees exactly what is theirs, rightly counted."""

    sessions = Bundle("sessions")
    trashed = Bundle("trashed")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "home" / "state.db"
        self.people = {person: SessionDB(path, principal=person) for person in (OWNER, BOB, CAROL)}
        self.store = open_store(path)
        self.model: dict[str, Remembered] = {}
        self.trash: dict[str, Remembered] = {}
        self.names = 0

    def teardown(self) -> None:
        for handle in self.people.values():
            handle.close()
        self.store.close()
        self._folder.cleanup()

    def titles_of(self, principal: str) -> set[str]:
        return {one.title for one in self.model.values() if one.principal == principal and one.title}

    def own(self, name: str) -> SessionDB:
        return self.people[self.model[name].principal]

    @rule(target=sessions, person=st.sampled_from([OWNER, BOB, CAROL]))
    def create(self, person: str) -> str:
        self.names += 1
        name = f"s{self.names}"
        assert self.people[person].create_session(name, started_at=1.0) == name
        self.model[name] = Remembered(person)
        return name

    @rule(
        name=sessions,
        role=st.sampled_from(["user", "assistant"]),
        text=st.sampled_from([None, "", " ", "hello", "two\nlines", "nul \x00", "x" * 300]),
        calls=st.integers(0, 2),
        at=st.integers(0, 50),
    )
    def append(self, name: str, role: str, text: str | None, calls: int, at: int) -> None:
        if name not in self.model:
            return
        number = self.own(name).append_message(name, role, text, tool_calls=CALLS * calls, timestamp=float(at))
        message = {"id": number, "role": role, "text": text, "calls": calls, "at": float(at), "live": True}
        self.model[name].messages.append(message)

    @rule(name=sessions, back=st.integers(1, 3))
    def rewind(self, name: str, back: int) -> None:
        asked = [one for one in self.model[name].live if one["role"] == "user"] if name in self.model else []
        if not asked:
            return
        target = asked[-min(back, len(asked))]
        after = [one for one in self.model[name].live if one["id"] >= target["id"]]
        undone = self.own(name).rewind_to_message(name, target["id"])
        assert undone["rewound_count"] == len(after)
        for one in after:
            one["live"] = False
        assert undone["new_head_id"] == (self.model[name].live[-1]["id"] if self.model[name].live else None)

    @rule(name=sessions, where=st.integers(0, 9))
    def restore(self, name: str, where: int) -> None:
        messages = self.model[name].messages if name in self.model else []
        if not messages:
            return
        again = messages[min(where, len(messages) - 1) :]
        expected = sum(not one["live"] for one in again)
        assert self.own(name).restore_rewound(name, again[0]["id"]) == expected
        for one in again:
            one["live"] = True

    @rule(name=sessions)
    def clear(self, name: str) -> None:
        if name in self.model:
            self.own(name).clear_messages(name)
            for one in self.model[name].messages:
                one["live"] = False

    @rule(name=sessions, title=st.sampled_from([None, "p", "p #2", "  p ", "q"]), by_owner=st.booleans())
    def title(self, name: str, title: str | None, by_owner: bool) -> None:
        if name not in self.model:
            return
        handle = self.people[OWNER] if by_owner else self.own(name)
        wanted = title.strip() if title else None
        if wanted in self.titles_of(self.model[name].principal) - {self.model[name].title}:
            with pytest.raises(TitleTaken):
                handle.set_session_title(name, title)
            return
        handle.set_session_title(name, title)
        self.model[name].title = wanted

    @rule(name=sessions, archived=st.booleans())
    def archive(self, name: str, archived: bool) -> None:
        if name in self.model:
            assert self.own(name).set_session_archived(name, archived)
            self.model[name].archived = int(archived)

    @rule(name=sessions, reason=st.sampled_from(["user_exit", "timeout"]))
    def end(self, name: str, reason: str) -> None:
        if name in self.model:
            self.own(name).end_session(name, reason)
            self.model[name].end_reason = self.model[name].end_reason or reason

    @rule(name=sessions)
    def reopen(self, name: str) -> None:
        if name in self.model:
            self.own(name).reopen_session(name)
            self.model[name].end_reason = None

    @rule(target=trashed, name=consumes(sessions))
    def delete(self, name: str) -> Any:
        if name not in self.model:
            return multiple()
        assert self.own(name).delete_session(name)
        self.trash[name] = self.model.pop(name)
        return name

    @rule(target=sessions, name=consumes(trashed))
    def restore_from_trash(self, name: str) -> Any:
        remembered = self.trash.pop(name)
        taken = self.titles_of(remembered.principal)
        self.store.write(OWNER_AT_CONSOLE, restore_conversation, name)
        if remembered.title in taken:
            remembered.title = next_title(str(remembered.title), taken)
        self.model[name] = remembered
        ids = [message["id"] for message in self.own(name).get_messages(name, include_inactive=True)]
        for message, number in zip(remembered.messages, ids, strict=True):
            message["id"] = number
        return name

    @rule(name=sessions, person=st.sampled_from([BOB, CAROL]), write=st.sampled_from(sorted(WRITES)))
    def trespass(self, name: str, person: str, write: str) -> None:
        if name in self.model and self.model[name].principal != person:
            with pytest.raises(SessionNotFound):
                WRITES[write](self.people[person], name)

    @rule(person=st.sampled_from([OWNER, BOB, CAROL]))
    def carry_elsewhere(self, person: str) -> None:
        exported = self.people[person].export_all()
        seen = {name for name, one in self.model.items() if person in (OWNER, one.principal)}
        assert {data["id"] for data in exported} == seen
        with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "home" / "state.db") as other:
            assert other.import_sessions(exported)["added"] == len(exported)
            assert other.export_all() == exported
            assert other.import_sessions(exported)["unchanged"] == len(exported)

    @invariant()
    def everybody_sees_exactly_what_is_theirs(self) -> None:
        for person, handle in self.people.items():
            seen = {name for name, one in self.model.items() if person in (OWNER, one.principal)}
            assert {row["id"] for row in handle.search_sessions(limit=999)} == seen
            assert {row["id"] for row in handle.list_sessions_rich(limit=999, include_archived=True)} == seen
            assert handle.session_count() == len(seen)
            assert handle.message_count() == sum(len(self.model[name].live) for name in seen)
            for name in self.model.keys() - seen:
                assert handle.get_session(name) is None
                assert handle.get_messages(name, include_inactive=True) == []

    @invariant()
    def every_session_is_what_was_done_to_it(self) -> None:
        for name, one in self.model.items():
            row = self.people[OWNER].get_session(name)
            assert row is not None
            expected = one.counters | {"title": one.title, "archived": one.archived, "end_reason": one.end_reason}
            assert {column: row[column] for column in expected} == expected
            live = [(message["id"], message["content"]) for message in self.own(name).get_messages(name)]
            assert live == [(message["id"], message["text"]) for message in one.live]


TestConversations = also_in_torture(Conversations.TestCase)
TestConversations.settings = settings(
    max_examples=rounds(10, in_torture=40),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
