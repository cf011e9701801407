"""Whatever a model says, a tool gets arguments of the right kinds, or the model gets a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.memory import Memory
from segue.tools.read_file import ReadFile
from segue.tools.session_search import SessionSearch
from segue.tools.terminal import Terminal

SPECS = [ReadFile.spec, Terminal.spec, SessionSearch.spec, Memory.spec]
SPEC = ToolSpec(
    "paint",
    "Paint something.",
    {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"], "maxLength": 10},
            "what": {"type": "string", "minLength": 1, "maxLength": 20},
            "coats": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
            "hours": {"type": "number", "minimum": 0.5, "maximum": 1_000},
        },
        "required": ["colour"],
    },
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([name for spec in [*SPECS, SPEC] for name in spec.parameters["properties"]]) | st.text()


def outcome(spec: ToolSpec, said: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    try:
        return checked(spec, said), ""
    except ToolFailed as refused:
        return None, str(refused)


def test_what_is_not_said_is_the_default_and_the_order_is_that_of_the_schema() -> None:
    assert checked(SPEC, {"hours": 3, "colour": "red"}) == {"colour": "red", "what": None, "coats": 2, "hours": 3}
    assert list(checked(SPEC, {"hours": 3, "colour": "red"})) == ["colour", "what", "coats", "hours"]
    assert checked(SPEC, {"colour": "red", "coats": None})["coats"] == 2


def test_a_whole_number_may_be_written_with_a_point() -> None:
    coats = checked(SPEC, {"colour": "red", "coats": 3.0})["coats"]
    assert (coats, type(coats)) == (3, int)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({}, "paint needs the argument colour: one of red, blue."),
        ({"colour": None}, "paint needs the argument colour: one of red, blue."),
        ({"colour": "green"}, "The argument colour of paint is one of red, blue; call paint again with that."),
        ({"colour": ["red"]}, "The argument colour of paint is one of red, blue; call paint again with that."),
        ({"what": ""}, "text of 1 to 20 characters"),
        ({"what": "x" * 21}, "text of 1 to 20 characters"),
        ({"what": 7}, "text of 1 to 20 characters"),
        ({"what": "a\0b"}, "The argument what of paint has a NUL or half a character in it, which no text has."),
        ({"what": "a\ud800"}, "The argument what of paint has a NUL or half a character in it, which no text has."),
        ({"coats": "3"}, "a whole number from 1 to 5"),
        ({"coats": True}, "a whole number from 1 to 5"),
        ({"coats": 2.5}, "a whole number from 1 to 5"),
        ({"coats": 0}, "a whole number from 1 to 5"),
        ({"coats": 10**5000}, "a whole number from 1 to 5"),
        ({"hours": float("nan")}, "a number from 0.5 to 1,000"),
        ({"hours": float("inf")}, "a number from 0.5 to 1,000"),
        ({"hours": False}, "a number from 0.5 to 1,000"),
        ({"color": "red"}, "paint has no argument 'color'; it takes colour, what, coats, hours."),
        ({"\x1b[31m" + "x" * 99: 1}, f"paint has no argument '{'x' * 39}…'; it takes"),
        ({str(number): 1 for number in range(9)}, "paint has no argument '0', '1', '2', '3', '4' and 4 more; it takes"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(said: dict[str, Any], sentence: str) -> None:
    whole = said if sentence.startswith("paint needs") else {"colour": "red"} | said
    with pytest.raises(ToolFailed) as told:
        checked(SPEC, whole)
    assert sentence in str(told.value)


@pytest.mark.parametrize("spec", [*SPECS, SPEC], ids=lambda spec: spec.name)
@given(said=st.dictionaries(names, anything, max_size=5))
def test_arguments_are_taken_or_refused_and_nothing_else(spec: ToolSpec, said: dict[str, Any]) -> None:
    taken, sentence = outcome(spec, said)
    if taken is None:
        assert sentence.endswith(".")
        assert sentence.isprintable()
    else:
        assert list(taken) == list(spec.parameters["properties"])


@given(said=st.dictionaries(names, anything, max_size=5))
def test_no_argument_makes_asking_for_the_risk_fail(said: dict[str, Any]) -> None:
    here = Path("/nowhere")
    for tool in (ReadFile(here), Terminal(here, {}), Memory(here)):
        risk = tool.risk(said)
        assert risk is None or (risk.isprintable() and len(risk) <= 200)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_schema_is_plain_and_says_what_each_argument_is(spec: ToolSpec) -> None:
    assert json.loads(json.dumps(spec.parameters)) == spec.parameters
    assert set(spec.parameters["required"]) <= set(spec.parameters["properties"])
    for schema in spec.parameters["properties"].values():
        assert 5 < len(schema["description"]) < 120
