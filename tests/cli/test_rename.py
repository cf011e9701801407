"""`segue sessions rename`: words without quotes become a title, or a sentence says why not."""

import subprocess
from collections.abc import Callable

import pytest

from segue import SessionDB

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def name(db: SessionDB) -> str:
    """A conversation called "old name"."""
    return db.create_session("20250305_091523_a1b2c3d4", title="old name")


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """What a command said no with."""
    assert result.returncode != 0
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.endswith(".\n")
    return result.stderr


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["one"], "one"),
        (["three", "plain", "words"], "three plain words"),
        (["  spaces \t and", "", "line\nbreaks "], "spaces and line breaks"),
        (["it's", '"quoted"', "#1", "100%"], 'it\'s "quoted" #1 100%'),
        (["日本語", "👩‍👩‍👧", "é", "مرحبا"], "日本語 👩‍👩‍👧 é مرحبا"),
        (["red\x1b[31m", "c1\x9b", "zero\u200bwidth", "bidi\u202e", "tag\U000e0041"], "red[31m c1 zerowidth bidi tag"),
        (["a" * 100], "a" * 100),
        (["--", "--json"], "--json"),
    ],
)
def test_words_become_the_title(run: Run, db: SessionDB, name: str, words: list[str], title: str) -> None:
    result = run("sessions", "rename", name, *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert db.get_session_title(name) == title
    assert name in result.stdout
    assert title in result.stdout.replace("\\'", "'")
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize("wanted", ["20250305", "old name"])
def test_the_conversation_is_found_by_beginning_and_by_title(run: Run, db: SessionDB, name: str, wanted: str) -> None:
    assert run("sessions", "rename", wanted, "new").returncode == 0
    assert db.get_session_title(name) == "new"


@pytest.mark.on_file
@pytest.mark.parametrize("words", [[""], ["  ", "\u200b\u202e\x07"]])
def test_an_empty_title_takes_the_title_away(run: Run, db: SessionDB, name: str, words: list[str]) -> None:
    result = run("sessions", "rename", name, *words)
    assert result.returncode == 0
    assert "no title" in result.stdout
    assert db.get_session_title(name) is None


def test_a_taken_title_names_its_holder_and_the_holder_s_state(run: Run, db: SessionDB, name: str) -> None:
    for holder, title in [("open-one", "first"), ("ended-one", "second"), ("archived-one", "third")]:
        db.create_session(holder, title=title)
    db.end_session("ended-one", "user_exit")
    db.set_session_archived("archived-one", True)
    for title, holder, state in [
        ("first", "open-one", "open"),
        ("second", "ended-one", "ended"),
        ("third", "archived-one", "archived"),
    ]:
        sentence = one_sentence(run("sessions", "rename", name, title))
        assert all(part in sentence for part in (repr(title), holder, state))
    assert db.get_session_title(name) == "old name"


def test_its_own_title_again_is_fine(run: Run, db: SessionDB, name: str) -> None:
    assert run("sessions", "rename", name, "old", "name").returncode == 0
    assert db.get_session_title(name) == "old name"


def test_the_title_of_a_deleted_conversation_is_free_again(run: Run, db: SessionDB, name: str) -> None:
    db.create_session("gone", title="wanted")
    db.delete_session("gone")
    assert run("sessions", "rename", name, "wanted").returncode == 0
    assert db.get_session_title(name) == "wanted"


def test_a_title_of_101_characters_is_refused_with_both_numbers(run: Run, db: SessionDB, name: str) -> None:
    sentence = one_sentence(run("sessions", "rename", name, "語" * 101))
    assert "101" in sentence
    assert "100" in sentence
    assert db.get_session_title(name) == "old name"


def test_nobody_s_conversation_cannot_be_renamed(run: Run, db: SessionDB, name: str) -> None:
    assert "'nobody'" in one_sentence(run("sessions", "rename", "nobody", "new"))
    assert db.get_session_title(name) == "old name"
