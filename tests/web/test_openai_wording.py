"""Items, chat messages and rows, as a table: what is given, what a model is told of it, and what comes back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.events import Event, Note, Reply, Text
from segue.core.messages import Draft, Message, Spot, said
from segue.core.transcript import as_chat
from segue.web.openai.errors import Wrong
from segue.web.openai.voice import Voice, joined
from segue.web.openai.wording import draft_of, given_item, given_message, item_of, spot_of

PICTURE = {"type": "input_image", "image_url": "data:x", "detail": "low", "file_id": None}
FILE = {"type": "input_file", "filename": "a.txt", "file_data": "eA=="}


def row(draft: Draft, seq: int = 3) -> Message:
    """A message as it is stored."""
    return Message(id=1, session_id="s_1", seq=seq, state="live", **draft._asdict())


def message(role: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "status": "completed", "content": list(content)} | more


def text(words: str, kind: str = "input_text") -> dict[str, Any]:
    return {"type": kind, "text": words} | ({"annotations": []} if kind == "output_text" else {})


CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "status": "completed"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "fine", "status": "completed"}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
MIXED = message("user", text("a"), text("b"), PICTURE, FILE)
SEARCH = {"type": "web_search_call", "action": {"query": "x"}, "status": "completed"}


@pytest.mark.parametrize(
    ("item", "shown", "prefix"),
    [
        ({"role": "user", "content": "hi"}, message("user", text("hi")), "msg"),
        ({"role": "assistant", "content": "hi"}, message("assistant", text("hi", "output_text")), "msg"),
        (message("developer", text("Be kind.")), message("developer", text("Be kind.")), "msg"),
        (
            message("user", text("a"), text("b"), PICTURE, FILE),
            message("user", text("a"), text("b"), PICTURE, FILE),
            "msg",
        ),
        (message("user", text("hi"), id="msg_9", phase="x"), message("user", text("hi"), phase="x"), "msg"),
        (CALL, CALL, "fc"),
        (RESULT, RESULT, "fco"),
        (RESULT | {"output": [text("fine")]}, RESULT | {"output": [text("fine")]}, "fco"),
        (REASONING | {"status": None}, REASONING, "rs"),
        (SEARCH, SEARCH, "item"),
    ],
)
def test_an_item_comes_back_as_it_was_given(item: dict[str, Any], shown: dict[str, Any], prefix: str) -> None:
    stored = row(draft_of(given_item(item, "items[0]"), 1.0))
    assert item_of(stored) == shown | {"id": f"{prefix}_s_1_3"}


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"role": "user", "content": "hi"}, [{"role": "user", "content": "hi"}]),
        (message("user", text("a"), text("b")), [{"role": "user", "content": "a\nb"}]),
        (message("developer", text("Be kind.")), [{"role": "system", "content": "Be kind."}]),
        (
            message("user", text("a"), PICTURE),
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
                    ],
                }
            ],
        ),
        (REASONING, []),
        (SEARCH, []),
        (RESULT, []),  # an answer to nothing
    ],
)
def test_a_model_is_told_an_item_as_a_chat(item: dict[str, Any], told: list[dict[str, Any]]) -> None:
    assert as_chat([said(draft_of(given_item(item, "x"), 1.0), 1)]) == told


@pytest.mark.parametrize(
    ("draft", "shown"),
    [
        (Draft("user", "hi"), message("user", text("hi"))),
        (Draft("assistant", "hi"), message("assistant", text("hi", "output_text"))),
        (Draft("system", "hi"), message("system", text("hi"))),
        (Draft("assistant", None, tool_calls="[]"), None),
        (Draft("tool", "found"), None),
        (
            Draft("user", "a", content_json='[{"type":"image_url","image_url":{"url":"data:x","detail":"low"}}]'),
            message("user", PICTURE),
        ),
    ],
)
def test_what_was_said_by_other_ways_is_an_item_too(draft: Draft, shown: dict[str, Any] | None) -> None:
    assert item_of(row(draft)) == (shown and shown | {"id": "msg_s_1_3"})


def test_a_summary_is_no_item() -> None:
    assert item_of(row(Draft("user", "All in all."), seq=0)) is None


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({}, "x.type"),
        ({"type": 3}, "x.type"),
        ({"role": "king", "content": "a"}, "x.role"),
        ({"role": "user"}, "x.content"),
        ({"role": "user", "content": ["a"]}, "x.content[0]"),
        ({"role": "user", "content": [{"type": "input_text", "text": 3}]}, "x.content[0]"),
        ({"type": "function_call", "call_id": "c"}, "x.name"),
        ({"type": "function_call_output"}, "x.call_id"),
        ({"type": "item_reference", "id": "a"}, "x"),
    ],
)
def test_what_is_no_item_is_refused_with_its_place(item: dict[str, Any], param: str) -> None:
    with pytest.raises(Wrong) as raised:
        given_item(item, "x")
    assert raised.value.param == param


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}, True),
        ({"role": "system", "content": "a"}, {"role": "developer", "content": "a"}, True),
        ({"role": "assistant", "content": None}, {"role": "assistant", "content": ""}, True),
        ({"role": "user", "content": "a"}, {"role": "user", "content": "b"}, False),
        ({"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}, False),
    ],
)
def test_messages_are_the_same_however_they_are_written(one: Any, other: Any, is_same: bool) -> None:
    assert (given_message(one, "x").mark == given_message(other, "x").mark) is is_same


@pytest.mark.parametrize(
    ("named", "spot"),
    [
        ("msg_20260101_120000_ab_7", Spot("20260101_120000_ab", 7)),
        ("rs_s_0", Spot("s", 0)),
        ("msg_s", None),
        ("msg_s_", None),
        ("s_1", None),
        ("msg_s_12345678901234567", None),
        ("", None),
    ],
)
def test_an_id_says_where_its_item_is(named: str, spot: Spot | None) -> None:
    assert spot_of(named) == spot


@pytest.mark.parametrize(
    ("events", "stored", "pieces"),
    [
        ([Text("a"), Text(" b"), Reply("a b")], ["a b"], ["a", " b"]),
        ([Reply("a b")], ["a b"], ["a b"]),
        ([Text("a"), Reply("a b")], ["a b"], ["a", " b"]),
        ([Text("a"), Reply("a"), Text("b"), Reply("b")], ["a", "b"], ["a", "\n\nb"]),
        ([Reply(""), Text("b"), Reply("b")], ["b"], ["b"]),
        ([Note("x"), Text("a")], ["a"], ["a"]),
        ([], ["a", "b"], ["a\n\nb"]),
        ([Text("a")], [], ["a"]),
        ([Text("x"), Reply("a")], ["a"], ["x", "\n\na"]),  # what was said cannot be taken back
    ],
)
def test_what_a_stream_tells(events: list[Event], stored: list[str], pieces: list[str]) -> None:
    voice = Voice()
    told = [piece for event in events if (piece := voice.hear(event))]
    rest = voice.end(stored)
    assert [*told, *([rest] if rest else [])] == pieces


@pytest.mark.parametrize(
    ("written", "events", "stored", "pieces"),
    [
        ([], [Text("b"), Reply("a b")], ["a b"], ["a b"]),
        (["a"], [Reply("a"), Text("b"), Reply("b")], ["a", "b"], ["a", "\n\nb"]),
        (["a"], [Text("c"), Reply("b c")], ["a", "b c"], ["a", "\n\nb c"]),
        (["a", "b"], [], ["a", "b"], ["a\n\nb"]),
    ],
)
def test_whoever_comes_late_is_told_everything(
    written: list[str], events: list[Event], stored: list[str], pieces: list[str]
) -> None:
    voice = Voice(written, is_late=True)
    told = [voice.beginning(), *(voice.hear(event) for event in events), voice.end(stored)]
    assert [piece for piece in told if piece] == pieces
    assert "".join(told) == joined(stored)


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(0, 20)), max_size=5), st.integers(0, 10))
def test_all_that_is_told_is_what_is_stored(replies: list[tuple[str, int]], seen: int) -> None:
    """Wherever a reply is cut into pieces, and however much of it all is seen."""
    events: list[Event] = []
    for words, at in replies:
        events += [Text(words[:at]), Text(words[at:]), Reply(words)]
    voice, stored = Voice(), [words for words, _ in replies]
    told = [voice.hear(event) for event in events[:seen]]
    assert "".join([*told, voice.end(stored)]) == joined(stored)
