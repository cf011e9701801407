"""What a conversation has chosen comes back, and what the next one takes over."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.preferences import Effort, Preferences, Succession, Verbosity, carried_over, decode, encode

ALL = Preferences("gpt", Effort.HIGH, Verbosity.TOOLS, "off", "steer", {"temperature": 0})
LEVELS = Preferences(effort=Effort.HIGH, verbose=Verbosity.TOOLS, send="off", queue="steer")
BARE = Preferences(send="off", queue="steer")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Succession.NEW, LEVELS),
        (Succession.IDLE, BARE),
        (Succession.DAILY, BARE),
        (Succession.SUSPENDED, BARE),
        (Succession.COMPRESSION, ALL),
        (Succession.RESUME, ALL),
        (Succession.BRANCH, ALL),
    ],
)
def test_what_is_carried_over(how: Succession, expected: Preferences) -> None:
    assert carried_over(ALL, how) == expected
    assert carried_over(ALL, how, model="other") == expected._replace(model="other")
    assert carried_over(Preferences(), how) == Preferences()


def test_every_way_is_in_the_table() -> None:
    assert len(Succession) == 7


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (None, Preferences()),
        ("", Preferences()),
        ("{}", Preferences()),
        ('{"effort":"high"}', Preferences(effort=Effort.HIGH)),
        ('{"effort":"turbo"}', Preferences(rest={"effort": "turbo"})),
        ('{"effort":["high"]}', Preferences(rest={"effort": ["high"]})),
        ('{"model":7,"verbose":null}', Preferences(rest={"model": 7, "verbose": None})),
        ('{"model":"","rest":{},"count":1}', Preferences(rest={"model": "", "rest": {}, "count": 1})),
        ("no JSON", Preferences(rest={"model_config": "no JSON"})),
        ("[1]", Preferences(rest={"model_config": "[1]"})),
        ('{"a":1e999,"b":NaN}', Preferences(rest={"a": "1e999", "b": "NaN"})),
        ("[" * 100_000, Preferences(rest={"model_config": "[" * 100_000})),
        ('{"a":' * 100_000, Preferences(rest={"model_config": '{"a":' * 100_000})),
    ],
)
def test_any_column_can_be_read_and_nothing_in_it_is_lost(column: str | None, expected: Preferences) -> None:
    assert decode(column) == expected
    assert decode(encode(decode(column))) == expected


def test_a_choice_takes_the_place_of_what_made_no_sense() -> None:
    odd = decode('{"effort":"turbo","temperature":0}')
    column = encode(odd._replace(effort=Effort.LOW))
    assert json.loads(column or "") == {"effort": "low", "temperature": 0}


def test_a_choice_that_is_given_up_is_gone() -> None:
    assert encode(decode('{"effort":"high"}')._replace(effort=None)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(ALL._fields), inner),
    max_leaves=10,
)


@given(st.text() | JSON.map(json.dumps))
def test_reading_and_writing_never_fails_and_is_stable(column: str) -> None:
    once = encode(decode(column))
    assert encode(decode(once)) == once
    assert once is None or once.encode("utf-8").decode("utf-8") == once


@given(
    st.builds(
        Preferences,
        st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
        st.none() | st.sampled_from(Effort),
        st.none() | st.sampled_from(Verbosity),
        st.none() | st.sampled_from(["on", "off"]),
        st.none() | st.sampled_from(["collect", "steer"]),
        st.dictionaries(st.sampled_from(["temperature", "seed"]), st.integers()),
    )
)
def test_what_was_chosen_comes_back(chosen: Preferences) -> None:
    assert decode(encode(chosen)) == chosen
