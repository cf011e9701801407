"""The same JSON text is accepted or refused alike on every version of Python."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.json_text import MAX_DEPTH, TooDeep, check_depth, dump_json, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('[]{}"\\ax', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=3), inner, max_size=3),
    max_leaves=20,
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def lists(depth: int) -> str:
    return "[" * depth + "]" * depth


@given(VALUES)
def test_depth_is_counted_as_the_parser_nests(value: Any) -> None:
    """Brackets and escaped quotation marks inside strings count for nothing, and one level too many is refused."""
    text, depth = json.dumps(value), depth_of(value)
    assert parse_json(text, max_depth=depth) == value
    assert dump_json(value, max_depth=depth) == text
    if depth:
        with pytest.raises(TooDeep):
            parse_json(text, max_depth=depth - 1)
        with pytest.raises(TooDeep):
            dump_json(value, max_depth=depth - 1)


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 200_000, '["' + "[" * 300 + '",' + lists(MAX_DEPTH)])
def test_too_deep_is_one_error_however_deep_and_however_broken(text: str) -> None:
    with pytest.raises(TooDeep, match="nested more than 128 levels deep"):
        parse_json(text)
    with pytest.raises(TooDeep):
        parse_json(text.encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_the_deepest_that_is_read_is_read_from_text_and_from_bytes(encoding: str) -> None:
    text = lists(MAX_DEPTH)
    assert dump_json(parse_json(text), separators=(",", ":")) == text
    assert dump_json(parse_json(text.encode(encoding)), separators=(",", ":")) == text


def test_a_value_that_the_encoder_cannot_walk_is_too_deep_as_well() -> None:
    value: list[Any] = []
    for _ in range(20_000):
        value = [value]
    with pytest.raises(TooDeep, match="128 levels"):
        dump_json(value)


@pytest.mark.parametrize("piece", ['"', '\\"', '"\\', "\\", '"\\\\'])
def test_a_string_without_end_is_looked_at_once(piece: str) -> None:
    """A pattern that tried again at each quotation mark would need hours for this text."""
    with suppress(TooDeep):
        check_depth(lists(MAX_DEPTH) + '"\\' + piece * 2_000_000 + "[")
