"""What is left of an old tool result in what a model is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.pruning import NOTHING_LEFT, Cut, cut_of, shown


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cut_is_read_as_it_was_noted(head: int, tail: int) -> None:
    assert cut_of(Cut(head, tail).noted) == Cut(head, tail)


@pytest.mark.parametrize("noted", [None, "", "1500", ":", "a:b", "1:", "-1:5", "1:2:3", "٣:٣", "9" * 10 + ":1"])
def test_what_nobody_noted_cuts_nothing(noted: str | None) -> None:
    assert cut_of(noted) is None
    assert shown("all of it", noted) == "all of it"


@given(st.text(max_size=200), st.integers(0, 100), st.integers(0, 100))
def test_the_ends_stay(text: str, head: int, tail: int) -> None:
    left = shown(text, Cut(head, tail).noted)
    if head + tail >= len(text):
        assert left == text
    elif head or tail:
        assert left.startswith(text[:head])
        assert left.endswith(text[len(text) - tail :])


def test_nothing_left_says_how_much_there_was() -> None:
    assert shown("x" * 4_000, NOTHING_LEFT.noted).startswith("[The result of this call, 4,000 characters, is no longer")
