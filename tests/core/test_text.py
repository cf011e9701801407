"""Text from anywhere stays text: it can be stored, and printing it steers no terminal."""

import re

import pytest
from examples import examples
from growth import costs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from segue.core.text import count, one_line, printable, shorten, storable

DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi
    "\U000e0000-\U000e007f"  # tags
    "\ud800-\udfff]"
)
FRAGMENTS = (
    *("\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x1b(", "\x9b", "\x9d", "\x90", "\x98", "\x9c", "\x07", "\x00"),
    "\x7f",
    *("31m", "0;", "?25l", "8;;http://x", "[", "]", "m", "A", " ", "/", "\\", "é", "語", "👩‍👩‍👧", "\ue0a0"),
    *("\r\n", "\r", "\n", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\xa0"),
    *("\u202e", "\u2066", "\u200f", "\u061c", "\U000e0001", "\U000e0041", "\ud800", "\udc00", "\ufeff"),
)
anything = st.text(st.characters(), max_size=60)
nasty = st.lists(st.sampled_from(FRAGMENTS) | anything, max_size=12).map("".join)


@given(nasty)
@examples(50, in_torture=1000)
@example("\x1b\x1b[31m[31m")
@example("\x1b\x1b]0;\x07]0;title\x07")
@example("\x9b\x9b1m1m")
def test_nothing_that_steers_a_terminal_is_printed(text: str) -> None:
    assert not DANGEROUS.search(printable(text))


@given(nasty)
@examples(40, in_torture=500)
def test_printing_twice_is_printing_once(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.text("ab語é👋🏽\n\t #[]~;1", max_size=60))
@settings(max_examples=50)
def test_visible_text_newlines_and_tabs_are_printed_as_they_are(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1;31mred", "red"),
        ("\x1b[38:2::1:2:3mred", "red"),
        ("\x1b]0;owned\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x1b_Gi=1;AAAA\x1b\\after", "after"),
        ("\x1b(0after", "after"),
        ("\x1bcafter", "after"),
        ("\x1b]never ends", "never ends"),
        ("ends in escape\x1b", "ends in escape"),
        ("back\x08space", "backspace"),
        ("one\r\ntwo\rthree\x85four\u2028five\u2029six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("hidden\U000e0068\U000e0069", "hidden"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("👩🏽‍💻 é 語", "👩🏽‍💻 é 語"),
        ("", ""),
    ],
)
def test_what_is_printed_of(raw: str, shown: str) -> None:
    assert printable(raw) == shown


@pytest.mark.parametrize(
    "opening", ["\x90", "\x98", "\x9d", "\x9b", "\x1b]", "\x1b[", "\x1b", "\x1bP", "\x9b0", "\x1b "]
)
def test_a_long_run_of_unfinished_escapes_is_printed_in_one_pass(opening: str) -> None:
    assert not DANGEROUS.search(printable(opening * 1_000))
    assert costs(printable, opening.__mul__, 50_000).is_linear


def test_work_that_grows_faster_than_its_input_is_not_linear() -> None:
    """The control: every three characters are looked at, so that no noise makes it look linear."""
    assert not costs(lambda text: sum(1 for _ in text for _ in text for _ in text), "x".__mul__, 160).is_linear


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("  two\n\n words\t", "two words"),
        ("a\xa0b\u3000c", "a b c"),
        ("a\u2028b", "a b"),
        ("\x1b[2Jclear", "clear"),
        ("\n\t", ""),
    ],
)
def test_one_line_of(raw: str, line: str) -> None:
    assert one_line(raw) == line


@given(nasty)
@settings(max_examples=50)
def test_one_line_is_one_line_that_steers_nothing(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert "\t" not in line
    assert not DANGEROUS.search(line)


@given(nasty)
@settings(max_examples=50)
def test_stored_text_can_always_be_encoded(text: str) -> None:
    assert len(storable(text).encode("utf-8").decode("utf-8")) == len(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60))
@settings(max_examples=50)
def test_storing_changes_nothing_but_lone_surrogates_and_nul(text: str) -> None:
    assert storable(text) == text
    assert storable(f"{text}\ud83d{text}") == f"{text}\ufffd{text}"
    assert storable(f"{text}\x00{text}") == f"{text}\u2400{text}"


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("", 3, ""),
        ("one two", 5, "one…"),
        ("abcd", 1, "…"),
        ("cafe\u0301s", 5, "caf…"),
        ("日本語です", 4, "日本語…"),
    ],
)
def test_shortened(text: str, most: int, short: str) -> None:
    assert shorten(text, most) == short


@given(anything, st.integers(1, 40))
@settings(max_examples=50)
def test_shortened_text_is_never_longer_than_asked(text: str, most: int) -> None:
    short = shorten(text, most)
    assert len(short) <= most
    assert short == text if len(text) <= most else text.startswith(short.removesuffix("…"))


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param("e\u0301", id="accent"),
        pytest.param("n\u0303\u0323", id="two accents"),
        pytest.param("❤\ufe0f", id="emoji style"),
        pytest.param("1\ufe0f\u20e3", id="keycap"),
        pytest.param("👋🏽", id="skin tone"),
        pytest.param("🇫🇷", id="flag"),
        pytest.param("👨\u200d👩\u200d👧", id="family"),
        pytest.param("🏳\ufe0f\u200d🌈", id="rainbow flag"),
        pytest.param("क\u093f", id="Devanagari vowel sign"),
    ],
)
def test_text_is_never_cut_inside_what_is_read_as_one_character(cluster: str) -> None:
    text = "ab" + cluster * 3 + "cd"
    whole = {"", "a", "ab", "ab" + cluster, "ab" + cluster * 2, "ab" + cluster * 3, "ab" + cluster * 3 + "c"}
    for most in range(1, len(text)):
        assert shorten(text, most).removesuffix("…") in whole


@pytest.mark.parametrize(
    ("number", "phrase"),
    [(0, "0 sessions"), (1, "1 session"), (2, "2 sessions"), (12345, "12,345 sessions")],
)
def test_counted(number: int, phrase: str) -> None:
    assert count(number, "session") == phrase
