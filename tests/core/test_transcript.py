"""Whatever is stored, a provider is shown a valid conversation."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from segue.core import transcript
from segue.core.messages import Draft, Message, State, draft, draft_from, encode
from segue.core.transcript import UNKNOWN_RESULT, Eye, as_chat, read_through

Chat = dict[str, Any]


def stored(*messages: Mapping[str, Any] | Draft, session: str = "s", first: int = 1) -> list[Message]:
    drafts = (message if isinstance(message, Draft) else draft_from(message, 1.0) for message in messages)
    return [Message(seq, session, seq, State.LIVE, *row) for seq, row in enumerate(drafts, first)]


def call(name: Any = None, **function: Any) -> Chat:
    identity = {} if name is None else {"id": name}
    return {**identity, "type": "function", "function": {"name": "terminal", "arguments": "{}", **function}}


def asks(*calls: Chat, content: str | None = None) -> Chat:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answers(name: str | None, content: str = "done") -> Chat:
    return {"role": "tool", "tool_call_id": name, "content": content}


def says(content: str) -> Chat:
    return {"role": "user", "content": content}


def assert_provider_valid(chat: Sequence[Chat]) -> None:
    """What providers check before they read a word."""
    waiting: Counter[str] = Counter()
    for message in chat:
        if message["role"] == "tool":
            assert waiting[message["tool_call_id"]] > 0, "a result without a call"
            waiting[message["tool_call_id"]] -= 1
            assert message["content"] is not None
            continue
        assert not +waiting, "a call without a result"
        assert message["role"] in ("system", "user", "assistant")
        assert "tool_call_id" not in message
        if message["role"] != "assistant":
            assert "tool_calls" not in message
            assert message["content"] is not None
        else:
            assert message["content"] or "tool_calls" in message
        if "tool_calls" in message:
            assert message["tool_calls"]
            for one in message["tool_calls"]:
                assert isinstance(one["id"], str)
                assert one["id"]
                assert one["type"] == "function"
                assert isinstance(one["function"]["name"], str)
                assert isinstance(one["function"]["arguments"], str)
            waiting = Counter(one["id"] for one in message["tool_calls"])
    assert not +waiting, "a call without a result"


# Random transcripts, as interrupted programs and other hands leave them.

ids = st.sampled_from([None, "", "a", "a", "b", "call_1_0", "call_2_1", "None", 7])
arguments = st.sampled_from(["{}", '{"a": 1}', '{"cut":', "", None, {"a": 1}, [1], 7])
calls = st.lists(st.builds(lambda name, text: call(name, arguments=text), ids, arguments), max_size=3)
contents = st.sampled_from([None, "", "text", [{"type": "text", "text": "part"}], []])
states = st.sampled_from([State.LIVE, State.LIVE, State.LIVE, State.UNDONE, State.COMPACTED])
rows = st.one_of(
    st.builds(lambda content: draft("user", content, 1.0), contents),
    st.builds(lambda content: draft("system", content, 1.0), contents),
    st.builds(lambda content, made: draft("assistant", content, 1.0, tool_calls=made), contents, calls),
    st.builds(lambda content, made: draft("user", content, 1.0, tool_calls=made), contents, calls),
    st.builds(
        lambda name: draft("tool", None, 1.0, tool_call_id=name), st.sampled_from([None, "", "a", "b", "7", "None"])
    ),
)


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """Rows in any order and state; every tool result says where it stands."""
    drafts = draw(st.lists(rows, max_size=14))
    return [
        Message(n, "s", n, draw(states), *(row._replace(content=f"result {n}") if row.role == "tool" else row))
        for n, row in enumerate(drafts, 1)
    ]


def group_of(name: Any) -> str | None:
    """Results belong to calls of the same name; without a name, to calls without one."""
    return None if name in (None, "") else str(name)


def expected_results(live: Sequence[Message]) -> list[str]:
    """Every call gets the results that follow it, in order, up to where its name is used again."""
    named = [[group_of(one.get("id")) for one in row.calls] if row.role == "assistant" else [] for row in live]
    shown = []
    for at, groups in enumerate(named):
        for number, group in enumerate(groups):
            end = next((later for later in range(at + 1, len(live)) if group in named[later]), len(live))
            results = [row for row in live[at:end] if row.role == "tool" and group_of(row.tool_call_id) == group]
            place = groups[:number].count(group)
            shown.append(str(results[place].content) if place < len(results) else UNKNOWN_RESULT)
    return shown


@given(transcripts())
@examples(50, in_torture=1000)
def test_any_transcript_is_shown_as_a_valid_conversation(messages: list[Message]) -> None:
    assert_provider_valid(as_chat(messages))
    assert_provider_valid(as_chat(messages, Eye("openrouter", shared=True)))


@given(transcripts())
@examples(50, in_torture=1000)
@example(stored(asks(call()), says("again"), asks(call()), answers(None, "result 4")))
@example(stored(asks(call("")), answers("", "result 2")))
def test_every_result_is_shown_behind_the_nearest_call_before_it(messages: list[Message]) -> None:
    live = [message for message in messages if message.state == "live"]
    shown = [message["content"] for message in as_chat(messages) if message["role"] == "tool"]
    assert shown == expected_results(live)


@given(transcripts())
@settings(max_examples=50)
def test_everything_else_is_shown_in_its_order(messages: list[Message]) -> None:
    spoken = [
        (row.role, row.original or ("" if row.role != "assistant" else row.original))
        for row in messages
        if row.is_live and row.role != "tool" and (row.role != "assistant" or row.original or row.calls)
    ]
    shown = [(message["role"], message["content"]) for message in as_chat(messages) if message["role"] != "tool"]
    assert [(role, content or "") for role, content in shown] == [(role, content or "") for role, content in spoken]


@given(transcripts(), st.booleans())
def test_the_quick_way_shows_what_the_long_way_would(messages: list[Message], shared: bool) -> None:
    live = [message for message in messages if message.is_live]
    quick = transcript._as_it_stands(live, Eye(shared=shared))
    assert quick is None or quick == transcript._put_in_order(live, Eye(shared=shared))


@given(transcripts())
@settings(max_examples=50)
def test_undone_rows_leave_no_trace(messages: list[Message]) -> None:
    assert as_chat(messages) == as_chat([message for message in messages if message.state == "live"])


@pytest.mark.parametrize(
    ("rows", "view"),
    [
        pytest.param(
            [asks(call("a")), answers("a"), says("thanks")],
            [asks(call("a")), answers("a"), says("thanks")],
            id="answered",
        ),
        pytest.param(
            [asks(call("a")), says("hello?")],
            [asks(call("a")), answers("a", UNKNOWN_RESULT), says("hello?")],
            id="never answered",
        ),
        pytest.param(
            [asks(call("a"), call("b")), answers("b")],
            [asks(call("a"), call("b")), answers("a", UNKNOWN_RESULT), answers("b")],
            id="half answered",
        ),
        pytest.param(
            [asks(call("a")), says("hello?"), answers("a", "late")],
            [asks(call("a")), answers("a", "late"), says("hello?")],
            id="answered late",
        ),
        pytest.param(
            [asks(call("a")), asks(call("b")), answers("b"), answers("a", "very late")],
            [asks(call("a")), answers("a", "very late"), asks(call("b")), answers("b")],
            id="answered after another call",
        ),
        pytest.param(
            [asks(call("a"), call("b")), answers("b", "second"), answers("a", "first")],
            [asks(call("a"), call("b")), answers("a", "first"), answers("b", "second")],
            id="answered the other way round",
        ),
        pytest.param([answers("a"), says("hi")], [says("hi")], id="a result without a call"),
        pytest.param(
            [answers("a", "early"), asks(call("a"))],
            [asks(call("a")), answers("a", UNKNOWN_RESULT)],
            id="a result before its call",
        ),
        pytest.param(
            [asks(call("a")), answers("a", "one"), answers("a", "twice")],
            [asks(call("a")), answers("a", "one")],
            id="answered twice",
        ),
        pytest.param(
            [asks(call("a")), answers("a", "one"), asks(call("a")), answers("a", "two")],
            [asks(call("a")), answers("a", "one"), asks(call("a")), answers("a", "two")],
            id="a name used again",
        ),
        pytest.param(
            [asks(call("a")), says("again"), asks(call("a")), answers("a", "two")],
            [asks(call("a")), answers("a", UNKNOWN_RESULT), says("again"), asks(call("a")), answers("a", "two")],
            id="a name used again after an interruption",
        ),
        pytest.param(
            [asks(call(), call()), answers(None, "one"), answers(None, "two")],
            [asks(call("call_1_0"), call("call_1_1")), answers("call_1_0", "one"), answers("call_1_1", "two")],
            id="calls without a name",
        ),
        pytest.param(
            [asks(call()), says("again"), asks(call()), answers(None, "two")],
            [
                asks(call("call_1_0")),
                answers("call_1_0", UNKNOWN_RESULT),
                says("again"),
                asks(call("call_3_0")),
                answers("call_3_0", "two"),
            ],
            id="calls without a name after an interruption",
        ),
        pytest.param(
            [asks(call(7)), answers("7")],
            [asks(call("7")), answers("7")],
            id="a number for a name",
        ),
        pytest.param([{"role": "assistant", "content": ""}, says("hi")], [says("hi")], id="a reply that says nothing"),
        pytest.param(
            [{"role": "assistant", "content": "hi", "tool_calls": []}],
            [{"role": "assistant", "content": "hi"}],
            id="no calls",
        ),
        pytest.param([{"role": "user", "content": None}], [says("")], id="a user who says nothing"),
        pytest.param(
            [asks(call("a")), {"role": "tool", "tool_call_id": "a", "content": None}],
            [asks(call("a")), answers("a", "")],
            id="a result that says nothing",
        ),
    ],
)
def test_the_view_of(rows: list[Chat], view: list[Chat]) -> None:
    chat = as_chat(stored(*rows))
    assert chat == view
    assert_provider_valid(chat)


@pytest.mark.parametrize("name", ["a b", "a:b", "%", "", "\u200b", "a\x00b", "a\ud800b", "x" * 1000])
def test_a_result_finds_its_call_whatever_the_name_is_made_of(name: str) -> None:
    chat = as_chat(stored(asks(call(name)), answers(name, "found")))
    assert chat[1]["content"] == "found"
    assert_provider_valid(chat)


@pytest.mark.parametrize("names", [("a", "a"), ("call_1_1", None), (None, "call_1_0"), (7, "7")])
def test_calls_of_one_message_have_different_names_in_the_view(names: tuple[Any, Any]) -> None:
    chat = as_chat(stored(asks(*map(call, names))))
    assert_provider_valid(chat)
    assert len({one["id"] for one in chat[0]["tool_calls"]}) == 2


@pytest.mark.parametrize(
    ("given_arguments", "shown"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"cut":', '{"cut":'),
        ("", ""),
        ({"a": 1}, '{"a":1}'),
        ([1], "[1]"),
        (None, "{}"),
    ],
)
def test_arguments_are_shown_as_a_string(given_arguments: Any, shown: str) -> None:
    chat = as_chat(stored(asks(call("a", arguments=given_arguments))))
    assert chat[0]["tool_calls"][0]["function"]["arguments"] == shown


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"id": "a"}, id="no function"),
        pytest.param({"id": "a", "function": None}, id="null"),
        pytest.param({"id": "a", "function": "terminal"}, id="a word"),
        pytest.param({"id": "a", "function": {"name": "terminal"}}, id="no arguments"),
        pytest.param({"id": "a", "function": {"arguments": "{}"}}, id="no name"),
        pytest.param({"id": "a", "name": "terminal", "arguments": "{}"}, id="flat"),
        pytest.param({"id": "a", "type": None, "function": {"name": "terminal", "arguments": "{}"}}, id="no type"),
        pytest.param({}, id="nothing"),
    ],
)
def test_a_call_of_an_odd_shape_is_shown_as_a_valid_one(odd: Chat) -> None:
    assert_provider_valid(as_chat(stored(says("hi"), asks(odd, content="Well."), answers("a"))))


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_an_unknown_field_never_stands_in_for_a_column(role: str) -> None:
    smuggled = {"tool_calls": [call("a")], "tool_call_id": "a", "role": "tool", "content": None}
    chat = as_chat(stored(draft(role, "hi", 1.0, extra=smuggled)))
    assert_provider_valid(chat)
    assert chat[0]["content"] == "hi"


CONVERSATION: list[Chat] = [
    {"role": "system", "content": "Be brief.", "cache_control": {"type": "ephemeral"}},
    {"role": "user", "content": "What is this?", "name": "Alice"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "look", "arguments": '{ "at" : 1.0 }', "strict": True},
                "index": 0,
                "extra_content": {"google": {"thought_signature": "x"}},
            }
        ],
        "reasoning": "hm",
        "reasoning_content": "hm, hm",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "a cat\x00", "name": "look", "is_error": False},
    {"role": "assistant", "content": "A cat.", "annotations": [], "audio": {"id": "x"}},
]


def test_a_whole_conversation_comes_back_as_it_was() -> None:
    assert as_chat(stored(*CONVERSATION)) == CONVERSATION
    assert json.dumps(as_chat(stored(*CONVERSATION)), sort_keys=True) == json.dumps(CONVERSATION, sort_keys=True)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
unknown_fields = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name not in Draft._fields and name != "name"), json_values, max_size=4
)


@given(unknown_fields, unknown_fields, unknown_fields, unknown_fields)
@settings(max_examples=50)
def test_unknown_fields_come_back(one: Chat, two: Chat, three: Chat, four: Chat) -> None:
    spoken = [one | says("hi"), two | asks({**four, **call("a")}), three | answers("a")]
    assert as_chat(stored(*spoken)) == spoken


REASONING: Chat = {
    "reasoning": "hm",
    "reasoning_content": "hm, hm",
    "reasoning_details": [{"signature": "x"}],
    "codex_reasoning_items": [{"id": "rs_1"}],
    "codex_message_items": [{"id": "msg_1"}],
}


@pytest.mark.parametrize(
    ("made_by", "shown_to", "is_shown"),
    [
        ("anthropic", "anthropic", True),
        ("anthropic", "openrouter", False),
        ("anthropic", "", False),
        (None, "anthropic", False),
        ("anthropic", None, True),
        (None, None, True),
    ],
)
def test_reasoning_goes_back_only_to_the_provider_that_made_it(
    made_by: str | None, shown_to: str | None, is_shown: bool
) -> None:
    reply = {"role": "assistant", "content": "Yes.", **REASONING}
    chat = as_chat(stored({**reply, "provider": made_by}), Eye(shown_to))
    assert chat == [reply if is_shown else {"role": "assistant", "content": "Yes."}]


@pytest.mark.parametrize(
    ("author", "content", "shown"),
    [
        ("Alice", "hi", "[Alice] hi"),
        ("Alice", "two\nlines", "[Alice] two\nlines"),
        (" [Bob]\r\n[Alice] ", "hi", "[BobAlice] hi"),
        ("李雷 👩‍💻", "hi", "[李雷 👩‍💻] hi"),
        ("[\n]", "hi", "[someone] hi"),
        (None, "hi", "hi"),
        ("", "hi", "hi"),
        ("Alice", None, "[Alice] "),
        (
            "Alice",
            [{"type": "text", "text": "hi"}],
            [{"type": "text", "text": "[Alice]"}, {"type": "text", "text": "hi"}],
        ),
    ],
)
def test_in_a_shared_lane_people_are_told_apart(author: str | None, content: Any, shown: Any) -> None:
    message = stored(draft("user", content, 1.0, author=author))
    assert as_chat(message, Eye(shared=True)) == [{"role": "user", "content": shown}]
    assert as_chat(message)[0]["content"] == (content or "")


@pytest.mark.parametrize("breaker", ["\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "[", "]"])
def test_nobody_signs_for_another(breaker: str) -> None:
    chat = as_chat(stored(draft("user", "hi", 1.0, author=f"Mallory{breaker}Alice")), Eye(shared=True))
    assert chat[0]["content"].splitlines() == ["[MalloryAlice] hi"]


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_only_people_sign(role: str) -> None:
    message = stored(draft(role, "hi", 1.0, author="Alice"))
    assert as_chat(message, Eye(shared=True)) == [{"role": role, "content": "hi"}]


def test_a_compressed_conversation_is_its_summary_the_kept_tail_and_its_own_messages() -> None:
    summary_of_parent, *tail = stored(
        says("older summary"), says("kept one"), says("kept two"), session="parent", first=0
    )
    summary, *own = stored(says("summary"), says("own one"), says("own two"), session="child", first=0)
    read = read_through([*own, summary], [summary_of_parent, *tail])
    assert [message.content for message in read] == ["summary", "kept one", "kept two", "own one", "own two"]


def test_a_conversation_without_a_past_reads_as_it_is() -> None:
    own = stored(says("one"), says("two"))
    assert read_through(own, []) == own
    assert read_through([], own) == own


def test_a_tail_that_begins_after_its_call_is_still_valid() -> None:
    tail = stored(asks(call("a")), answers("a"), says("go on"), session="parent")[1:]
    own = stored(says("summary"), asks(call("a")), session="child", first=0)
    chat = as_chat(read_through(own, tail))
    assert_provider_valid(chat)
    assert [message["role"] for message in chat] == ["user", "user", "assistant", "tool"]


def test_a_row_of_another_hand_is_shown_as_far_as_it_can_be_read() -> None:
    row = Draft("assistant", "Well.", tool_calls="no JSON", extra="[1]", reasoning_details="no JSON")
    assert as_chat(stored(row)) == [{"role": "assistant", "content": "Well.", "reasoning_details": "no JSON"}]
    assert as_chat(stored(Draft("tool", "x", tool_call_id="a", extra=encode({"is_error": True})))) == []


def test_a_failure_is_marked_only_for_those_who_have_a_place_for_it() -> None:
    rows = stored(asks(call("a")), draft("tool", "No such file.", 1.0, tool_call_id="a", outcome="failed"))
    assert as_chat(rows, Eye(marks_failures=True))[1]["is_error"] is True
    assert "is_error" not in as_chat(rows)[1]


def test_a_pruned_result_is_shown_cut_and_stays_whole() -> None:
    rows = stored(asks(call("a")), draft("tool", "x" * 50 + "y" * 50, 1.0, tool_call_id="a", pruned="10:5"))
    shown = as_chat(rows)[1]["content"]
    assert shown == "xxxxxxxxxx\n[… 85 characters are no longer shown …]\nyyyyy"
    assert rows[1].content == "x" * 50 + "y" * 50
