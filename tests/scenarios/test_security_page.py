"""The list of promises in `security.md` is complete, and names only tests that exist."""

import re
from pathlib import Path

from named_tests import TEST, is_defined

PAGE = Path(__file__).with_name("security.md")
ROW = re.compile(rf"\| ([DS]\d+) \| [^|]+ \| ({TEST}(?:, {TEST})*)?(?:(?:; )?not yet: ([^|]+))? \|")
HEADER = ("| id | promise | tests |", "|---|---|---|")
IDS = [*(f"D{number}" for number in range(1, 17)), *(f"S{number}" for number in range(1, 31))]
MAY_WAIT = {"the dashboard": {"D7", "D9", "D10", "S7"}}
"""What is not there, and whose half it is of which rows."""


def table_lines() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("|") and line not in HEADER]


def rows() -> list[re.Match[str]]:
    return [found for line in table_lines() if (found := ROW.fullmatch(line))]


def test_every_promise_has_its_row() -> None:
    assert [line for line in table_lines() if not ROW.fullmatch(line)] == []
    assert [row[1] for row in rows()] == IDS


def test_every_test_that_is_named_exists() -> None:
    named = [(row[1], test) for row in rows() for test in re.findall(TEST, row[2] or "")]
    assert [(row_id, test) for row_id, test in named if not is_defined(test.strip("`"))] == []


def test_only_what_is_not_there_waits_for_its_tests() -> None:
    waiting = {(row[1], row[3]) for row in rows() if row[3]}
    assert waiting <= {(row_id, part) for part, ids in MAY_WAIT.items() for row_id in ids}
    assert [row[1] for row in rows() if not row[2]] in ([], ["D9"])
