"""The page of guarantees has all of them, and names only tests that exist."""

import re

from named_tests import REPOSITORY, TEST, is_defined

PAGE = REPOSITORY / "docs" / "guarantees.md"
GUARANTEES = [f"G{number}" for number in range(1, 20)]
WITHOUT_A_CONTROL = {"G14"}


def sections() -> dict[str, str]:
    """What is said of each guarantee, by its name."""
    _, *parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_guarantee_says_what_it_means_what_it_does_not_and_what_proves_it() -> None:
    assert [name for name in sections() if re.fullmatch(r"G\d+", name)] == GUARANTEES
    for name in GUARANTEES:
        text = sections()[name]
        promise, _, rest = text.strip().partition("\n\n")
        assert promise.startswith("**"), name
        assert "Not promised: " in rest, name
        proof, _, control = rest.partition("Proved by:")[2].partition("Without ")
        assert re.findall(TEST, proof), name
        assert bool(re.findall(TEST, control)) is (name not in WITHOUT_A_CONTROL), name


def test_every_test_that_is_named_there_exists() -> None:
    named = re.findall(TEST, PAGE.read_text("utf-8"))
    assert len(named) > 60
    assert [test for test in named if not is_defined(test.strip("`"))] == []
