"""Markdown becomes a text with marks on it, and what is no Markdown stays what it is."""

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.marked_text import Kind, Marked
from segue.core.marks import RULE, marked

SIGNS = "*_~`#>-+|[]()!\\<&=:\n\t 12ab.é😀中"
PLAIN = st.text(
    st.one_of(
        st.sampled_from("ab \n\t😀,.;?'\"/%@=$^{}"),
        st.characters(exclude_characters="0123456789*_~`#>-+|[]()!\\<&\r\0"),
    ),
    max_size=200,
)


def shown(found: Marked) -> list[tuple[str, str]]:
    return [(str(mark.kind), found.text[mark.start : mark.end]) for mark in found.marks]


@pytest.mark.parametrize(
    ("markdown", "text", "marks"),
    [
        ("**bold** *italic* ~~gone~~ `code`", "bold italic gone code", ["bold", "italic", "strike", "code"]),
        ("# A *title*", "A title", ["bold", "italic"]),
        ("***both***", "both", ["bold", "italic"]),
        ("**bold `code` bold**", "bold code bold", ["bold", "code"]),
        ("```py\nx = 1\n\n\ty\n```", "x = 1\n\n\ty", ["pre"]),
        ("~~~\n```\n~~~", "```", ["pre"]),
        ("```\nnot closed", "not closed", ["pre"]),
        ("> one\n> **two**\n\nthree", "one\ntwo\n\nthree", ["quote", "bold"]),
        ("> > deep", "deep", ["quote"]),
        ("- one\n* two\n+ three", "• one\n• two\n• three", []),
        ("1. one\n2. two", "1. one\n2. two", []),
        ("1) one\n1) two\n1) three", "1) one\n2) two\n3) three", []),
        ("10. ten\n9. nine", "10. ten\n9. nine", []),
        ("- one\n  more\n  - inside\n\n- two", "• one\n  more\n  • inside\n\n• two", []),
        ("- one\n\n  ```\n  code\n  ```", "• one\n\ncode", ["pre"]),
        ("- [ ] open\n- [x] done", "• ☐ open\n• ☑ done", []),
        ("one\n\n---\n\ntwo", f"one\n\n{RULE}\n\ntwo", []),
        ("one\n---\ntwo", f"one\n{RULE}\ntwo", []),
        ("[here](https://example.org/a_b)", "here", ["link"]),
        ("<https://example.org>", "https://example.org", ["link"]),
        ("[me](mailto:a@example.org)", "me", ["link"]),
        ("[file](./notes.txt)", "file (./notes.txt)", []),
        ("[odd](ftp://example.org)", "odd (ftp://example.org)", []),
        ("[bad](javascript:alert(1))", "[bad](javascript:alert(1))", []),
        ("![a cat](https://example.org/cat.png)", "a cat", ["link"]),
        ("[![x](https://example.org/i)](https://example.org)", "x", ["link"]),
        ("| a | b |\n|---|---|\n| 1 | **22** | 3 |", "a | b  |\n--+----+--\n1 | 22 | 3", ["pre"]),
        ("| 中 | b |\n|---|---|\n| 1 | 2 |", "中 | b\n---+--\n1  | 2", ["pre"]),
        ("snake_case_name", "snake_case_name", []),
        ("__init__.py and __main__", "__init__.py and __main__", []),
        ("__two words__", "two words", ["bold"]),
        ("2*3*4 and 2**3**4", "2*3*4 and 2**3**4", []),
        ("中文**粗体**中文", "中文粗体中文", ["bold"]),
        (r"\*not bold\* and \[x\] and C:\dir\new", r"*not bold* and \[x\] and C:\dir\new", []),
        ("curl \\\n  --head", "curl \\\n  --head", []),
        ("&nbsp; &lt;b&gt; <b>x</b>", "&nbsp; &lt;b&gt; <b>x</b>", []),
        ("    four spaces\n\ta tab", "    four spaces\n\ta tab", []),
        ("[a]: https://example.org", "[a]: https://example.org", []),
        ("one  \ntwo\n\n\n\nthree\n", "one  \ntwo\n\n\n\nthree\n", []),
        (">" * 60 + " deep", ">" * 60 + " deep", []),
        ("one\r\ntwo", "one\ntwo", []),
        ("", "", []),
    ],
)
def test_what_is_meant(markdown: str, text: str, marks: list[str]) -> None:
    found = marked(markdown)
    assert found.text == text
    assert [str(mark.kind) for mark in found.marks] == marks


def test_marks_stand_where_they_belong() -> None:
    found = marked("- 😀 **b** [c `d`](https://e.fr)\n  > *f*\n\n```sh\ng\n```")
    assert shown(found) == [
        ("bold", "b"),
        ("link", "c d"),
        ("code", "d"),
        ("quote", "f"),
        ("italic", "f"),
        ("pre", "g"),
    ]
    assert [mark.argument for mark in found.marks if mark.argument] == ["https://e.fr", "sh"]


def test_a_link_of_another_scheme_is_written_out() -> None:
    assert marked("[me](mailto:a@b.c), <mailto:a@b.c>", {"https"}).text == "me (a@b.c), mailto:a@b.c"


@given(PLAIN)
@example("  a\n\n\n   b \n")
@example("\u3000indented\u3000")
def test_plain_text_comes_through_as_it_is(text: str) -> None:
    assert marked(text) == Marked(text)


@given(st.text(st.sampled_from(SIGNS), max_size=120))
def test_marks_are_nested_and_in_bounds(text: str) -> None:
    found = marked(text)
    for mark in found.marks:
        assert 0 <= mark.start < mark.end <= len(found.text)
        assert isinstance(mark.kind, Kind)
    for one, other in combinations(found.marks, 2):
        assert one.start <= other.start
        is_apart = one.end <= other.start
        is_within = other.end <= one.end or (one.start == other.start and one.end <= other.end)
        assert is_apart or is_within


@given(st.text(st.sampled_from("*_~#>-+|\\<&=.\n\t 1ab"), max_size=80))
@example("|a|\n|-|\n|b|a|b|")
@example("- \n  a\n\n    b")
def test_no_word_is_lost(text: str) -> None:
    def letters(said: str) -> list[str]:
        return [character for character in said if character in "ab"]

    assert letters(marked(text).text) == letters(text)
