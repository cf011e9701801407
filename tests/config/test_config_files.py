"""Config files on disk: what can be read, and what is said about the rest."""

import os
from pathlib import Path

import pytest

from segue.config import load
from segue.config.parsing import parse
from segue.core.errors import InvalidSettings

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{below}'] * 10)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join([f'*{below}'] * 10)}]}}\n"
    for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("---\n", {}),
        ("null", {}),
        ("a: 1\nb: yes\nc: text\nd:\ne: [x:1, 2.5]", {"a": 1, "b": True, "c": "text", "d": None, "e": ["x:1", 2.5]}),
        ("on: 1\n5: 2\nnull: 3", {"on": 1, "5": 2, "null": 3}),
        ("a: 2024-01-01\nb: =", {"a": "2024-01-01", "b": "="}),
        ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}", {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}),
        ("a: &x {k: 1}\nb: {<<: [*x, {k: 2, l: 3}]}", {"a": {"k": 1}, "b": {"k": 1, "l": 3}}),
        ("a: !!str 5", {"a": "5"}),
        ("{a: {b: [c]}}", {"a": {"b": ["c"]}}),
    ],
)
def test_yaml_becomes_plain_values(text: str, value: dict[str, object]) -> None:
    assert parse(text, "config.yaml") == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: [\n", "line 3: this is not YAML"),
        ("a: 1\n\tb: 2", "line 2: this is not YAML"),
        ("a: 1\nb: *nowhere", "line 2: this is not YAML: found undefined alias"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' stands there twice"),
        ("s:\n  x: 1\n  'x': 2", "line 3: 'x' stands there twice"),
        ("a: 1\n---\nb: 2", "line 2: this is not YAML"),
        ("- a\n- b", "line 1: the file must hold settings"),
        ("just text", "line 1: the file must hold settings"),
        ("a: !!python/object:os.system x", "line 1: the tag"),
        ("a: !mine {b: 1}", "line 1: the tag"),
        ("a: !!set {b}", "line 1: the tag"),
        ("a: !!binary aGk=", "line 1: the tag"),
        ("\na: !%1B%5B31m x", r"line 2: the tag '!\x1b[31m' is not allowed"),
        ("a: 1\n[b]: 2", "line 2: a name must be plain text"),
        ("a: !!int five", "line 1: the value is no int"),
        ("a: !!int ''", "line 1: the value is no int"),
        ("a: !!bool maybe", "line 1: the value is no bool"),
        ("a: " + "9" * 5000, "line 1: the value is no int"),
        ("a: {<<: 5}", "line 1: << takes a mapping"),
        ("a: 1\nb: \x01", "line 2: a character there is not allowed"),
        ("&a [*a]", "nested too deeply"),
        ("a: &a {b: *a}", "nested too deeply"),
        ("a: " + "[" * 100_000, "nested too deeply"),
        ("a: " + "[" * 30 + "]" * 30, "nested too deeply"),
        (BOMB, "holds too much"),
        (MERGES, "holds too much"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse(text, "/home/config.yaml")
    assert str(caught.value).startswith("/home/config.yaml")
    assert sentence in str(caught.value)


def test_a_home_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere", {}).owners == ()


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("owners: ['telegram:1']", encoding="utf-8-sig")
    assert load(tmp_path, {}).owners == ("telegram:1",)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"# comment\n" * 110_000)
    with pytest.raises(InvalidSettings, match="larger than 1 MiB"):
        load(tmp_path, {})


def test_a_file_that_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"owners: []\n# caf\xe9\n")
    with pytest.raises(InvalidSettings, match=r"config\.yaml, line 2: this is not UTF-8"):
        load(tmp_path, {})


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(InvalidSettings, match="is no file"):
        load(tmp_path, {})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the home should be")
    with pytest.raises(InvalidSettings, match="cannot be read: Not a directory"):
        load(tmp_path / "home", {})
