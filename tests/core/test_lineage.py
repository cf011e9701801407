"""The parts of a conversation are found by their links, whatever shape the links have."""

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from segue.core.lineage import Link, tip_of

CHAIN = [Link("a", None, 1.0), Link("b", "a", 2.0), Link("c", "b", 3.0), Link("stranger", None, 9.0)]
FORK = [Link("a", None, 1.0), Link("b", "a", 2.0), Link("c", "a", 3.0)]
DEEP_FORK = [*FORK, Link("d", "b", 4.0)]
TWINS = [Link("a", None, 1.0), Link("b", "a", 2.0), Link("c", "a", 2.0)]
CIRCLE = [Link("a", "c", 1.0), Link("b", "a", 2.0), Link("c", "b", 3.0)]

names = st.sampled_from("abcdefgh")
link_sets = st.dictionaries(names, st.tuples(st.none() | names, st.floats(0, 9)), max_size=8).map(
    lambda rows: [Link(name, parent, started_at) for name, (parent, started_at) in rows.items()]
)


@pytest.mark.parametrize(
    ("start", "links", "tip"),
    [
        pytest.param("a", CHAIN, "c", id="from the root"),
        pytest.param("b", CHAIN, "c", id="from the middle"),
        pytest.param("c", CHAIN, "c", id="from the tip"),
        pytest.param("stranger", CHAIN, "stranger", id="without relatives"),
        pytest.param("unknown", CHAIN, "unknown", id="unheard of"),
        pytest.param("a", [], "a", id="no links at all"),
        pytest.param("a", list(reversed(CHAIN)), "c", id="in any order"),
        pytest.param("a", FORK, "c", id="the younger of two children"),
        pytest.param("b", FORK, "b", id="never up and down again"),
        pytest.param("a", DEEP_FORK, "d", id="the newest end, although its parent is the older child"),
        pytest.param("a", TWINS, "c", id="of twins always the same one"),
        pytest.param("a", list(reversed(TWINS)), "c", id="of twins the same one in any order"),
        pytest.param("a", [Link("a", "a", 1.0)], "a", id="its own parent"),
        pytest.param("a", CIRCLE, "c", id="round a circle once"),
    ],
)
def test_the_tip(start: str, links: list[Link], tip: str) -> None:
    assert tip_of(start, links) == tip


@given(names, link_sets)
@examples(40, in_torture=500)
def test_any_links_have_a_tip_below(start: str, links: list[Link]) -> None:
    below, tip = {start}, tip_of(start, links)
    for _ in links:
        below |= {link.id for link in links if link.parent_session_id in below}
    assert tip in below
