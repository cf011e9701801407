"""Sessions leave the store whole and come in unchanged: to the byte, once, and without disturbing what is there."""

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st

from segue.app import open_store
from segue.core.errors import InvalidSession, SessionNotFound
from segue.core.keys import KeyRules
from segue.core.messages import Spot, draft
from segue.core.policy import ResetPolicies
from segue.core.portable import dated, from_json, from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.core.usage import Billing, Purpose, Spent, Usage, used_by, used_in
from segue.ports.store import Filter, Store, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import trash_before
from segue.sessions.exporting import export_lines, export_session
from segue.sessions.finding import find_tip, get_session
from segue.sessions.importing import Imported, OnConflict, Outcome, import_session
from segue.sessions.opening import Arrival, Rules, open_session
from segue.sessions.reading import view_of
from segue.sessions.recording import add_usage, append_message
from segue.sessions.rewinding import rewind_turns
from segue.sessions.starting import create_session, end_session
from segue.sessions.titling import set_title

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM = Scope(Principal("room"), Audience("room"))
LANE = "agent:main:telegram:dm:1"
NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
RULES = Rules(KeyRules(), ResetPolicies(), timedelta(hours=1))
CALLS = [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"a":1}'}}]
PARTS = [{"type": "text", "text": "look \x00"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
ODD: list[Any] = ["how it began", None, "", "a\x00b", PARTS, [], {}, 0, "\u2028\u2029\x1b[31m\x7f\x9b\U000e0041", "é🙂"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """An empty store in another place."""
    with open_store(tmp_path / "other" / "state.db") as opened:
        yield opened


def begin(store: Store, name: str, title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def say(store: Store, name: str, content: Any, role: str = "user", **fields: Any) -> None:
    store.write(ME, append_message, name, draft(role, content, 1741176000.123456, **fields))


def arrive(store: Store, fresh_id: str, chat: str = "1", at: datetime = NOON) -> str:
    source = SessionSource(platform="telegram", chat_id=chat, user_id=chat, user_name="Zoë")
    return store.write(ME, open_session, Arrival(source, at, fresh_id), RULES).session.id


def export(store: Store, *ids: str, scope: Scope = ME) -> str:
    pieces: list[str] = []
    store.read(scope, export_lines, pieces.append, (), ids)
    return "".join(pieces)


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def bring(store: Store, data: Any, on_conflict: OnConflict = OnConflict.SKIP, scope: Scope = ME) -> Imported:
    """Take in a line of an export, or an object."""
    portable = from_json(data) if isinstance(data, str | bytes) else from_mapping(data)
    return store.write(scope, import_session, portable, on_conflict=on_conflict, now=500.0)


def bring_all(store: Store, text: str) -> list[Outcome]:
    return [bring(store, line).outcome for line in lines(text)]


def found(store: Store, name: str) -> Session:
    return store.read(ME, get_session, name)


def texts(store: Store, name: str) -> list[Any]:
    return [message.original for message in store.read(ME, lambda tx: tx.messages.of(name, every_state=True))]


@pytest.fixture
def rich(store: Store) -> Store:
    """Something of everything a store can hold."""
    begin(
        store,
        "a",
        "Café 東京 👨\u200d👩\u200d👧",
        model="m",
        model_config='{"t":0.1}',
        system_prompt="nul \x00 \u202e",
        cwd="/ü",
    )
    for content in ODD:
        say(store, "a", content)
    details = {"reasoning": "hm", "reasoning_details": [{"x": None}], "codex_reasoning_items": [], "provider": "p"}
    say(store, "a", None, "assistant", tool_calls=CALLS, finish_reason="tool_calls", token_count=5, **details)
    say(store, "a", "out\x00put", "tool", tool_call_id="c1", tool_name="terminal", attachments=[{"name": "é"}])
    say(store, "a", "undone", author="Zoë", platform_message_id="1:2", extra={"unheard of": {"deep": [1.5, 2**70]}})
    store.write(ME, rewind_turns, "a", 1)
    store.write(ME, lambda tx: tx.sessions.tag("a", ["été", "work", "\U0010ffff"]))
    usage = Usage(1, 2, 3, 4, 5, 6, 0.1, 1e-9)
    store.write(ME, add_usage, "a", usage, Billing("m", "p", "https://u", "mode", "status", "source", "version"), 1.0)
    store.write(ME, add_usage, "a", Usage(7, api_call_count=1), Billing("\u202em"), 2.5, Purpose.TITLE)
    store.write(ME, add_usage, "a", Usage(estimated_cost_usd=0.2), Billing(), 1.5)
    summary = draft("user", "so far", 20.0)
    store.write(ME, compress_session, "a", child_id="b", summary=summary, kept=Spot("a", 3), now=20.1)
    begin(store, "sub", spawned_by="b", kind="subagent", source="subagent", pinned=1, archived=1)
    begin(store, "bob's", "the same title", BOB)
    begin(store, "carol's", "the same title", CAROL, ended_at=1e9 + 0.1, end_reason="user_exit")
    begin(store, "in a room", scope=ROOM)
    arrive(store, "lane, first day")
    arrive(store, "lane, second day", at=NOON + timedelta(days=1))
    messages = [{"seq": 9, "state": "compacted", "role": "user", "content": "x"}, {"seq": 4, "role": "system"}]
    bring(store, {"id": "gaps/../in\nnumbers", "source": "foreign", "messages": messages[::-1]})
    return store


# Out


def test_a_line_holds_every_column_and_every_message_in_every_state(rich: Store) -> None:
    data = json.loads(export(rich, "a"))
    session = found(rich, "a")
    assert {name: data[name] for name in Session._fields} == session._asdict()
    assert data["tags"] == ["work", "été", "\U0010ffff"]
    rows = rich.read(ME, lambda tx: tx.messages.of("a", every_state=True))
    assert [(one["seq"], one["state"], one.get("content")) for one in data["messages"]] == [
        (row.seq, row.state, row.original) for row in rows
    ]
    assert not {"id", "session_id"} & set().union(*data["messages"])


def test_a_line_and_an_object_say_the_same(rich: Store) -> None:
    for line in lines(export(rich)):
        data = json.loads(line)
        assert rich.read(ME, export_session, data["id"]) == data


def test_an_export_is_one_printable_line_for_each_session(rich: Store) -> None:
    text = export(rich)
    count = rich.read(ME, lambda tx: tx.sessions.count(Filter(archived=None, tips_only=False)))
    assert text.count("\n") == count == len(lines(text))
    assert text.endswith("\n")
    assert not {character for character in text if ord(character) < 32 or 127 <= ord(character) < 160} - {"\n"}
    assert "\u202e" not in text
    assert "\U000e0041" not in text


def test_the_oldest_comes_first_and_the_same_store_says_the_same_twice(store: Store) -> None:
    for name, at in (("late", 3.0), ("b", 1.0), ("a", 1.0), ("early", -5.0)):
        begin(store, name, started_at=at)
    assert [json.loads(line)["id"] for line in lines(export(store))] == ["early", "a", "b", "late"]
    assert export(store) == export(store)


def test_an_export_may_be_of_some_sources_or_some_sessions(store: Store) -> None:
    for name, source in (("a", "cli"), ("b", "telegram"), ("c", "slack")):
        begin(store, name, source=source)
    pieces: list[str] = []
    told: list[int] = []
    assert store.read(ME, export_lines, pieces.append, ("cli", "slack"), advance=told.append) == 2
    assert [json.loads(line)["id"] for line in lines("".join(pieces))] == ["a", "c"]
    assert told == [1, 1]
    assert [json.loads(line)["id"] for line in lines(export(store, "c", "b"))] == ["c", "b"]
    with pytest.raises(SessionNotFound):
        export(store, "nobody")


def test_an_empty_store_exports_nothing(store: Store) -> None:
    assert export(store) == ""


def test_long_sessions_and_many_sessions_are_exported_whole(store: Store, other: Store) -> None:
    def work(tx: Transaction) -> None:
        create_session(tx, Session("long", "cli"))
        for number in range(1001):
            append_message(tx, "long", draft("user", str(number), 1.0))
        for number in range(1001):
            create_session(tx, Session(f"{number:04}", "cli", started_at=float(number // 500)))

    store.write(ME, work)
    text = export(store)
    assert len(lines(text)) == 1002
    assert [one["content"] for one in json.loads(export(store, "long"))["messages"]] == [str(n) for n in range(1001)]
    portable = [from_json(line) for line in lines(text)]

    def bring_many(tx: Transaction) -> None:
        for one in portable:
            import_session(tx, one, on_conflict=OnConflict.SKIP, now=1.0)

    other.write(ME, bring_many)
    assert export(other) == text


@pytest.mark.parametrize(
    ("scope", "shown"),
    [(BOB, {"bob's", "lane, first day", "lane, second day"}), (CAROL, {"carol's"}), (ROOM, {"in a room"})],
    ids=["a person", "another person", "a room"],
)
def test_an_export_holds_only_what_one_may_see(rich: Store, scope: Scope, shown: set[str]) -> None:
    assert {json.loads(line)["id"] for line in lines(export(rich, scope=scope))} == shown
    for read in (lambda: export(rich, "a", scope=scope), lambda: rich.read(scope, export_session, "a")):
        with pytest.raises(SessionNotFound):
            read()


@pytest.mark.parametrize("cost", [float("inf"), float("-inf"), float("nan")])
def test_whatever_was_counted_can_be_exported(store: Store, cost: float) -> None:
    begin(store, "a")
    with suppress(ValueError):  # refusing it is as good
        store.write(ME, add_usage, "a", Usage(estimated_cost_usd=cost), Billing(), 1.0)
    assert json.loads(export(store))["id"] == "a"


# Usage


def entries(store: Store, name: str) -> list[Spent]:
    return store.read(ME, lambda tx: tx.ledger.of(name))


def test_a_line_says_what_each_call_used(rich: Store) -> None:
    data = json.loads(export(rich, "a"))
    assert data["usage"] == rich.read(ME, export_session, "a")["usage"]
    assert data["usage"][1] == {
        "at": 2.5, "purpose": "title", "model": "\u202em", "provider": "p", "api_call_count": 1, "input_tokens": 7,
        "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0,
    }  # fmt: skip
    assert "usage" not in json.loads(export(rich, "sub"))
    assert "usage" not in rich.read(ME, export_session, "sub")


def test_what_each_call_used_comes_in_as_it_was(rich: Store, other: Store) -> None:
    bring_all(other, export(rich))
    assert entries(other, "a") == entries(rich, "a")
    assert len(entries(other, "a")) == 3


def test_sums_without_calls_are_one_entry_at_the_last_activity(rich: Store, other: Store) -> None:
    data = json.loads(export(rich, "a"))
    del data["usage"]
    bring(other, data)
    (entry,) = entries(other, "a")
    session = found(rich, "a")
    assert (entry.at, entry.purpose, entry.model) == (session.last_active_at, "import", session.model)
    assert used_in(entry) == used_by(session)
    again = export(other)
    assert bring(other, data).outcome is Outcome.UNCHANGED
    assert bring_all(other, again) == [Outcome.UNCHANGED]
    assert export(other) == again


def test_what_the_sums_have_more_than_the_calls_is_one_more_entry(store: Store) -> None:
    call = {"at": 1, "purpose": "answer", "input_tokens": 3}
    data = {"id": "x", "source": "s", "input_tokens": 5, "estimated_cost_usd": 0.5, "usage": [call]}
    bring(store, data)
    assert [(one.purpose, one.input_tokens, one.estimated_cost_usd) for one in entries(store, "x")] == [
        ("answer", 3, None),
        ("import", 2, 0.5),
    ]
    assert bring(store, data).outcome is Outcome.UNCHANGED


def test_a_copy_and_what_comes_back_from_the_trash_have_their_calls(rich: Store) -> None:
    before = entries(rich, "a")
    data = json.loads(export(rich, "a")) | {"cwd": "elsewhere"}
    copy = bring(rich, data, OnConflict.COPY).session_id
    assert entries(rich, copy) == [one._replace(session_id=copy) for one in before]
    bring(rich, data, OnConflict.REPLACE)
    assert entries(rich, "a") == before


@pytest.mark.parametrize(
    "usage",
    [
        5, {}, [5], [{}], [{"at": 1}], [{"purpose": "answer"}], [{"at": "x", "purpose": "answer"}],
        [{"at": 1, "purpose": "answer", "input_tokens": 1.5}], [{"at": 1, "purpose": "answer", "input_tokens": "1"}],
        [{"at": 1e300, "purpose": "answer"}], [{"at": 1, "purpose": ""}], [{"at": 1, "purpose": 5}],
        [{"at": 1, "purpose": "answer", "estimated_cost_usd": float("inf")}],
        [{"at": 1, "purpose": "answer", "estimated_cost_usd": 1e300}],
        [{"at": 1, "purpose": "answer", "input_tokens": 2**62}],
    ],
)  # fmt: skip
def test_usage_that_cannot_be_is_refused(store: Store, usage: Any) -> None:
    with pytest.raises(InvalidSession):
        bring(store, {"id": "x", "source": "s", "usage": usage})
    assert export(store) == ""


def test_what_an_entry_has_no_place_for_is_reported(store: Store) -> None:
    usage = [{"at": 1, "purpose": "new one", "colour": "red", "model": None}]
    imported = bring(store, {"id": "x", "source": "s", "usage": usage})
    assert imported.notes == ("fields this version does not know were left out: usage.colour",)
    assert entries(store, "x")[0].purpose == "new one"


# In, and out again


def test_a_store_comes_back_to_the_byte_in_an_empty_one(rich: Store, other: Store) -> None:
    text = export(rich)
    assert set(bring_all(other, text)) == {Outcome.ADDED}
    assert export(other) == text


def test_a_store_comes_back_to_the_byte_in_whatever_order(rich: Store, other: Store) -> None:
    text = export(rich)
    for line in reversed(lines(text)):
        assert bring(other, line).notes == ()
    assert export(other) == text


def test_a_store_comes_back_to_the_byte_among_a_thousand_others(rich: Store, other: Store) -> None:
    def thousand(tx: Transaction) -> None:
        for number in range(1000):
            create_session(tx, Session(f"theirs {number}", "cli", started_at=float(number), title=f"theirs #{number}"))
            append_message(tx, f"theirs {number}", draft("user", f"hello {number}", 1.0))

    other.write(ME, thousand)
    before, text = lines(export(other)), lines(export(rich))
    assert {bring(other, line).outcome for line in text} == {Outcome.ADDED}
    after = lines(export(other))
    assert sorted(after) == sorted(before + text)


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
@pytest.mark.parametrize(
    "name", ["name", "content", "content_json", "role", "seq", "state", "timestamp", "extra", "id", "tool_name", "é"]
)
def test_an_unknown_field_comes_back_whatever_it_is_called(store: Store, other: Store, role: str, name: str) -> None:
    begin(store, "a")
    say(store, "a", "text", role, tool_name="terminal", tool_call_id="c1", extra={name: "unknown"})
    text = export(store)
    assert bring_all(other, text) == [Outcome.ADDED]
    assert export(other) == text


def test_what_came_in_reads_and_resolves_as_before(rich: Store, other: Store) -> None:
    bring_all(other, export(rich))
    for name in ("a", "b"):
        assert other.read(ME, find_tip, name) == "b"
        views = [store.read(ME, view_of, name) for store in (rich, other)]
        assert views[0] == views[1]
    say(rich, "b", "going on")
    say(other, "b", "going on")
    assert export(other, "b") == export(rich, "b")


def test_the_same_twice_is_unchanged(rich: Store) -> None:
    text = export(rich)
    assert set(bring_all(rich, text)) == {Outcome.UNCHANGED}
    assert export(rich) == text
    for policy in OnConflict:
        assert bring(rich, lines(text)[0], policy).outcome is Outcome.UNCHANGED
    assert export(rich) == text


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"id": "x", "source": "cli", "tags": ["b", "a", "b"]}, id="tags in another order"),
        pytest.param(
            {"id": "x", "source": "cli", "messages": [{"seq": 2, "role": "user"}, {"seq": 1, "role": "user"}]},
            id="messages in another order",
        ),
        pytest.param({"id": "x", "source": "cli", "colour": "red"}, id="a field that nobody knows"),
        pytest.param({"id": "x", "source": "cli", "messages": [{"role": "user", "colour": "red"}]}, id="in a message"),
        pytest.param({"id": "x", "source": "cli", "title": " two \n lines "}, id="a title to be cleaned"),
        pytest.param({"id": "x", "source": "cli", "message_count": 99}, id="a wrong count"),
        pytest.param({"id": "x", "source": "cli", "user_id": "\ud800", "tags": ["\ud800"]}, id="lone surrogates"),
    ],
)
def test_a_foreign_file_twice_is_unchanged(store: Store, data: dict[str, Any]) -> None:
    assert bring(store, data).outcome is Outcome.ADDED
    before = export(store)
    assert bring(store, data).outcome is Outcome.UNCHANGED
    assert export(store) == before


@pytest.mark.parametrize("policy", list(OnConflict))
def test_what_had_to_be_adjusted_is_not_brought_in_again(store: Store, policy: OnConflict) -> None:
    begin(store, "here", "my project")
    data = {"id": "x", "source": "cli", "title": "my project"}
    bring(store, data)
    before = export(store)
    bring(store, data, policy)
    assert export(store) == before


def test_a_persons_import_twice_is_unchanged(rich: Store, other: Store) -> None:
    line = export(rich, "a")
    assert bring(other, line, scope=BOB).outcome is Outcome.ADDED
    assert bring(other, line, scope=BOB).outcome is Outcome.UNCHANGED


def test_reading_an_object_leaves_it_as_it_is(store: Store) -> None:
    message = {"role": "user", "content": [{"type": "text"}], "extra": {"kept": 1}, "colour": "red"}
    data = {"id": "x", "source": "cli", "tags": ["b"], "messages": [message]}
    before = deepcopy(data)
    bring(store, data)
    assert data == before


words = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
times = st.floats(0, 4e9)
foreign_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": json_values,
        "state": st.sampled_from(["live", "undone", "compacted"]),
        "timestamp": times | st.integers(0, 4 * 10**9),
        "tool_calls": json_values,
        "token_count": st.none() | st.integers(0, 2**63 - 1),
        "reasoning": st.none() | words,
        "extra": st.none() | st.dictionaries(words, json_values, max_size=2),
        "finish_reason": words,
    },
)
foreign_sessions = st.fixed_dictionaries(
    {"source": words.filter(bool)},
    optional={
        "title": words,
        "started_at": times,
        "ended_at": st.none() | times,
        "input_tokens": st.integers(0, 10**15),
        "estimated_cost_usd": st.none() | st.floats(0, 1e6) | st.integers(0, 100),
        "tags": st.lists(words, max_size=3, unique=True).map(sorted),
        "messages": st.lists(foreign_messages, max_size=4),
        "system_prompt": words,
        "parent_session_id": st.just("somebody"),
    },
)


@given(data=foreign_sessions)
@examples(30, in_torture=300, suppress_health_check=SHARED_STORE)
def test_whatever_can_come_in_comes_out_as_it_came(store: Store, data: dict[str, Any]) -> None:
    number = store.read(ME, lambda tx: tx.sessions.count(Filter(archived=None, tips_only=False)))
    data |= {"id": f"session {number}", "title": f"{number} {data.get('title', '')}"}
    expected = dated(from_mapping(data), 500.0)
    bring(store, data)
    line = export(store, data["id"])
    assert from_json(line) == expected
    assert bring(store, line).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(("said", "stored"), [(True, 1), (1, 1), (False, 0), (0, 0)])
def test_true_and_false_are_words_of_an_export_and_numbers_of_older_ones(
    store: Store, said: object, stored: int
) -> None:
    bring(store, {"id": "marked", "source": "cli", "archived": said, "pinned": said})
    session = store.read(ME, get_session, "marked")
    assert (repr(session.archived), repr(session.pinned)) == (str(stored), str(stored))
    exported = json.loads(export(store, "marked"))
    assert (exported["archived"] is bool(stored), exported["pinned"] is bool(stored)) == (True, True)


def test_little_is_enough(store: Store) -> None:
    messages = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": " how it\nbegan ", "timestamp": 7},
        {"role": "assistant", "tool_calls": CALLS, "timestamp": 9.5},
        {"role": "user", "content": "undone", "state": "undone", "timestamp": 11},
    ]
    bring(store, {"id": "x", "source": "cron", "messages": messages})
    session = found(store, "x")
    assert (session.kind, session.principal, session.agent) == ("automation", "owner", "main")
    assert (session.last_active_at, session.first_line) == (11.0, "how it began")
    assert (session.message_count, session.tool_call_count) == (3, 1)
    seqs = store.read(ME, lambda tx: [message.seq for message in tx.messages.of("x", every_state=True)])
    assert seqs == [1, 2, 3, 4]


def times_of(store: Store, name: str) -> list[float]:
    return store.read(ME, lambda tx: [message.timestamp for message in tx.messages.of(name, every_state=True)])


@pytest.mark.parametrize(
    ("fields", "given", "began", "expected"),
    [
        ({}, [None, None], 500.0, [500.0, 500.0]),
        ({}, [], 500.0, []),
        ({"started_at": 7}, [None, 9.0, None], 7.0, [7.0, 9.0, 9.0]),
        ({}, [None, 8, None], 8.0, [8.0, 8.0, 8.0]),
        ({"ended_at": 30.5}, [None], 30.5, [30.5]),
        ({"usage": [{"at": 12.0, "purpose": "answer"}]}, [None], 12.0, [12.0]),
        ({"started_at": 0}, [None, 0], 0.0, [0.0, 0.0]),
        ({"input_tokens": 5}, [None], 500.0, [500.0]),
    ],
)
def test_what_came_without_a_time_gets_the_one_nearest_to_it(
    store: Store, fields: dict[str, Any], given: list[float | None], began: float, expected: list[float]
) -> None:
    said = [{"role": "user", "content": "hi"} | ({} if at is None else {"timestamp": at}) for at in given]
    data = {"id": "x", "source": "cli", **fields, "messages": said}
    bring(store, data)
    session = found(store, "x")
    assert (session.started_at, times_of(store, "x")) == (began, expected)
    assert all(entry.at >= began for entry in store.read(ME, lambda tx: tx.ledger.of("x")))


@pytest.mark.parametrize("on_conflict", list(OnConflict))
def test_what_came_without_a_time_comes_in_once(store: Store, on_conflict: OnConflict) -> None:
    data = {"id": "x", "source": "cli", "input_tokens": 3, "messages": [{"role": "user", "timestamp": None}]}
    for now, outcome in ((500.0, Outcome.ADDED), (600.0, Outcome.UNCHANGED)):
        done = store.write(ME, import_session, from_mapping(data), on_conflict=on_conflict, now=now)
        assert (done.outcome, times_of(store, "x")) == (outcome, [500.0])


STORY: list[dict[str, Any]] = [
    {"id": "a", "messages": [{"role": "user", "content": "how it began", "timestamp": 1}]},
    {"id": "b", "parent_session_id": "a", "messages": [{"seq": 0, "role": "user", "content": "A summary."}]},
    {
        "id": "c",
        "parent_session_id": "b",
        "messages": [
            {"seq": 0, "role": "user", "content": "A longer summary."},
            {"seq": 1, "role": "user", "content": "how it went on"},
        ],
    },
]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_every_part_that_comes_in_shows_how_its_conversation_began(store: Store, order: tuple[int, ...]) -> None:
    for _ in range(2):
        outcomes = [bring(store, {"source": "cli", "started_at": 1.0} | STORY[at]).outcome for at in order]
    assert outcomes == [Outcome.UNCHANGED] * 3
    assert [found(store, name).first_line for name in "abc"] == ["how it began"] * 3


def test_a_part_without_the_ones_before_it_shows_what_was_said_in_it(store: Store) -> None:
    bring(store, {"source": "cli", "started_at": 1.0} | STORY[2])
    assert found(store, "c").first_line == "how it went on"


def test_what_a_file_says_that_a_part_shows_stays(store: Store) -> None:
    for part in (STORY[0], STORY[1] | {"first_line": "chosen"}):
        bring(store, {"source": "cli", "started_at": 1.0} | part)
    assert found(store, "b").first_line == "chosen"


def test_the_counts_of_a_file_are_not_believed(store: Store) -> None:
    bring(store, {"id": "x", "source": "cli", "message_count": 99, "tool_call_count": 99})
    assert (found(store, "x").message_count, found(store, "x").tool_call_count) == (0, 0)


def test_fields_that_this_version_does_not_know_are_named(store: Store) -> None:
    report = bring(store, {"id": "x", "source": "cli", "mood": 1, "colour": 2})
    assert any("colour, mood" in note for note in report.notes)


# Conflicts


CHANGED = {"id": "a", "source": "cli", "title": "theirs", "messages": [{"role": "user", "content": "theirs"}]}


@pytest.fixture
def conflict(store: Store) -> Store:
    begin(store, "a", "ours")
    say(store, "a", "ours")
    store.write(ME, lambda tx: tx.sessions.tag("a", ["ours"]))
    return store


def test_a_conflict_may_be_passed_over(conflict: Store) -> None:
    before = export(conflict)
    report = bring(conflict, CHANGED, OnConflict.SKIP)
    assert (report.session_id, report.outcome, report.messages, len(report.notes)) == ("a", Outcome.SKIPPED, 0, 1)
    assert export(conflict) == before


def test_a_conflict_may_replace_what_is_here_which_goes_into_the_trash(conflict: Store) -> None:
    before = export(conflict)
    report = bring(conflict, CHANGED, OnConflict.REPLACE)
    assert (report.session_id, report.outcome, report.messages) == ("a", Outcome.REPLACED, 1)
    assert (found(conflict, "a").title, texts(conflict, "a")) == ("theirs", ["theirs"])
    assert conflict.read(ME, lambda tx: tx.sessions.tags(["a"])) == {}
    (kept,) = conflict.read(ME, trash_before)
    assert conflict.read(ME, lambda tx: tx.trash.payload(kept)) + "\n" == before


def test_every_version_that_was_replaced_is_in_the_trash(conflict: Store) -> None:
    bring(conflict, CHANGED, OnConflict.REPLACE)
    bring(conflict, CHANGED | {"title": "third"}, OnConflict.REPLACE)
    assert {entry.title for entry in conflict.read(ME, trash_before)} == {"ours", "theirs"}


def test_a_session_that_is_replaced_may_keep_its_title(conflict: Store) -> None:
    report = bring(conflict, CHANGED | {"title": "ours"}, OnConflict.REPLACE)
    assert report.notes == ()
    assert found(conflict, "a").title == "ours"


def test_a_conflict_may_come_in_as_a_copy(conflict: Store) -> None:
    before = export(conflict, "a")
    report = bring(conflict, CHANGED | {"tags": ["x"]}, OnConflict.COPY)
    copy = report.session_id
    assert (report.outcome, report.messages) == (Outcome.COPIED, 1)
    assert copy != "a"
    assert export(conflict, "a") == before
    assert texts(conflict, copy) == ["theirs"]
    assert conflict.read(ME, lambda tx: tx.sessions.tags([copy])) == {copy: ["x"]}


def test_the_same_copy_twice_is_one_copy_and_another_is_another(conflict: Store) -> None:
    first = bring(conflict, CHANGED, OnConflict.COPY).session_id
    before = export(conflict)
    assert bring(conflict, CHANGED, OnConflict.COPY) == Imported(first, Outcome.UNCHANGED, 1)
    assert export(conflict) == before
    second = bring(conflict, CHANGED | {"model": "another"}, OnConflict.COPY).session_id
    assert len({"a", first, second}) == 3


@pytest.mark.parametrize("name", ["y" * 200, "語" * 200, "a/b"])
def test_a_copy_of_a_long_id_has_an_id_too(store: Store, name: str) -> None:
    begin(store, name)
    copy = bring(store, {"id": name, "source": "telegram"}, OnConflict.COPY).session_id
    assert found(store, copy).source == "telegram"
    assert found(store, name).source == "cli"


@pytest.mark.parametrize("policy", [OnConflict.REPLACE, OnConflict.COPY])
def test_the_lane_of_a_session_that_came_in_twice_goes_on(store: Store, policy: OnConflict) -> None:
    arrive(store, "a")
    data = store.read(ME, export_session, "a") | {"messages": [{"role": "user", "content": "theirs"}]}
    bring(store, data, policy)
    for minutes in (1, 3000):
        assert found(store, arrive(store, f"fresh {minutes}", at=NOON + timedelta(minutes=minutes))).is_open


def test_a_title_that_is_taken_gets_a_number(store: Store) -> None:
    begin(store, "here", "my project")
    report = bring(store, {"id": "x", "source": "cli", "title": "my  project"})
    assert (found(store, "x").title, found(store, "x").title_source) == ("my project #2", "import")
    assert found(store, "here").title == "my project"
    (note,) = report.notes
    assert "my project" in note
    assert "my project #2" in note


def test_a_title_that_somebody_else_has_is_free(store: Store) -> None:
    begin(store, "bob's", "my project", BOB)
    bring(store, {"id": "x", "source": "cli", "title": "my project"})
    assert found(store, "x").title == "my project"


def test_an_over_long_title_is_shortened(store: Store) -> None:
    bring(store, {"id": "x", "source": "cli", "title": "x" * 300})
    assert found(store, "x").title == "x" * 100


def test_an_open_session_of_a_lane_that_goes_on_here_comes_in_as_ended(store: Store) -> None:
    arrive(store, "here")
    report = bring(store, {"id": "x", "source": "telegram", "lane_key": LANE, "principal": "telegram:1"})
    session = found(store, "x")
    assert (session.ended_at, session.end_reason, session.lane_key) == (500.0, "import", LANE)
    assert found(store, "here").is_open
    assert len(report.notes) == 1
    assert arrive(store, "fresh", at=NOON + timedelta(minutes=1)) == "here"


def test_two_open_sessions_of_one_lane_in_one_file_leave_one_open(store: Store) -> None:
    for name in ("x", "y"):
        bring(store, {"id": name, "source": "telegram", "lane_key": LANE})
    assert [found(store, name).is_open for name in ("x", "y")] == [True, False]


def test_an_ended_session_of_a_lane_comes_in_as_it_is(store: Store) -> None:
    arrive(store, "here")
    assert bring(store, {"id": "x", "source": "telegram", "lane_key": LANE, "ended_at": 5.0}).notes == ()
    assert found(store, "x").ended_at == 5.0


# Who


@pytest.mark.parametrize(
    ("scope", "principal", "audience"),
    [
        pytest.param(ME, "telegram:9", "somewhere", id="the owner brings in what is whoever's"),
        pytest.param(BOB, "telegram:1", "", id="a person's become their own"),
        pytest.param(ROOM, "room", "room", id="a room's become its own"),
    ],
)
def test_what_comes_in_belongs_to_who_brings_it(store: Store, scope: Scope, principal: str, audience: str) -> None:
    bring(store, {"id": "x", "source": "cli", "principal": "telegram:9", "audience": "somewhere"}, scope=scope)
    assert (found(store, "x").principal, found(store, "x").audience) == (principal, audience)


@pytest.mark.parametrize("policy", list(OnConflict))
def test_nobody_replaces_or_reads_what_is_not_theirs(store: Store, policy: OnConflict) -> None:
    begin(store, "mine", "my project")
    say(store, "mine", "my words")
    before = export(store)
    with pytest.raises(InvalidSession):
        bring(store, {"id": "mine", "source": "cli"}, policy, BOB)
    assert export(store) == before


def test_a_lane_that_goes_on_for_somebody_else_is_no_trouble(store: Store) -> None:
    arrive(store, "carol's", chat="2")
    before = export(store)
    with suppress(InvalidSession):  # refusing it is as good
        bring(store, {"id": "x", "source": "telegram", "lane_key": "agent:main:telegram:dm:2"}, scope=BOB)
    assert export(store, "carol's") == before


@pytest.mark.parametrize("who", [BOB, ME], ids=["by that person", "by the owner, from a file of that person's"])
@pytest.mark.parametrize("known", [False, True], ids=["a lane to be", "a lane that is there"])
def test_nobody_catches_another_persons_messages_by_claiming_their_lane(store: Store, who: Scope, known: bool) -> None:
    if known:
        store.write(ME, end_session, arrive(store, "before", chat="2"), "user_exit", NOON.timestamp())
    trap = {"id": "trap", "source": "telegram", "lane_key": "agent:main:telegram:dm:2", "principal": "telegram:1"}
    with suppress(InvalidSession):  # refusing it is as good
        bring(store, trap | {"last_active_at": NOON.timestamp()}, scope=who)
    name = arrive(store, "fresh", chat="2", at=NOON + timedelta(minutes=1))
    assert found(store, name).principal == "telegram:2"


# What cannot come in


GOOD: dict[str, Any] = {"id": "x", "source": "cli"}
DEEP: Any = []
for _ in range(20_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="nothing"),
        pytest.param("nonsense", id="no JSON"),
        pytest.param('{"id":"x","source":"cli"', id="cut off"),
        pytest.param('{"id":"x","source":"cli"}{}', id="two objects"),
        pytest.param(b'{"id":"\xff","source":"cli"}', id="no UTF-8"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="a list"),
        pytest.param('"x"', id="a text"),
        pytest.param("5", id="a number"),
        pytest.param('{"id":"x","source":"cli","id":"x"}', id="a repeated key"),
        pytest.param(
            '{"id":"x","source":"cli","messages":[{"role":"user","role":"user"}]}', id="repeated in a message"
        ),
        pytest.param('{"id":"x","source":"cli","tags":[],"tags":["y"]}', id="repeated with another value"),
        pytest.param('{"id":"x","source":"cli","messages":' + "[" * 100_000, id="nested too deeply"),
        pytest.param('{"a":' * 100_000, id="objects nested too deeply"),
        pytest.param('{"id":"x","source":"cli","input_tokens":' + "9" * 5000 + "}", id="thousands of digits"),
        pytest.param('{"id":"x","source":"cli","input_tokens":9223372036854775808}', id="a huge integer"),
        pytest.param('{"id":"x","source":"cli","started_at":1' + "0" * 400 + "}", id="a huge time"),
        pytest.param('{"id":"x","source":"cli","started_at":NaN}', id="not a number"),
        pytest.param('{"id":"x","source":"cli","started_at":1e999}', id="infinity"),
        pytest.param('{"id":"x","source":"cli","messages":[{"role":"user","timestamp":-Infinity}]}', id="no time"),
        pytest.param(
            '{"id":"x","source":"cli","messages":[{"role":"user","content":NaN}]}', id="content that is no JSON"
        ),
    ],
)
def test_a_line_that_is_no_session_is_refused(store: Store, line: str | bytes) -> None:
    begin(store, "here")
    before = export(store)
    with pytest.raises(InvalidSession):
        bring(store, line)
    assert export(store) == before


@pytest.mark.parametrize(
    "part",
    [
        {"id": None},
        {"id": ""},
        {"id": 5},
        {"id": ["x"]},
        {"id": True},
        {"id": "y" * 201},
        {"source": None},
        {"source": ""},
        {"source": 5},
        {"segue_session": 2},
        {"segue_session": "1"},
        {"segue_session": None},
        {"started_at": "yesterday"},
        {"started_at": True},
        {"started_at": []},
        {"started_at": float("nan")},
        {"started_at": float("inf")},
        {"started_at": float("-inf")},
        {"started_at": 1e300},
        {"started_at": -1e300},
        {"started_at": 10**400},
        {"ended_at": "x"},
        {"ended_at": float("nan")},
        {"last_active_at": {}},
        {"last_active_at": float("inf")},
        {"estimated_cost_usd": "free"},
        {"estimated_cost_usd": float("inf")},
        {"estimated_cost_usd": 10**400},
        {"input_tokens": 1.5},
        {"input_tokens": "1"},
        {"input_tokens": True},
        {"input_tokens": 2**63},
        {"input_tokens": -(2**64)},
        {"message_count": "many"},
        {"archived": 1.0},
        {"archived": "yes"},
        {"archived": 7},
        {"pinned": -1},
        {"kind": "nonsense"},
        {"kind": 5},
        {"title": 5},
        {"title": ["x"]},
        {"principal": 5},
        {"lane_key": {}},
        {"kept_seq": 1.5},
        {"parent_session_id": "x"},
        {"model_config": {"a": 1}},
        {"tags": "x"},
        {"tags": None},
        {"tags": {"x": 1}},
        {"tags": ["x", 5]},
        {"messages": None},
        {"messages": {}},
        {"messages": "x"},
        {"messages": 5},
        {1: "x", "y": 2},
    ],
    ids=lambda part: repr(part)[:60],
)
def test_a_session_with_a_malformed_field_is_refused(store: Store, part: dict[Any, Any]) -> None:
    begin(store, "here")
    before = export(store)
    with pytest.raises(InvalidSession):
        bring(store, GOOD | part)
    assert export(store) == before


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([5], id="a number"),
        pytest.param([None], id="nothing"),
        pytest.param([[]], id="a list"),
        pytest.param(["x"], id="a text"),
        pytest.param([{}], id="no role"),
        pytest.param([{"role": None}], id="role nothing"),
        pytest.param([{"role": "operator"}], id="an unknown role"),
        pytest.param([{"role": ["user"]}], id="a list of roles"),
        pytest.param([{"role": "user", "seq": -1}], id="seq below zero"),
        pytest.param([{"role": "user", "seq": "1"}], id="seq a text"),
        pytest.param([{"role": "user", "seq": 1.0}], id="seq a float"),
        pytest.param([{"role": "user", "seq": True}], id="seq a flag"),
        pytest.param([{"role": "user", "seq": None}], id="seq nothing"),
        pytest.param([{"role": "user", "seq": 2**63}], id="seq huge"),
        pytest.param([{"role": "user", "seq": 2**63 - 1}], id="a seq that nothing could follow"),
        pytest.param([{"role": "user", "seq": [1]}], id="seq a list"),
        pytest.param([{"role": "user", "seq": 1}, {"role": "user", "seq": 1}], id="a repeated seq"),
        pytest.param([{"role": "user", "seq": 2}, {"role": "user"}], id="a seq that meets a number"),
        pytest.param([{"role": "user", "state": "gone"}], id="an unknown state"),
        pytest.param([{"role": "user", "state": None}], id="no state"),
        pytest.param([{"role": "user", "state": 1}], id="state a number"),
        pytest.param([{"role": "user", "state": ["live"]}], id="a list of states"),
        pytest.param([{"role": "user", "state": {}}], id="state an object"),
        pytest.param([{"role": "user", "timestamp": "noon"}], id="time a text"),
        pytest.param([{"role": "user", "timestamp": True}], id="time a flag"),
        pytest.param([{"role": "user", "timestamp": []}], id="time a list"),
        pytest.param([{"role": "user", "timestamp": float("nan")}], id="time not a number"),
        pytest.param([{"role": "user", "timestamp": float("inf")}], id="time infinite"),
        pytest.param([{"role": "user", "timestamp": 10**400}], id="time huge"),
        pytest.param([{"role": "user", "timestamp": 1e300}], id="time in no calendar"),
        pytest.param([{"role": "user", "token_count": "5"}], id="tokens a text"),
        pytest.param([{"role": "user", "token_count": 1.5}], id="tokens a fraction"),
        pytest.param([{"role": "user", "token_count": True}], id="tokens a flag"),
        pytest.param([{"role": "user", "token_count": 2**63}], id="tokens huge"),
        pytest.param([{"role": "user", "reasoning": 5}], id="reasoning a number"),
        pytest.param([{"role": "tool", "tool_call_id": []}], id="a call id that is a list"),
        pytest.param([{"role": "user", "author": {}}], id="an author that is an object"),
        pytest.param([{"role": "user", "extra": "text", "colour": "red"}], id="extra a text"),
        pytest.param([{"role": "user", "extra": [1], "colour": "red"}], id="extra a list"),
        pytest.param([{"role": "user", "content": float("inf")}], id="content infinite"),
        pytest.param([{"role": "user", "content": DEEP}], id="content nested too deeply"),
        pytest.param([{"role": "user", "tool_calls": DEEP}], id="calls nested too deeply"),
        pytest.param([{"role": "user", "content": b"x"}], id="content bytes"),
        pytest.param([{"role": "user"}, {"role": "user", "colour": object()}], id="the second one"),
    ],
)
def test_a_session_with_a_malformed_message_is_refused(store: Store, messages: list[Any]) -> None:
    begin(store, "here")
    before = export(store)
    with pytest.raises(InvalidSession):
        bring(store, GOOD | {"messages": messages})
    assert export(store) == before


def test_an_import_that_fails_half_way_changes_nothing(rich: Store, other: Store) -> None:
    portable = from_json(export(rich, "a"))
    before = export(other)

    def work(tx: Transaction) -> None:
        import_session(tx, portable, on_conflict=OnConflict.SKIP, now=1.0)
        end_session(tx, "nobody", "x", 1.0)

    with pytest.raises(SessionNotFound):
        other.write(ME, work)
    assert export(other) == before
