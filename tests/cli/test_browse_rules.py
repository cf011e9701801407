"""What is found, how wide a row is, what the bottom line has room for: the browser's rules, without a screen."""

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from segue.cli.browsing.cells import steady
from segue.cli.browsing.contents import as_typed
from segue.cli.browsing.keys import FILTER_KEYS, KEYS, fitting, key_at
from segue.cli.browsing.preview import flowed, window
from segue.cli.browsing.rows import heading, is_named, row_of, row_pieces, typed_words, widths
from segue.core.sessions import Listed

NOW = 1_741_170_000.0


def listed_row(**fields: Any) -> Listed:
    values: dict[str, Any] = dict.fromkeys(Listed._fields) | {
        "id": "20250305_091523_a1b2c3d4",
        "first_line": "",
        "source": "cli",
        "last_active_at": NOW,
        "message_count": 2,
        "pinned": 0,
    }
    return Listed(**values | fields)


@pytest.mark.parametrize(
    ("typed", "is_found"),
    [
        ("", True),
        ("lisbon", True),
        ("LISBON week", True),
        ("which may", True),
        ("20250305_09", True),
        ("lisbon which", True),
        ("ＬＩＳＢＯＮ", True),
        ("porto", False),
        ("lisbon porto", False),
        ("[red]", False),
        ("naive", True),
        ("NAÏVE", True),
    ],
)
def test_a_row_is_found_by_every_word_of_title_id_and_first_line(typed: str, is_found: bool) -> None:
    row = row_of(listed_row(title="A naïve week in Lisbon", first_line="Which week in May is best?"))
    assert is_named(row, typed_words(typed)) is is_found


@pytest.mark.parametrize("typed", ["Trip-ÄB", "trip-ab", "TRIP"])
def test_a_row_is_found_by_an_id_with_capitals(typed: str) -> None:
    assert is_named(row_of(listed_row(id="Trip-Äb3")), typed_words(typed))


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("lisb", "lisb*"),
        ("lisbon ", "lisbon*"),
        ("in lisbon \t ", "in lisbon*"),
        ("source:cli ", "source:cli"),
        ('"third week" ', '"third week"'),
        ("lisb*", "lisb*"),
        ("C#", "C#"),
        ("天", "天*"),
    ],
)
def test_the_last_word_may_be_unfinished(typed: str, asked: str) -> None:
    assert as_typed(typed) == asked


@given(text=st.text(max_size=60), width=st.integers(1, 200))
@example("👩‍👩‍👧‍👦👍🏽❤️1️⃣🇵🇹🏴‍☠️" * 12, 77)
@example("旅行の計画：京都と奈良をめぐる四日間の旅" * 6, 64)
@example("z\u0301\u0302\u0303" * 80, 40)
@example("a\x1b[2Jb\x1b]0;owned\x07c\nd\te\u202ef\u00ad\u200b", 30)
@example("ᄀ" * 30 + "ᅡᆨ" * 30, 55)
def test_a_row_is_exactly_as_wide_as_its_heading_whatever_it_says(text: str, width: int) -> None:
    columns = widths(width)
    for title, first_line in [(text, "Hello"), (None, text), ("Title", text)]:
        row = row_of(listed_row(title=title, first_line=first_line, source=text, message_count=10**12))
        drawn = "".join(piece for piece, _ in row_pieces(row, columns, NOW))
        assert cell_len(drawn) == cell_len("".join(piece for piece, _ in heading(columns)))
        assert not any(unicodedata.category(character) == "Cc" for character in drawn)


def test_a_title_that_is_the_first_line_is_shown_once() -> None:
    row = row_of(listed_row(title="Lisbon", first_line="Lisbon"))
    assert "".join(piece for piece, _ in row_pieces(row, widths(100), NOW)).count("Lisbon") == 1


def test_every_cell_of_the_list_is_used_when_there_is_room() -> None:
    for width in range(26, 200):
        columns = widths(width)
        gaps = 2 * sum(map(bool, (columns.source, columns.active, columns.messages)))
        assert sum(columns) + gaps + 2 == width
    assert widths(40).active
    assert not widths(40).messages
    assert all(widths(80))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("旅行 שלום é", "旅行 שלום é"),
        ("👩‍👩‍👧 family", "👩 family"),
        ("👍🏽 yes", "👍 yes"),
        ("🇵🇹 cake", "PT cake"),
        ("❤️ 1️⃣", "❤ 1"),
        ("🏴‍☠️ ship", "🏴 ship"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("क्\u200dष", "क्ष"),
    ],
)
def test_what_terminals_count_differently_is_shown_as_they_all_count_it(text: str, shown: str) -> None:
    assert steady(text) == shown


@pytest.mark.parametrize(
    ("at", "length", "expected"),
    [(0, 1, (0, 1)), (0, 9, (0, 5)), (4, 9, (2, 7)), (8, 9, (4, 9)), (2, 3, (0, 3))],
)
def test_the_parts_next_to_the_current_one_are_shown(at: int, length: int, expected: tuple[int, int]) -> None:
    assert window(at, length, 5) == expected


def test_facts_flow_and_none_is_lost() -> None:
    facts = ["one", "two", "旅行の計画", "a fact that is longer than the line itself"]
    assert flowed(facts, 14) == ["one · two", "旅行の計画", "a fact that is longer than the line itself"]
    assert flowed([], 14) == []


@pytest.mark.parametrize("keys", [KEYS, FILTER_KEYS])
def test_the_bottom_line_fits_and_keeps_the_way_out(keys: tuple[Any, ...]) -> None:
    for width in range(20, 160):
        shown = fitting(keys, width)
        assert len("  ".join(f"{key.sign} {key.label}" for key in shown)) <= width
    assert {"q", "question_mark"} <= {key.key for key in fitting(KEYS, 20)}
    assert [key.action for key in fitting(KEYS, 200)] == [key.action for key in KEYS if key.rank]


def test_a_key_in_the_bottom_line_is_found_by_its_cell() -> None:
    shown = fitting(KEYS, 80)
    text = "  ".join(f"{key.sign} {key.label}" for key in shown)
    for key in shown:
        at = text.index(f"{key.sign} {key.label}")
        assert key_at(shown, at) == key
        assert key_at(shown, at + len(f"{key.sign} {key.label}") - 1) == key
    assert key_at(shown, -1) is None
    assert key_at(shown, len(text)) is None
