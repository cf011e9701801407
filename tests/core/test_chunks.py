"""A long text becomes several messages, and nothing of it is lost."""

import re
from collections.abc import Callable

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.chunks import MEASURES, characters, chunks, first_chunk, utf8_bytes, utf16_units

SNIPPETS = (
    *("word", " ", "  ", "\n", "\n\n", ". ", "! ", "-", "*", "**", "`", "``", "```", "````", "~~~", "~~~~", "~"),
    *("```python\n", "\n```\n", "\n~~~\n", "~~~ text `x`\n", "\n  ```js\n", "    indented", "\t", "\r\n", "```x`"),
    *("é", "e\u0301", "語。", "👩‍💻", "🇩🇪🇫🇷", "👍🏽", "x" * 30, "a longer run of words that go on ", "\ud800"),
)
texts = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=5), max_size=60).map("".join)
measures = st.sampled_from(list(MEASURES.values()))
FENCE_LINE = re.compile(r"(?m)^[ \t]*(?:`{3,}[^`\n]*|~{3,}[^\n]*)$")


def is_balanced(piece: str) -> bool:
    """An oracle that knows one thing: in which fence a line stands."""
    opened = ""
    for line in piece.split("\n"):
        mark = re.match(r"[ \t]*(`{3,}|~{3,})(.*)", line, re.DOTALL)
        if mark is None:
            continue
        if not opened and not (mark[1][0] == "`" and "`" in mark[2]):
            opened = mark[1]
        elif opened and mark[1].startswith(opened) and not mark[2].strip():
            opened = ""
    return not opened


def words_of(text: str) -> str:
    return "".join(text.split())


def is_said_in(text: str, pieces: list[str]) -> bool:
    """Whether everything but fences is there, in order."""
    ahead = iter("".join(pieces))
    return all(sign in ahead for sign in words_of(text) if sign not in "`~")


def words_in_code(text: str) -> tuple[list[str], list[str]]:
    """The numbered words outside and inside of blocks of code."""
    found: tuple[list[str], list[str]] = ([], [])
    is_code = False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        found[is_code].extend(re.findall(r"w\d+", line))
    return found


def test_a_text_that_fits_is_one_message_exactly_as_it_is() -> None:
    for text in ("hi", " hi \n", "```\nnobody closes this", "x" * 10):
        assert chunks(text, 30) == [text]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\n " * 50])
def test_what_says_nothing_is_no_message(text: str) -> None:
    assert chunks(text, 10) == []
    assert first_chunk(text, 10) == ""


@pytest.mark.parametrize(
    ("text", "longest", "pieces"),
    [
        pytest.param("One two.\n\nThree four.\nFive.", 20, ["One two.", "Three four.\nFive."], id="paragraphs first"),
        pytest.param("One two.\nThree four. Five.", 20, ["One two.", "Three four. Five."], id="then lines"),
        pytest.param("One two. Three four five.", 20, ["One two.", "Three four five."], id="then sentences"),
        pytest.param("one two three four five", 15, ["one two three", "four five"], id="then words"),
        pytest.param("one-two-three-four", 10, ["one-two-th", "ree-four"], id="then anywhere"),
        pytest.param(
            "Hi.\n\n" + "word " * 8, 20, ["Hi.\n\nword word word", "word word word word", "word"], id="filled"
        ),
        pytest.param("See https://example.org/abc", 24, ["See", "https://example.org/abc"], id="a word stays whole"),
        pytest.param("- one\n- two\n    - deep\n- three", 12, ["- one\n- two", "    - deep", "- three"], id="indents"),
        pytest.param("到此为止。我们明天再见。好", 8, ["到此为止。", "我们明天再见。好"], id="other full stops"),
    ],
)
def test_a_text_is_cut_where_it_hurts_least(text: str, longest: int, pieces: list[str]) -> None:
    assert chunks(text, longest) == pieces
    assert first_chunk(text, longest) == pieces[0]


@pytest.mark.parametrize(
    ("text", "longest", "pieces"),
    [
        pytest.param(
            "```python\none = 1\ntwo = 2\nthree = 3\n```\nThat is all.",
            50,
            ["```python\none = 1\ntwo = 2\nthree = 3\n```", "That is all."],
            id="a block that fits stays whole",
        ),
        pytest.param(
            "This is how it works:\n```python\none = 1\ntwo = 2\n```",
            45,
            ["This is how it works:", "```python\none = 1\ntwo = 2\n```"],
            id="a block begins a message",
        ),
        pytest.param(
            "~~~sh\n" + "  echo hello world\n" * 4 + "~~~\nDone.",
            50,
            ["~~~sh\n  echo hello world\n  echo hello world\n~~~"] * 2 + ["Done."],
            id="a block that does not fit is closed and opened again",
        ),
        pytest.param(
            "````md\n```\ninner\n```\nand then some more words\n````",
            40,
            ["````md\n```\ninner\n```\n````", "````md\nand then some more words\n````"],
            id="a longer fence holds a shorter one",
        ),
        pytest.param(
            "```" + "i" * 20 + "\nfirst line\nsecond line\n```",
            40,
            ["```" + "i" * 20 + "\nfirst line\n```", "```\nsecond line\n```"],
            id="a long word about the code is said once",
        ),
        pytest.param(
            "```\nsixteen letters.\n`````\nDone.",
            24,
            ["```\nsixteen letters.\n```", "Done."],
            id="a block that was closed is not opened again for nothing",
        ),
        pytest.param(
            "So:\n```python\n" + "x" * 60,
            50,
            ["So:", "```python\n" + "x" * 36 + "\n```", "```python\n" + "x" * 24 + "\n```"],
            id="no message ends with a block that has only begun",
        ),
        pytest.param(
            "One paragraph.\n\nAnd another:\n```\n" + "line of code\n" * 3 + "```",
            50,
            ["One paragraph.\n\nAnd another:", "```\n" + "line of code\n" * 3 + "```"],
            id="before a block is as good as between paragraphs",
        ),
        pytest.param(
            "aaaa bbbb cccccc ```dd eee",
            16,
            ["aaaa bbbb", "cccccc ```dd eee"],
            id="what is no fence does not become one",
        ),
    ],
)
def test_code_stays_code(text: str, longest: int, pieces: list[str]) -> None:
    assert chunks(text, longest) == pieces


@given(texts, st.integers(1, 200), measures)
@examples(50, in_torture=1000)
@example("`" * 500, 20, characters)
@example("```x`\n" * 20, 9, characters)
@example("👩‍💻" * 20, 3, utf8_bytes)
@example("```" + "i" * 100 + "\n" + "c" * 100, 40, characters)
def test_whatever_the_text_and_the_limit_nothing_is_lost(
    text: str, longest: int, measure: Callable[[str], int]
) -> None:
    pieces = chunks(text, longest, measure)
    assert all(piece.strip() for piece in pieces)
    assert all(measure(piece) <= longest or len(piece) == 1 for piece in pieces)
    assert is_said_in(text, pieces)
    if not any(map(FENCE_LINE.search, [text, *pieces])):
        assert words_of("".join(pieces)) == words_of(text)


@given(texts, st.integers(60, 300), measures)
@examples(50, in_torture=1000)
@example("`" * 500, 60, characters)
@example("words " * 20 + "```py\n" + "~~~ " * 40, 60, characters)
def test_every_message_closes_the_fences_that_it_opens(text: str, longest: int, measure: Callable[[str], int]) -> None:
    pieces = chunks(text, longest, measure)
    if len(pieces) > 1:
        assert [piece for piece in pieces if not is_balanced(piece)] == []


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=8), st.data())
@examples(40, in_torture=500)
def test_words_stay_words_and_code_stays_code(blocks: list[tuple[bool, int, int]], data: st.DataObject) -> None:
    text, number = "", 0
    for is_code, count, width in blocks:
        words = [f"w{number + one}" + (" " if (one + 1) % width else "\n") for one in range(count)]
        number += count
        body = "".join(words).rstrip()
        text += f"```python\n{body}\n```\n" if is_code else f"{body}\n\n"
    pieces = chunks(text, data.draw(st.integers(60, 300)))
    parts = [words_in_code(piece) for piece in pieces]
    assert tuple([word for part in parts for word in part[kind]] for kind in (0, 1)) == words_in_code(text)
    assert not any(re.search(r"```python\n```", piece) for piece in pieces)


def test_the_units_of_a_platform_are_counted() -> None:
    assert [measure("a é 👩") for measure in MEASURES.values()] == [5, 6, 9]
    assert chunks("👩" * 6, 4, utf16_units) == ["👩👩"] * 3
    assert chunks("é" * 6, 4, utf8_bytes) == ["éé"] * 3


def test_what_is_read_as_one_character_is_not_cut() -> None:
    for one in ("👩‍💻", "🇩🇪", "👍🏽", "e\u0301"):
        pieces = chunks(one * 20, 7)
        assert len(pieces) > 1
        assert all(piece == one * (len(piece) // len(one)) for piece in pieces)


def test_only_a_character_that_is_longer_than_the_limit_is_longer() -> None:
    assert chunks("a👩b", 1, utf8_bytes) == ["a", "👩", "b"]
