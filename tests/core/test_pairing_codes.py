"""Codes: how they are made, kept and typed."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.pairing import ALPHABET, CODE_LENGTH, as_typed, fingerprint, fits, invitation, new_code


def test_there_are_as_many_codes_as_forty_bits_allow() -> None:
    assert len(set(ALPHABET)) ** CODE_LENGTH == 2**40
    assert new_code(bytes(5)) == "AAAAAAAA"
    assert new_code(b"\xff" * 5) == "99999999"


@given(st.lists(st.binary(min_size=5, max_size=5), min_size=2, max_size=20, unique=True))
def test_different_chances_are_different_codes(chances: list[bytes]) -> None:
    codes = sorted(map(new_code, chances))
    assert all(one != other for one, other in pairwise(codes))
    assert all(as_typed(code) == code for code in codes)


def test_what_is_kept_tells_nothing_and_fits_one_code_only() -> None:
    code = new_code(os.urandom(5))
    kept = fingerprint(code, os.urandom(16))
    assert code not in kept
    assert fits(code, kept)
    assert not fits(code[:-1] + ("A" if code[-1] != "A" else "B"), kept)
    assert fingerprint(code, os.urandom(16)) != kept, "another salt"


@pytest.mark.parametrize("typed", ["K7QM2XWP", "k7qm2xwp", " k7qm 2xwp\n", "K7QM-2XWP"])
def test_a_code_may_be_typed_as_people_do(typed: str) -> None:
    assert as_typed(typed) == "K7QM2XWP"


@pytest.mark.parametrize("typed", ["", "K7QM2XW", "K7QM2XWPA", "K7QM2XW0", "K7QM2XWI", "K7QM2XWÄ"])
def test_what_can_be_no_code_is_none(typed: str) -> None:
    assert as_typed(typed) is None


def test_a_stranger_is_told_the_code_on_a_line_of_its_own_and_no_command_of_a_terminal() -> None:
    assert invitation("K7QM2XWP").splitlines()[1:] == ["K7QM2XWP"]
    assert "segue" not in invitation("K7QM2XWP")
