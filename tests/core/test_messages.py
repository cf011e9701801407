"""A message of any shape becomes a row of plain text and JSON, and comes back equal."""

import json
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from segue.core.errors import InvalidMessage
from segue.core.messages import Draft, Message, State, decode, draft, draft_from, encode, first_line_of, text_of

NASTY_TEXT = (
    "",
    "\x00",
    "a\x00b",
    "\u2400",
    "\ud800",
    "\udfff",
    "\x1b[31m",
    "\u2028",
    "👩‍💻",
    "{}",
    "[1]",
    "null",
    '"',
    "\\u0000",
)
texts = st.sampled_from(NASTY_TEXT) | st.text(st.characters(), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
MULTIMODAL = [{"type": "text", "text": "What is this?"}, PICTURE, {"type": "text", "text": "Look closely."}]


def stored(row: Draft, seq: int = 1) -> Message:
    return Message(seq, "s", seq, State.LIVE, *row)


def without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def test_a_stored_message_is_a_draft_with_its_place() -> None:
    assert Message._fields == ("id", "session_id", "seq", "state", *Draft._fields)


@given(json_values)
@examples(50, in_torture=750)
@example("a\x00b\ud800")
@example({"\x00": ["\x00", {"deep": "\ud800"}]})
@example(10**100)
@example(-0.0)
@example([])
@example({})
@example("")
def test_content_of_any_shape_comes_back_equal(content: Any) -> None:
    original = stored(draft("user", content, 1.0)).original
    assert json.dumps(original) == json.dumps(without_surrogates(content))


@given(json_values)
@settings(max_examples=60)
def test_every_column_is_something_a_database_can_hold(value: Any) -> None:
    row = draft("assistant", value, 1.0, extra={"x": value}, tool_calls=[value], tool_name="\x00\ud800", author="\x00")
    for column in row:
        assert column is None or isinstance(column, str | int | float)
        if isinstance(column, str):
            assert "\x00" not in column
            assert column.encode("utf-8").decode("utf-8") == column


@given(json_values)
@settings(max_examples=60)
def test_json_comes_back_equal(value: Any) -> None:
    assert decode(encode(value)) == without_surrogates(value)


@pytest.mark.parametrize(
    ("content", "text", "is_kept_beside"),
    [
        (None, None, False),
        ("", "", False),
        ("plain", "plain", False),
        ('{"looks": "like JSON"}', '{"looks": "like JSON"}', False),
        ("nul \x00 inside", "nul \u2400 inside", True),
        ("lone \ud800 half", "lone \ufffd half", False),
        (MULTIMODAL, "What is this?\n[image]\nLook closely.", True),
        ([], "", True),
        (7, "7", True),
        (True, "True", True),
        ({"type": "text", "text": "part"}, "part", True),
    ],
)
def test_the_text_of_a_row_is_what_people_read(content: Any, text: str | None, is_kept_beside: bool) -> None:
    row = draft("user", content, 1.0)
    assert row.content == text
    assert (row.content_json is not None) is is_kept_beside


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, None),
        ("as it is", "as it is"),
        ({"type": "text", "text": "part"}, "part"),
        ({"type": "input_text", "text": "part"}, "part"),
        (PICTURE, "[image]"),
        ({"type": "input_audio", "input_audio": {}}, "[audio]"),
        ({"type": "file"}, "[file]"),
        ({}, "[data]"),
        (["one", None, {"type": "text", "text": ""}, ["two"]], "one\ntwo"),
        (("one", "two"), "one\ntwo"),
        (1.5, "1.5"),
    ],
)
def test_in_words(content: Any, words: str | None) -> None:
    assert text_of(content) == words


@pytest.mark.parametrize("content", [float("nan"), [float("inf")], {"a": object()}, {1, 2}, b"bytes", {("a",): 1}])
def test_what_json_cannot_hold_is_refused(content: Any) -> None:
    with pytest.raises(InvalidMessage):
        draft("user", content, 1.0)
    with pytest.raises(InvalidMessage):
        draft("user", "text", 1.0, extra={"x": content})


def test_nesting_without_end_is_refused() -> None:
    bottomless: list[Any] = []
    for _ in range(50_000):
        bottomless = [bottomless]
    with pytest.raises(InvalidMessage):
        draft("user", "text", 1.0, extra=bottomless)
    with pytest.raises(InvalidMessage):
        draft("user", bottomless, 1.0)


@pytest.mark.parametrize("text", ["not JSON", "{", "", "[1,]", "[" * 100_000], ids=lambda text: text[:8])
def test_a_column_that_another_hand_wrote_comes_back_as_text(text: str) -> None:
    assert decode(text) == text


def test_no_column_is_no_value() -> None:
    assert decode(None) is None


@pytest.mark.parametrize(
    ("tool_calls", "calls"),
    [
        ('[{"id":"a"},{"id":"b"}]', [{"id": "a"}, {"id": "b"}]),
        ('[{"id":"a"},7,null,"x"]', [{"id": "a"}]),
        ('{"id":"a"}', []),
        ("no JSON", []),
        ("[]", []),
        (None, []),
    ],
)
def test_the_tool_calls_of_a_row(tool_calls: str | None, calls: list[Any]) -> None:
    assert stored(Draft("assistant", tool_calls=tool_calls)).calls == calls


@pytest.mark.parametrize(("state", "is_live"), [("live", True), ("undone", False), ("compacted", False)])
def test_whether_a_message_still_speaks(state: str, is_live: bool) -> None:
    assert stored(draft("user", "hi", 1.0))._replace(state=state).is_live is is_live


CALL = {"id": "a", "type": "function", "function": {"name": "terminal", "arguments": '{"x": 1}'}}


def test_a_message_in_chat_format_fills_its_columns() -> None:
    row = draft_from(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "finish_reason": "tool_calls",
            "reasoning": "hm",
            "reasoning_details": [{"signature": "x"}],
            "provider": "openrouter",
            "token_count": 12,
            "timestamp": 5.5,
            "refusal": None,
            "annotations": [1],
        },
        99.0,
    )
    assert decode(row.tool_calls) == [CALL]
    assert decode(row.reasoning_details) == [{"signature": "x"}]
    assert decode(row.extra) == {"refusal": None, "annotations": [1]}
    assert row._replace(tool_calls=None, reasoning_details=None, extra=None) == Draft(
        "assistant",
        finish_reason="tool_calls",
        reasoning="hm",
        provider="openrouter",
        token_count=12,
        timestamp=5.5,
    )


@pytest.mark.parametrize(
    ("message", "tool_name", "extra"),
    [
        ({"role": "tool", "name": "terminal"}, "terminal", None),
        ({"role": "tool", "tool_name": "terminal"}, "terminal", None),
        ({"role": "user", "name": "Alice"}, None, {"name": "Alice"}),
        ({"role": "user", "extra": {"mood": "good"}}, None, {"mood": "good"}),
        ({"role": "user", "extra": {"mood": "good"}, "more": 1}, None, {"mood": "good", "more": 1}),
        ({"role": "user", "extra": None}, None, None),
    ],
)
def test_where_a_name_and_unknown_fields_go(message: dict[str, Any], tool_name: str | None, extra: Any) -> None:
    row = draft_from(message, 1.0)
    assert (row.tool_name, decode(row.extra)) == (tool_name, extra)


@given(st.dictionaries(texts.filter(lambda name: name not in Draft._fields), json_values, max_size=5))
@settings(max_examples=60)
def test_fields_without_a_column_are_kept(fields: dict[str, Any]) -> None:
    row = draft_from({"role": "user", "content": "hi", **fields}, 1.0)
    assert decode(row.extra) == (without_surrogates(fields) or None)


@pytest.mark.parametrize("value", ["text", 7, [1], [["a", 1]]])
def test_a_field_called_extra_that_is_no_object_is_kept_or_refused(value: Any) -> None:
    try:
        row = draft_from({"role": "user", "content": "hi", "extra": value}, 1.0)
    except InvalidMessage:
        return
    assert decode(row.extra) == {"extra": value}


@pytest.mark.parametrize(("timestamp", "wanted"), [(5.0, 5.0), (7, 7.0), (None, 99.0)])
def test_a_message_without_a_time_gets_the_time_it_came(timestamp: float | None, wanted: float) -> None:
    assert draft_from({"role": "user", "content": "hi", "timestamp": timestamp}, 99.0).timestamp == wanted


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"content": "hi"},
        {"role": None, "content": "hi"},
        {"role": 7},
        {"role": ["user"]},
        {"role": "function", "content": "hi"},
        {"role": "User", "content": "hi"},
        {"role": "tool", "tool_call_id": 7},
        {"role": "tool", "name": ["terminal"]},
        {"role": "user", "author": {"name": "Alice"}},
        {"role": "user", "timestamp": "yesterday"},
        {"role": "user", "timestamp": [1]},
        {"role": "user", "timestamp": float("nan")},
        {"role": "user", "timestamp": float("inf")},
        {"role": "user", "token_count": "many"},
    ],
)
def test_not_a_message(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        draft_from(message, 1.0)


@pytest.mark.parametrize("empty", [[], {}, "", 0, False])
def test_an_empty_value_is_not_the_same_as_none(empty: Any) -> None:
    assert decode(draft("assistant", "hi", 1.0, reasoning_details=empty).reasoning_details) == empty
    assert draft("assistant", "hi", 1.0, reasoning_details=None).reasoning_details is None


def test_a_field_that_no_message_has_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="mood"):
        draft("user", "hi", 1.0, mood="good")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, ""),
        ("", ""),
        ("  one\n\n two\tthree ", "one two three"),
        ("x" * 500, "x" * 200),
        ("\n" * 700 + "late", "late"),
    ],
)
def test_the_first_line(content: str | None, line: str) -> None:
    assert first_line_of(content) == line
