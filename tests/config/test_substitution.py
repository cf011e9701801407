"""Variables in the texts of a configuration."""

import pytest

from segue.config.kinds import Problem
from segue.config.substitution import substitute

ENVIRON = {"NAME": "alice", "EMPTY": "", "HOUR": "5", "MONEY": "${NAME}"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("plain", "plain"),
        ("${NAME}", "alice"),
        ("a${NAME}b${HOUR}c", "aaliceb5c"),
        ("${NAME}${NAME}", "alicealice"),
        ("${NAME:-bob}", "alice"),
        ("${NOBODY:-bob}", "bob"),
        ("${NOBODY:-}", ""),
        ("${NOBODY:-a b:c-d}", "a b:c-d"),
        ("${EMPTY}", ""),
        ("${EMPTY:-bob}", "bob"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$${NAME}"),
        ("$NAME $ {NAME} 5$", "$NAME $ {NAME} 5$"),
        ("${MONEY}", "${NAME}"),
    ],
)
def test_a_reference_stands_for_its_variable(written: str, meant: str) -> None:
    assert substitute(written, ENVIRON) == meant


def test_texts_are_replaced_wherever_they_stand_and_nothing_else_is() -> None:
    written = {"${NAME}": ["${HOUR}", {"deep": "${NAME}"}], "number": 4, "flag": True, "nothing": None}
    meant = {"${NAME}": ["5", {"deep": "alice"}], "number": 4, "flag": True, "nothing": None}
    assert substitute(written, ENVIRON) == meant


def test_an_unset_variable_is_named_with_its_key() -> None:
    with pytest.raises(Problem, match="needs the environment variable NOBODY") as caught:
        substitute({"session": {"owners": ["x", "${NOBODY}"]}}, ENVIRON)
    assert caught.value.key == ("session", "owners", "[1]")


@pytest.mark.parametrize("written", ["${", "${}", "${NAME", "${1A}", "${NAME:?no}", "${A:-${B}}", "${A B}", "x ${-}"])
def test_a_broken_reference_is_refused_and_says_how_to_write_it(written: str) -> None:
    with pytest.raises(Problem, match="neither"):
        substitute(written, ENVIRON)
