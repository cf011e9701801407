"""Values in error messages."""

import pytest

from segue.config.masking import dotted, masked, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://bob:pass@db.example/segue", "postgresql://bob:***@db.example/segue"),
        ("postgresql://bob:p@ss:w/rd@db.example/segue", "postgresql://bob:***@db.example/segue"),
        ("postgresql://:pass@db", "postgresql://:***@db"),
        ("postgresql://bob@db/segue", "postgresql://bob@db/segue"),
        ("host=db password=hunter2 user=bob", "host=db password=*** user=bob"),
        ("https://x.example/?api_key=abc&page=2", "https://x.example/?api_key=***&page=2"),
        ("telegram:123456", "telegram:123456"),
    ],
)
def test_the_password_of_an_address_is_hidden(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "empty"),
        (True, "true"),
        (99, "99"),
        (1.5, "1.5"),
        ("x", "'x'"),
        ("\x1b[31mred\u202e", r"'\x1b[31mred\u202e'"),
        ({"a": 1}, "a mapping"),
        ([1], "a list"),
        ("a" * 2000, "a text of 2000 characters"),
        ("America/Argentina/ComodRivadavia", "'America/Argentina/ComodRivadavia'"),
        ("sk-proj-abcdefghijkl0123456789", "'***'"),
        ("Bearer abcdefghijkl0123456789xyz", "'Bearer ***'"),
        ("postgresql://bob:pass@db/x", "'postgresql://bob:***@db/x'"),
    ],
)
def test_a_value_is_named_without_secrets_or_control_characters(value: object, shown: str) -> None:
    assert quoted(value) == shown


def test_a_number_too_long_to_be_printed_is_still_named() -> None:
    assert quoted(10**5000) == "a huge number"


def test_a_long_value_is_cut() -> None:
    assert len(quoted("word " * 50)) < 90


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (("session", "reset_by_platform", "slack"), "session.reset_by_platform.slack"),
        (("owners", "[0]"), "owners[0]"),
        (("session.reset",), "'session.reset'"),
        (("",), "''"),
        (("session", "a\x1b[31mb\nc", "[0]"), r"session.'a\x1b[31mb\nc'[0]"),
    ],
)
def test_a_key_is_named_by_its_path_and_cannot_steer_a_terminal(key: tuple[str, ...], shown: str) -> None:
    assert dotted(key) == shown
