"""Any string is a query: it parses, prints, and parses again to the same tree."""

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from segue.core.query import MOST_CHARACTERS, MOST_TERMS, parse

SIGNS = """a b* NOT AND OR ( ) " ~ ~x source:x role:user in:tools title: é 天 天气* - --x ' * : f(x) [1] a) (b ~( ~" x:y
after:2025-01-01 before:2025-13-01"""
PIECES = st.sampled_from([*SIGNS.split(), '"c d"', " ", "  ", "\t", "\n"])
QUERIES = st.lists(PIECES | st.text(max_size=4), max_size=14).map("".join) | st.lists(PIECES, max_size=14).map(" ".join)


@given(QUERIES)
@examples(150, in_torture=5000)
def test_printing_and_parsing_again_gives_the_same_tree(text: str) -> None:
    query = parse(text)
    again = parse(str(query))
    assert repr(again.tree) == repr(query.tree)
    assert again.in_tools == query.in_tools


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("lisbon hotel", "And(nodes=(Word(text='lisbon'), Word(text='hotel')))"),
        ('"third week"', "Phrase(text='third week')"),
        ("a OR b c", "Or(nodes=(Word(text='a'), And(nodes=(Word(text='b'), Word(text='c')))))"),
        ("(a OR b) AND c", "And(nodes=(Or(nodes=(Word(text='a'), Word(text='b'))), Word(text='c')))"),
        ("a NOT b", "And(nodes=(Word(text='a'), Not(node=Word(text='b'))))"),
        ("deplo*", "Prefix(text='deplo')"),
        ("~onfig", "Part(text='onfig')"),
        ("~/.ssh", "Word(text='~/.ssh')"),
        ("delta?", "Word(text='delta')"),
        ("(so)", "Word(text='so')"),
        ("f(x)", "Phrase(text='f(x)')"),
        ("hello AND", "And(nodes=(Word(text='hello'), Phrase(text='AND')))"),
        ("NOT", "Phrase(text='NOT')"),
        ('"unbalanced', "Word(text='unbalanced')"),
        ("*", "Word(text='*')"),
        ("role:user x", "And(nodes=(Only(field=<Field.ROLE: 'role'>, value='user'), Word(text='x')))"),
        ("role:king", "Word(text='role:king')"),
        ("error: x", "And(nodes=(Word(text='error'), Word(text='x')))"),
        ("", "None"),
        ("   ", "None"),
    ],
)
def test_what_a_query_means(text: str, meaning: str) -> None:
    assert repr(parse(text).tree) == meaning


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert parse("x" * (MOST_CHARACTERS + 1)).is_cut
    assert parse("a " * (MOST_TERMS + 1)).is_cut
    assert not parse("a " * MOST_TERMS).is_cut
    assert parse("(" * 400 + "a").tree is not None
