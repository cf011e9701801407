"""Sums of what was used; what is unknown is not nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.prices import Price, Terms, terms_of
from segue.core.sessions import Session
from segue.core.usage import Billing, Purpose, Usage, entries_for, spent, used_in

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
@settings(max_examples=50)
def test_sums_do_not_depend_on_the_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))
    assert one.plus(Usage()) == one


def test_what_one_has_more_than_the_other() -> None:
    assert Usage(5, estimated_cost_usd=0.3).minus(Usage(2, estimated_cost_usd=0.1 + 0.2)) == Usage(
        3, estimated_cost_usd=0.0
    )
    assert Usage(estimated_cost_usd=0.5).minus(Usage()) == Usage(estimated_cost_usd=0.5)
    assert Usage().minus(Usage(estimated_cost_usd=0.5)).estimated_cost_usd is None


def session(usage: Usage) -> Session:
    sums = Session("s", "cli", last_active_at=9.0, model="m", billing_provider="p", pricing_version="v")
    return sums._replace(**usage._asdict())


@given(usages, st.lists(usages, max_size=3))
@settings(max_examples=50)
def test_entries_and_one_more_add_up_to_the_sums(whole: Usage, parts: list[Usage]) -> None:
    noted = [spent("s", 1.0, Purpose.ANSWER, part, Billing()) for part in parts]
    entries = entries_for(session(whole), noted)
    assert list(entries[: len(noted)]) == noted
    together = Usage()
    for entry in entries:
        together = together.plus(used_in(entry))
    assert together.counters == whole.counters
    for one, other in zip(together.costs, whole.costs, strict=True):
        assert other is None or one == other
    assert entries_for(session(whole), entries) == entries


def test_sums_without_entries_get_one_at_the_last_activity() -> None:
    (entry,) = entries_for(session(Usage(5, estimated_cost_usd=0.5)), [])
    assert (entry.at, entry.purpose, entry.model, entry.provider, entry.pricing_version) == (
        9.0,
        "import",
        "m",
        "p",
        "v",
    )
    assert used_in(entry) == Usage(5, estimated_cost_usd=0.5)
    assert entries_for(session(Usage()), []) == ()
    assert len(entries_for(session(Usage(estimated_cost_usd=0.0)), [])) == 1


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (Price(1.0, 10.0), Usage(1_000_000, 100_000), 2.0),
        (Price(1.0, 10.0, 0.1, 2.0), Usage(1_000_000, 0, 500_000, 100_000), 0.4 + 0.05 + 0.2),
        (Price(1.0, 10.0), Usage(1_000_000, 0, 500_000, 100_000), 1.0),
        (Price(0.0, 0.0), Usage(5, 5, 5), 0.0),
        (Price(1.0), Usage(1_000_000), 1.0),
        (Price(1.0), Usage(1_000_000, 1), None),
        (Price(), Usage(1), None),
    ],
)
def test_a_price_of_ones_own(price: Price, usage: Usage, cost: float | None) -> None:
    assert price.cost_of(usage) == (None if cost is None else pytest.approx(cost))


def test_terms_are_of_a_model_of_a_provider_or_of_its_name() -> None:
    prices = {"m": Price(1.0), "p/m": Price(2.0), "other/n": Price(3.0)}
    assert terms_of("p", "m", prices, {"m": 7}) == Terms(Price(2.0), 7)
    assert terms_of("q", "m", prices, {}) == Terms(Price(1.0), None)
    assert terms_of("q", "n", prices, {"q/n": 8}) == Terms(None, 8)
