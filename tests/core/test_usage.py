"""Sums of what was used; what is unknown is not nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.usage import Usage

tokens = st.integers(0, 10**12)
cents = st.none() | st.integers(0, 10**6).map(float)  # whole, so that sums are exact in any order
usages = st.builds(Usage, tokens, tokens, tokens, tokens, tokens, tokens, cents, cents)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [(None, None, None), (None, 0.5, 0.5), (0.5, None, 0.5), (0.25, 0.5, 0.75), (0.0, None, 0.0), (0.0, 0.0, 0.0)],
)
def test_the_cost_of_both(one: float | None, other: float | None, together: float | None) -> None:
    both = Usage(estimated_cost_usd=one, actual_cost_usd=other).plus(
        Usage(estimated_cost_usd=other, actual_cost_usd=one)
    )
    assert both.estimated_cost_usd == both.actual_cost_usd == together


def test_every_count_is_added_to_its_own() -> None:
    assert Usage(1, 2, 3, 4, 5, 6, 7.0, 8.0).plus(Usage(10, 20, 30, 40, 50, 60, 70.0, 80.0)) == Usage(
        11, 22, 33, 44, 55, 66, 77.0, 88.0
    )


def test_the_total_is_what_went_in_and_came_out() -> None:
    assert Usage(input_tokens=10, output_tokens=5, cache_read_tokens=7, reasoning_tokens=3).total_tokens == 15


@given(usages, usages, usages)
@settings(max_examples=50, deadline=None)
def test_sums_do_not_depend_on_the_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))
    assert one.plus(Usage()) == one
