"""Whatever a note is called, it is a file in the folder of notes, or it is refused."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.ports.tool import ToolFailed
from segue.tools.note_names import MOST_CHARACTERS, SKILLS, is_slug, note_name

pieces = st.sampled_from(
    ["..", ".", "/", "\\", "~", "skills", "skills/", ".md", "a", "A", " ", "é", "．", "／", "İ", "ß"]
)
hostile = st.lists(pieces | st.text(max_size=3), max_size=6).map("".join)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("travel-plans", "travel-plans"),
        ("Travel  Plans.md", "travel-plans"),
        ("TODO_2026", "todo_2026"),
        ("skills/Deploy it", "skills/deploy-it"),
        ("Café", "café"),
        ("Cafe\u0301", "café"),
        ("旅行", "旅行"),
        ("हिन्दी", "हिन्दी"),
        ("skills", "skills"),
        ("2", "2"),
    ],
)
def test_a_name_becomes_the_name_of_a_note(said: str, name: str) -> None:
    assert str(note_name(said)) == name


@pytest.mark.parametrize(
    "said",
    [
        *("", " ", ".", "..", "../x", "a/../b", "/etc/passwd", "~/x", "a/b", "skills/../x", "skills/a/b", "skills//a"),
        *("skills/", "skills/.x", ".hidden", ".md", "-rf", "_x", "a\0b", "a\nb/c", "a\\b", "v1.2", "c:x", "．．／x"),
        *("x" * (MOST_CHARACTERS + 1), "𝕏\u0300" * MOST_CHARACTERS, "a\u202eb", "a\x1b[31m", "\ud800", "a/"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(said: str) -> None:
    with pytest.raises(ToolFailed, match="is no name of a note"):
        note_name(said)


@given(hostile | st.text(max_size=80))
@example("skills/skills/x")
@example("ſkills/x")
def test_no_name_leads_out_of_the_folder(said: str) -> None:
    try:
        name = note_name(said)
    except ToolFailed:
        return
    folder = Path("/notes")
    path = Path(os.path.normpath(folder / name.folder / name.file))
    assert path.parent == (folder / SKILLS if name.folder else folder)
    assert path.name == name.file
    assert not path.name.startswith(".")
    assert len(os.fsencode(path.name)) < 255
    assert note_name(str(name)) == name


@given(st.text(max_size=20))
def test_a_slug_is_its_own_name(text: str) -> None:
    if is_slug(text):
        assert note_name(text).slug == text
