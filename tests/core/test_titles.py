"""A title is one visible line, and the parts of a conversation are numbered without ever meeting another title."""

import re

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from segue.core.errors import TitleTooLong
from segue.core.titles import (
    clean_title,
    fitted_title,
    near_titles,
    next_title,
    numbered_title,
    shorten_title,
    split_title,
    title_from,
)

FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters
    "\u200b\u200c\u2060-\u2064\ufeff\u00ad\u034f\u180e"  # zero-width
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidi
    "\U000e0000-\U000e007f"  # tags
    "\ud800-\udfff]"
)
EMOJI = {
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "couple with two skin tones": "🧑🏻\u200d🤝\u200d🧑🏿",
    "coder with a skin tone": "👩🏽\u200d💻",
    "skin tone": "👋🏿",
    "flag": "🇫🇷",
    "rainbow flag": "🏳\ufe0f\u200d🌈",
    "pirate flag": "🏴\u200d☠\ufe0f",
    "transgender flag": "🏳\ufe0f\u200d⚧\ufe0f",
    "heart on fire": "❤\ufe0f\u200d🔥",
    "detective": "🕵🏻\u200d♂\ufe0f",
    "eye in a bubble": "👁\ufe0f\u200d🗨\ufe0f",
    "black bird": "🐦\u200d⬛",
    "nodding head": "🙂\u200d↕\ufe0f",
    "keycap": "1\ufe0f\u20e3",
    "copyright": "©\ufe0f",
}
FRAGMENTS = (
    *("\x00", "\x1b[31m", "\x7f", "\x9b", "\x85", "\n", "\t", " ", "\xa0", "\u3000", "\u2028"),
    *("\u200b", "\u200c", "\u200d", "\u2060", "\u2065", "\ufeff", "\xad", "\u034f", "\u202e", "\u2066", "\u200f"),
    "\u061c",
    *("\U000e0000", "\U000e0001", "\U000e0002", "\U000e0041", "\U000e007f", "\ud800", "\udfff"),
    *("a", "é", "e\u0301", "語", "한", "#2", " #9", "٣", *EMOJI.values()),
)
raw_titles = st.lists(st.sampled_from(FRAGMENTS) | st.text(st.characters(), max_size=8), max_size=40).map("".join)
clean_titles = raw_titles.map(fitted_title).filter(bool).map(str)


def zero_width_joiners_out_of_place(title: str) -> list[str]:
    """Joiners with a letter, a space, another joiner or nothing beside them."""
    around = (title[max(0, at - 1) : at + 2] for at, character in enumerate(title) if character == "\u200d")
    return [three for three in around if len(three) < 3 or three[0].isalnum() or three[2].isalnum() or " " in three]


@given(raw_titles)
@examples(50, in_torture=1000)
def test_a_title_holds_nothing_invisible_and_is_one_line(raw: str) -> None:
    title = fitted_title(raw) or ""
    assert not FORBIDDEN.search(title)
    assert not zero_width_joiners_out_of_place(title)
    assert title == " ".join(title.split())


@given(raw_titles)
@examples(40, in_torture=500)
@example("a" * 99 + " b")
@example("x" * 99 + "👨\u200d👩")
def test_a_generated_title_is_short_and_stays_as_it_is(raw: str) -> None:
    title = fitted_title(raw)
    assert title is None or 1 <= len(title) <= 100
    assert fitted_title(title) == clean_title(title) == title


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
@examples(40, in_torture=500)
def test_a_typed_title_is_cleaned_once_for_all_or_refused(raw: str) -> None:
    try:
        title = clean_title(raw)
    except TitleTooLong:
        return
    assert clean_title(title) == title == fitted_title(raw)


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("  my \t project\n", "my project"),
        ("two\u2028lines", "two lines"),
        ("no\x00nul\x7f", "nonul"),
        ("\x1b[31mred", "[31mred"),
        ("pay\u200bpal", "paypal"),
        ("txt.\u202eexe", "txt.exe"),
        ("soft\xadhyphen", "softhyphen"),
        ("tag\U000e0041ged", "tagged"),
        ("empty tag\U000e0000ged", "empty tagged"),
        ("language tag\U000e0002ged", "language tagged"),
        ("lone \ud83d half", "lone half"),
        ("a\u200db", "ab"),
        ("👩\u200d", "👩"),
        ("\u200d👩", "👩"),
        ("👩\u200d\u200d💻", "👩💻"),
        ("👩 \u200d 💻", "👩 💻"),
        ("Café 東京 サーバ 한국어 żółw", "Café 東京 サーバ 한국어 żółw"),
        ("de\u0301compose\u0301", "de\u0301compose\u0301"),
        ("שלום عربي", "שלום عربي"),
    ],
)
def test_what_is_kept_of(raw: str, title: str) -> None:
    assert clean_title(raw) == title


@pytest.mark.parametrize("emoji", EMOJI.values(), ids=EMOJI.keys())
def test_an_emoji_stays_whole(emoji: str) -> None:
    for title in (emoji, emoji * 3, f"ship {emoji} it", f"a{emoji}b"):
        assert clean_title(title) == title


@pytest.mark.parametrize("emoji", EMOJI.values(), ids=EMOJI.keys())
def test_a_title_that_is_shortened_does_not_end_in_half_an_emoji(emoji: str) -> None:
    for fitting in range(len(emoji)):
        words = "x" * (100 - fitting)
        assert fitted_title(words + emoji) in (words, words + emoji)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        " \t\n",
        "\u200b\ufeff",
        "\x00\x1f\x9f",
        "\u202e\u2066",
        "\ud800",
        "\u200d",
        "\ufe0f",
        "\U000e0100",
        "\u3164",
    ],
)
def test_a_title_without_anything_visible_is_none(raw: str | None) -> None:
    assert clean_title(raw) is None
    assert fitted_title(raw) is None


@pytest.mark.parametrize("character", ["a", "語", "👋"])
def test_a_typed_title_of_more_than_100_characters_is_refused_and_a_generated_one_shortened(character: str) -> None:
    assert clean_title(character * 100) == character * 100
    with pytest.raises(TitleTooLong, match="101"):
        clean_title(character * 101)
    assert fitted_title(character * 101) == character * 100


def test_only_what_is_kept_counts_towards_the_length() -> None:
    assert clean_title("a\u200b" * 100) == "a" * 100
    assert clean_title(" " * 500 + "a") == "a"


@pytest.mark.parametrize(
    ("beginning", "title"),
    [
        ("How do I renew the certificate of our mail server?", "How do I renew the certificate of"),
        ("hello", "hello"),
        ("one\ntwo\tthree", "one two three"),
        ("", None),
        (" \u200b ", None),
        ("x" * 300, "x" * 100),
    ],
)
def test_the_title_made_of_the_first_words(beginning: str, title: str | None) -> None:
    assert title_from(beginning) == title


@pytest.mark.parametrize(
    ("title", "base", "number"),
    [
        ("my project", "my project", 1),
        ("my project #2", "my project", 2),
        ("my project #10", "my project", 10),
        ("my project #2 #3", "my project #2", 3),
        ("my project#2", "my project#2", 1),
        ("my project #", "my project #", 1),
        ("my project #0", "my project #0", 1),
        ("my project #02", "my project #02", 1),
        ("my project #-2", "my project #-2", 1),
        ("my project #٣", "my project #٣", 1),
        ("my project #2 ", "my project #2 ", 1),
        ("#2", "#2", 1),
        ("# #2", "#", 2),
    ],
)
def test_the_name_and_the_number_of(title: str, base: str, number: int) -> None:
    assert split_title(title) == (base, number)


@pytest.mark.parametrize(
    ("title", "taken", "following"),
    [
        ("my project", [], "my project #2"),
        ("my project", ["my project"], "my project #2"),
        ("my project #2", ["my project", "my project #2"], "my project #3"),
        ("my project #9", ["my project #9"], "my project #10"),
        ("my project #10", ["my project #9", "my project #10"], "my project #11"),
        ("my project", ["my project", "my project #2", "my project #7"], "my project #8"),
        ("my project", ["my projects #5", "other #9"], "my project #2"),
        ("my project", ["my project#2", "my project #02"], "my project #2"),
        ("ticket #2", ["ticket #2"], "ticket #3"),
        ("ticket #2", ["ticket #2", "ticket #3"], "ticket #4"),
        ("ticket #2 #2", ["ticket #2", "ticket #2 #2"], "ticket #2 #3"),
        ("#2", [], "#2 #2"),
        ("x" * 99, [], "x" * 97 + " #2"),
        ("x" * 100, ["x" * 97 + " #2"], "x" * 97 + " #3"),
        ("x" * 97 + " #9", ["x" * 97 + " #9"], "x" * 96 + " #10"),
        ("x" * 96 + " #99", [], "x" * 95 + " #100"),
        ("x" * 96 + " yz", [], "x" * 96 + " #2"),
        ("x" * 99, ["x" * 97 + f" #{n}" for n in range(2, 10)], "x" * 96 + " #10"),
    ],
)
def test_the_next_part_is_called(title: str, taken: list[str], following: str) -> None:
    assert next_title(title, taken) == following


@given(clean_titles, st.lists(clean_titles, max_size=5), st.integers(1, 25))
@settings(max_examples=50)
@example("x" * 99, [], 120)
@example("語" * 100, ["語" * 97 + " #2"], 12)
def test_the_parts_of_a_conversation_never_share_a_title(title: str, strangers: list[str], parts: int) -> None:
    taken, numbers = {title, *strangers}, [split_title(title)[1]]
    for _ in range(parts):
        title = next_title(title, taken)
        assert title not in taken
        assert clean_title(title) == title
        taken.add(title)
        numbers.append(split_title(title)[1])
    assert numbers == sorted(set(numbers))


@given(clean_titles, st.integers(2, 999_999_999))
@settings(max_examples=50)
def test_a_numbered_title_can_be_split_again(base: str, number: int) -> None:
    title = numbered_title(base, number)
    shortened, again = split_title(title)
    assert again == number
    assert len(title) <= 100
    assert shortened == base if len(base) + len(f" #{number}") <= 100 else base.startswith(shortened)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        pytest.param("my projct", ["My project"], id="a letter is missing"),
        pytest.param("lisbon", ["A week in Lisbon", "Lisbon by train"], id="a part of two, the earlier one first"),
        pytest.param("cafe", ["Café"], id="without its accent"),
        pytest.param("li", [], id="too short to be a part"),
        pytest.param("", [], id="nothing"),
        pytest.param("soup for monday", [], id="nothing alike"),
        pytest.param("note", ["Note 0", "Note 1", "Note 2"], id="three at most"),
    ],
)
def test_the_titles_that_somebody_may_have_meant(typed: str, near: list[str]) -> None:
    notes = [f"Note {number}" for number in range(9)]
    assert near_titles(typed, ["A week in Lisbon", "My project", "Lisbon by train", "Café", *notes]) == near


@pytest.mark.parametrize(
    ("title", "most", "shortened"),
    [
        ("my project #7", 13, "my project #7"),
        ("my project #7", 12, "my proje… #7"),
        ("my project #7", 5, "my p…"),
        ("my project #7", 6, "my… #7"),
        ("my project #123", 12, "my pro… #123"),
        ("my project #1", 12, "my project…"),
        ("my project", 6, "my pr…"),
    ],
)
def test_a_shortened_title_keeps_its_number_where_there_is_room(title: str, most: int, shortened: str) -> None:
    assert shorten_title(title, most) == shortened
