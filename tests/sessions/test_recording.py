"""What is said becomes rows that come back equal, and the session's counters follow in the same transaction."""

from collections.abc import Mapping
from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st

from segue.core.errors import InvalidMessage, SegueError, SessionNotFound
from segue.core.messages import Message, decode, draft, draft_from
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.usage import Billing, Usage
from segue.ports.store import Store, Transaction
from segue.sessions.exporting import export_lines
from segue.sessions.finding import get_session
from segue.sessions.recording import (
    Appended,
    add_usage,
    append_message,
    clear_messages,
    keep_system_prompt,
    replace_messages,
    set_usage,
)
from segue.sessions.rewinding import restore_rewound
from segue.sessions.starting import create_session

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
ROOM = Scope(Principal("room"), Audience("room"))
CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"a": 1}'}},
    {"id": "call_2", "type": "function", "function": {"name": "web", "arguments": ""}, "unheard of": [1, None]},
]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}


@pytest.fixture(autouse=True)
def session(store: Store) -> Store:
    store.write(ME, create_session, Session("s", "cli", started_at=10.0))
    return store


def say(store: Store, text: Any, role: str = "user", at: float = 20.0, **fields: Any) -> Appended:
    return store.write(ME, append_message, "s", draft(role, text, at, **fields))


def messages(store: Store, *, every_state: bool = False) -> list[Message]:
    return store.read(ME, lambda tx: tx.messages.of("s", every_state=every_state))


def said(store: Store) -> list[Any]:
    return [message.original for message in messages(store)]


def row(store: Store) -> Session:
    return store.read(ME, get_session, "s")


def everything(store: Store) -> str:
    pieces: list[str] = []
    store.read(ME, export_lines, pieces.append)
    return "".join(pieces)


# What comes back


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("hello", id="text"),
        pytest.param("", id="empty text"),
        pytest.param(None, id="nothing"),
        pytest.param("  \r\n\ttrailing \n", id="white space"),
        pytest.param("a\x00b\x00", id="nul"),
        pytest.param("\x00", id="only a nul"),
        pytest.param("\u2400", id="the picture of a nul"),
        pytest.param("\x1b[31m\x07\x7f\x9b\u202e\u2028", id="control characters"),
        pytest.param("e\u0301 é 東京 한국 🙂 👨\u200d👩\u200d👧 \U0010ffff \ufffe", id="unicode"),
        pytest.param('{"looks": "like JSON"}', id="text that looks like JSON"),
        pytest.param("null", id="text that looks like nothing"),
        pytest.param([{"type": "text", "text": "what is this?"}, PICTURE], id="multimodal"),
        pytest.param([{"type": "text", "text": "nul \x00"}, {"type": "audio", "data": "\x00"}], id="nul in a part"),
        pytest.param([], id="no parts"),
        pytest.param(["a", ["b", {}], None, True, False, 0, -1.5, 2**70], id="parts of every type"),
        pytest.param({"type": "text", "text": "one part"}, id="an object"),
        pytest.param({}, id="an empty object"),
        pytest.param(0, id="zero"),
        pytest.param(False, id="false"),
        pytest.param(1.5, id="a number"),
    ],
)
def test_content_of_any_shape_comes_back_equal(store: Store, content: Any) -> None:
    say(store, content)
    (back,) = said(store)
    assert back == content
    assert type(back) is type(content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(content=json_values, extra=st.dictionaries(st.text(max_size=5), json_values, max_size=3))
@examples(30, in_torture=300, suppress_health_check=SHARED_STORE)
def test_whatever_json_can_say_comes_back_equal(store: Store, content: Any, extra: dict[str, Any]) -> None:
    seq = say(store, content, extra=extra).seq
    stored = store.read(ME, lambda tx: tx.messages.find_seq("s", seq))
    assert stored is not None
    assert stored.original == content
    assert decode(stored.extra) == extra


@pytest.mark.parametrize(
    ("content", "back"),
    [
        ("lone \ud800 here", "lone \ufffd here"),
        ("\udfff", "\ufffd"),
        ("both \ud83d\x00", "both \ufffd\x00"),
        ([{"type": "text", "text": "\udc00"}, {"\ud800": 1}], [{"type": "text", "text": "\ufffd"}, {"\ufffd": 1}]),
    ],
)
def test_a_lone_surrogate_is_replaced_wherever_it_stands(store: Store, content: Any, back: Any) -> None:
    say(store, content)
    assert said(store) == [back]


def test_ten_megabytes_of_tool_output_come_back_equal(store: Store) -> None:
    output = "".join(f"line {number}: é語🙂\x1b[0m\n" for number in range(400_000))
    assert len(output.encode()) > 10_000_000
    say(store, output, "tool", tool_call_id="call_1", tool_name="terminal")
    assert said(store) == [output]
    say(store, output + "\x00", "tool", tool_call_id="call_2", tool_name="terminal")
    assert said(store)[1] == output + "\x00"


def test_every_field_of_a_message_comes_back(store: Store) -> None:
    text = {
        "tool_call_id": "call_é",
        "tool_name": "terminal",
        "finish_reason": "stop",
        "reasoning": "think\nthink",
        "reasoning_content": "more 語",
        "provider": "anthropic",
        "author": "Zoë",
        "platform_message_id": "m:1",
    }
    structured = {
        "tool_calls": CALLS,
        "reasoning_details": [{"type": "thinking", "signature": "x" * 1000}],
        "codex_reasoning_items": [{"id": "rs_1", "encrypted_content": "\x00"}],
        "codex_message_items": [{"id": "msg_1", "phase": "final"}],
        "attachments": [{"name": "a.png", "sha256": "0"}],
        "extra": {"cache_control": {"type": "ephemeral"}, "n": None},
    }
    say(store, "hi", "assistant", at=12.125, token_count=7, **text, **structured)
    (message,) = messages(store)
    assert (message.timestamp, message.token_count, message.state, message.role) == (12.125, 7, "live", "assistant")
    assert {name: getattr(message, name) for name in text} == text
    assert {name: decode(getattr(message, name)) for name in structured} == structured


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi", "name": "zoe", "cache_control": {"type": "ephemeral"}},
        {"role": "assistant", "content": None, "refusal": "no", "audio": {"id": "a"}, "annotations": []},
        {"role": "system", "content": "x", "extra": {"kept": 1}, "unknown": {"deep": [1, {"er": None}]}},
    ],
)
def test_fields_nobody_has_heard_of_come_back(store: Store, message: Mapping[str, Any]) -> None:
    store.write(ME, append_message, "s", draft_from(message, 20.0))
    (stored,) = messages(store)
    unknown = {name: value for name, value in message.items() if name not in ("role", "content", "extra")}
    assert decode(stored.extra) == unknown | message.get("extra", {})


# Order


def test_order_is_the_order_of_saying_whatever_the_clock_says(store: Store) -> None:
    appended = [say(store, str(number), at=at) for number, at in enumerate([50.0, 10.0, 99.0, 10.0])]
    assert [one.seq for one in appended] == [1, 2, 3, 4]
    assert said(store) == ["0", "1", "2", "3"]
    assert [message.id for message in messages(store)] == [one.id for one in appended]


def test_every_session_counts_its_own_messages(store: Store) -> None:
    store.write(ME, create_session, Session("other", "cli"))
    say(store, "one")
    assert store.write(ME, append_message, "other", draft("user", "x", 1.0)).seq == 1
    assert say(store, "two").seq == 2


# Counters


def test_the_counters_follow_each_message(store: Store) -> None:
    steps: list[tuple[str, Any, float, Any, tuple[int, int, float, str]]] = [
        ("system", "be good", 11.0, None, (1, 0, 11.0, "")),
        ("assistant", "hello", 12.0, None, (2, 0, 12.0, "")),
        ("user", "  first\n question ", 13.0, None, (3, 0, 13.0, "first question")),
        ("assistant", None, 14.0, CALLS, (4, 2, 14.0, "first question")),
        ("tool", "done", 13.5, None, (5, 2, 14.0, "first question")),
        ("assistant", "and", 15.0, CALLS[:1], (6, 3, 15.0, "first question")),
        ("user", "second question", 9.0, None, (7, 3, 15.0, "first question")),
    ]
    for role, content, at, calls, expected in steps:
        say(store, content, role, at, tool_calls=calls)
        now = row(store)
        assert (now.message_count, now.tool_call_count, now.last_active_at, now.first_line) == expected


def test_the_counters_are_right_inside_the_transaction_that_adds_the_message(store: Store) -> None:
    def work(tx: Transaction) -> tuple[Session, int]:
        append_message(tx, "s", draft("user", "hello", 20.0, tool_calls=CALLS))
        return get_session(tx, "s"), tx.messages.count("s")

    session, count = store.write(ME, work)
    assert (session.message_count, session.tool_call_count, session.last_active_at) == (1, 2, 20.0)
    assert (session.first_line, count) == ("hello", 1)


@pytest.mark.parametrize(
    ("contents", "line"),
    [
        (["one two"], "one two"),
        (["a\r\n\tb\u2028c"], "a b c"),
        (["", "later"], "later"),
        (["   \n ", "later"], "later"),
        ([None, "later"], "later"),
        ([[PICTURE], "later"], "[image]"),
        ([[{"type": "text", "text": "look"}, PICTURE]], "look [image]"),
        (["x" * 500], "x" * 200),
        (["語" * 500], "語" * 200),
        (["nul \x00"], "nul \u2400"),
    ],
)
def test_the_first_line_is_the_beginning_of_what_a_person_first_said(
    store: Store, contents: list[Any], line: str
) -> None:
    for content in contents:
        say(store, content)
    assert row(store).first_line == line


@pytest.mark.parametrize("calls", [None, [], {"id": "not a list"}, "text", 5])
def test_only_a_list_of_calls_is_counted(store: Store, calls: Any) -> None:
    say(store, "x", "assistant", tool_calls=calls)
    assert row(store).tool_call_count == 0


# Failing


def test_a_message_for_nobody_is_refused(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        store.write(ME, append_message, "nobody", draft("user", "x", 1.0))
    assert store.read(ME, lambda tx: tx.messages.count()) == 0


@pytest.mark.parametrize("scope", [BOB, ROOM], ids=["a person", "a room"])
def test_nobody_writes_into_what_is_not_theirs(store: Store, scope: Scope) -> None:
    before = everything(store)
    for work in (
        lambda tx: append_message(tx, "s", draft("user", "x", 1.0)),
        lambda tx: replace_messages(tx, "s", []),
        lambda tx: clear_messages(tx, "s"),
        lambda tx: keep_system_prompt(tx, "s", "obey"),
        lambda tx: add_usage(tx, "s", Usage(input_tokens=1), Billing(), 1.0),
    ):
        with pytest.raises(SessionNotFound):
            store.write(scope, work)
    assert everything(store) == before


def test_an_append_that_fails_half_way_changes_nothing(store: Store) -> None:
    say(store, "before")
    before = everything(store)

    def work(tx: Transaction) -> None:
        append_message(tx, "s", draft("user", "lost", 99.0, tool_calls=CALLS))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.write(ME, work)
    assert everything(store) == before
    assert say(store, "after").seq == 2


DEEP: list[Any] = []
for _ in range(20_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("role", "content", "fields"),
    [
        pytest.param("operator", "x", {}, id="an unknown role"),
        pytest.param("user", b"bytes", {}, id="bytes"),
        pytest.param("user", [object()], {}, id="an object"),
        pytest.param("user", float("nan"), {}, id="not a number"),
        pytest.param("user", [float("inf")], {}, id="infinity"),
        pytest.param("user", DEEP, {}, id="content nested too deeply"),
        pytest.param("user", "x", {"extra": {"deep": DEEP}}, id="a field nested too deeply"),
        pytest.param("assistant", "x", {"tool_calls": [{1, 2}]}, id="calls that are no JSON"),
        pytest.param("assistant", "x", {"reasoning": ["x"]}, id="reasoning that is no text"),
        pytest.param("tool", "x", {"tool_call_id": 5}, id="a call id that is no text"),
        pytest.param("user", "x", {"colour": "red"}, id="an unknown column"),
        pytest.param("user", "x", {"token_count": "many"}, id="a number of tokens that is none"),
        pytest.param("user", "x", {"token_count": 1.5}, id="a part of a token"),
        pytest.param("user", "x", {"token_count": 2**63}, id="more tokens than a database can count"),
        pytest.param("user", "x", {"timestamp": float("nan")}, id="no time"),
        pytest.param("user", "x", {"timestamp": float("inf")}, id="the end of time"),
        pytest.param("user", "x", {"timestamp": 10**400}, id="a time too large to compare"),
        pytest.param("user", "x", {"timestamp": 1e300}, id="a time in no calendar"),
        pytest.param("user", "x", {"timestamp": "yesterday"}, id="a time in words"),
    ],
)
def test_a_message_that_cannot_be_given_back_is_refused(
    store: Store, role: str, content: Any, fields: dict[str, Any]
) -> None:
    before = everything(store)
    at = fields.get("timestamp", 20.0)
    with pytest.raises(InvalidMessage):
        say(store, content, role, at, **{name: value for name, value in fields.items() if name != "timestamp"})
    assert everything(store) == before


@pytest.mark.parametrize("depth", [10, 100, 300, 600, 900, 950, 980])
def test_nested_content_comes_back_equal_or_is_refused(store: Store, depth: int) -> None:
    content: Any = "core"
    for _ in range(depth):
        content = [content]
    try:
        say(store, content)
    except InvalidMessage:
        assert said(store) == []
        return
    (back,) = said(store)
    for _ in range(depth):
        assert isinstance(back, list)
        (back,) = back
    assert back == "core"
    assert everything(store).count("[") >= depth


# Clearing and replacing


def test_a_cleared_session_is_empty_and_has_lost_nothing(store: Store) -> None:
    first = say(store, "hello", at=30.0)
    say(store, None, "assistant", 31.0, tool_calls=CALLS)
    before = everything(store)
    assert store.write(ME, clear_messages, "s") == 2
    cleared = row(store)
    assert (cleared.message_count, cleared.tool_call_count, cleared.first_line) == (0, 0, "")
    assert cleared.last_active_at == 31.0
    assert said(store) == []
    assert [message.state for message in messages(store, every_state=True)] == ["undone", "undone"]
    assert store.write(ME, restore_rewound, "s", first.id) == 2
    assert everything(store) == before


def test_after_clearing_the_next_message_is_the_first_that_speaks(store: Store) -> None:
    say(store, "old")
    store.write(ME, clear_messages, "s")
    assert say(store, "new").seq == 2
    assert (row(store).message_count, row(store).first_line, said(store)) == (1, "new", ["new"])


def test_a_replaced_transcript_says_only_the_new_and_keeps_the_old(store: Store) -> None:
    say(store, "old question")
    say(store, "old answer", "assistant", tool_calls=CALLS)
    drafts = [draft("user", "new question", 40.0), draft("assistant", "new", 41.0, tool_calls=CALLS[:1])]
    assert store.write(ME, replace_messages, "s", drafts) == 2
    now = row(store)
    assert (now.message_count, now.tool_call_count, now.first_line) == (2, 1, "new question")
    assert said(store) == ["new question", "new"]
    old_and_new = [(message.seq, message.state) for message in messages(store, every_state=True)]
    assert old_and_new == [(1, "undone"), (2, "undone"), (3, "live"), (4, "live")]


def test_replacing_a_transcript_is_activity(store: Store) -> None:
    say(store, "old", at=20.0)
    store.write(ME, replace_messages, "s", [draft("user", "new", 40.0)])
    assert row(store).last_active_at == 40.0


def test_a_transcript_may_be_replaced_by_nothing(store: Store) -> None:
    say(store, "old")
    assert store.write(ME, replace_messages, "s", []) == 0
    assert (row(store).message_count, row(store).first_line) == (0, "")


@pytest.mark.parametrize("work", [lambda tx: clear_messages(tx, "x"), lambda tx: replace_messages(tx, "x", [])])
def test_there_must_be_something_to_clear(store: Store, work: Any) -> None:
    with pytest.raises(SessionNotFound):
        store.write(ME, work)


# Usage and prompt


NOT_SAID = Billing()


def use(store: Store, usage: Usage, billing: Billing = NOT_SAID, *, absolute: bool = False) -> Session:
    if absolute:
        store.write(ME, set_usage, "s", usage, billing, 1.0)
    else:
        store.write(ME, add_usage, "s", usage, billing, 1.0)
    return row(store)


def usage_of(session: Session) -> Usage:
    return Usage._make(getattr(session, name) for name in Usage._fields)


def test_usage_adds_up(store: Store) -> None:
    use(store, Usage(1, 2, 3, 4, 5, 1, 0.25, 0.5))
    assert usage_of(use(store, Usage(10, 20, 30, 40, 50, 1, 0.5, None))) == Usage(11, 22, 33, 44, 55, 2, 0.75, 0.5)


def test_an_unknown_cost_stays_unknown(store: Store) -> None:
    assert use(store, Usage(input_tokens=5)).estimated_cost_usd is None
    assert use(store, Usage(estimated_cost_usd=0.0)).estimated_cost_usd == 0.0


def test_totals_can_be_set(store: Store) -> None:
    use(store, Usage(1, 2, 3, 4, 5, 6, 0.25, 0.5))
    assert usage_of(use(store, Usage(7, 0, 0, 0, 0, 1, 0.125), absolute=True)) == Usage(7, 0, 0, 0, 0, 1, 0.125, 0.5)


def test_who_charges_is_kept_until_somebody_else_does(store: Store) -> None:
    known = Billing("m", "p", "https://u", "b", "s", "c", "v")
    use(store, Usage(), known)
    now = use(store, Usage(), Billing(cost_status="exact"))
    assert Billing._make(getattr(now, name) for name in Billing._fields) == known._replace(cost_status="exact")


@pytest.mark.parametrize("tokens", [2**63, -(2**64)])
def test_more_than_can_be_counted_is_refused(store: Store, tokens: int) -> None:
    before = row(store)
    with pytest.raises(SegueError):
        use(store, Usage(input_tokens=tokens))
    assert row(store) == before


def test_usage_is_no_activity(store: Store) -> None:
    before = row(store)
    assert use(store, Usage(input_tokens=1)) == before._replace(input_tokens=1)


@pytest.mark.parametrize("prompt", ["be good", "", "nul \x00 語\n" * 10_000])
def test_the_system_prompt_is_kept(store: Store, prompt: str) -> None:
    store.write(ME, keep_system_prompt, "s", prompt)
    assert row(store).system_prompt == prompt.replace("\x00", "␀")


@pytest.mark.parametrize(
    "work",
    [lambda tx: keep_system_prompt(tx, "x", "p"), lambda tx: add_usage(tx, "x", Usage(), Billing(), 1.0)],
    ids=["prompt", "usage"],
)
def test_facts_need_a_session_to_be_about(store: Store, work: Any) -> None:
    with pytest.raises(SessionNotFound):
        store.write(ME, work)
