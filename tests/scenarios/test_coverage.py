"""The list of promises in `coverage.md` names only tests that exist."""

import re
from pathlib import Path

import pytest
from named_tests import TEST, is_defined

PAGE = Path(__file__).with_name("coverage.md")
ROW = re.compile(rf"\| ([A-Z]+-\d\d) \| [^|]+ \| 00[0-4](?:, 00[0-4])* \| (not yet|{TEST}(?:, {TEST})*) \|")
HEADER = ("| id | promise | seeds | proved by |", "|---|---|---|---|")


def table_lines() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.lstrip().startswith("|") and line not in HEADER]


def rows() -> list[tuple[str, str]]:
    """The id and the proof of each row."""
    return [(found[1], found[2]) for line in table_lines() if (found := ROW.fullmatch(line))]


def test_every_row_has_an_id_a_promise_its_seeds_and_a_proof() -> None:
    assert [line for line in table_lines() if not ROW.fullmatch(line)] == []
    assert rows()


def test_no_two_rows_share_an_id() -> None:
    ids = [row_id for row_id, _ in rows()]
    assert sorted(ids) == sorted(set(ids))


def test_every_named_test_exists() -> None:
    named = [(row_id, test) for row_id, proof in rows() for test in re.findall(TEST, proof)]
    assert [(row_id, test) for row_id, test in named if not is_defined(test.strip("`"))] == []


@pytest.mark.parametrize(
    "missing", ["no_file.py::test_x", "test_coverage.py::test_x", "test_coverage.py::Class::test_x"]
)
def test_a_test_that_does_not_exist_is_noticed(missing: str) -> None:
    assert is_defined("tests/scenarios/test_coverage.py::test_every_named_test_exists")
    assert not is_defined(f"tests/scenarios/{missing}")
