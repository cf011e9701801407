"""What is said, as Telegram takes it."""

from itertools import combinations, pairwise
from typing import Any

import pytest
from bot_api.texts import faults
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.attachments import Attachment
from segue.core.chunks import utf16_units
from segue.core.sources import SessionSource
from segue.core.streaming import unfinished
from segue.platforms.telegram.outbound import (
    LARGEST_PHOTO,
    LONGEST,
    MOST_ENTITIES,
    Rendered,
    Target,
    number_of,
    rendered,
    target_of,
    way_of,
)
from segue.ports.platform import SendRefused

PIECES = ["**", "*", "_", "~~", "`", "```\n", "\n", "\n\n", "> ", "- ", "1. ", "# ", "[a](https://b.c)", "[", "](x)"]
PIECES += ["|", "|-|-|\n", "a", "bc ", "😀", "中", " ", "\t", "\\", "é"]
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def shown(found: Rendered) -> list[tuple[str, str]]:
    units = found.text.encode("utf-16-le")

    def part(entity: dict[str, Any]) -> str:
        return units[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")

    return [(entity["type"], part(entity)) for entity in found.entities]


@pytest.mark.parametrize(
    ("markdown", "entities"),
    [
        ("😀 **bold** _it_", [("bold", "bold"), ("italic", "it")]),
        ("**use `x` now**", [("bold", "use"), ("code", "x"), ("bold", "now")]),
        ("**`x`**", [("code", "x")]),
        ("[`x`](https://a.b)", [("text_link", "x")]),
        ("[**x** y](https://a.b)", [("text_link", "x y"), ("bold", "x")]),
        ("# Title with [link](https://a.b)", [("bold", "Title with link"), ("text_link", "link")]),
        ("> quote\n> > inner\n>\n> ```\n> c\n> ```", [("blockquote", "quote\ninner\n\nc"), ("pre", "c")]),
        ("[tg](tg://user?id=5)", [("text_link", "tg")]),
        ("[me](mailto:a@b.c)", []),
        ("~~*both*~~", [("italic", "both"), ("strikethrough", "both")]),
    ],
)
def test_entities_say_how_it_looks(markdown: str, entities: list[tuple[str, str]]) -> None:
    assert sorted(shown(rendered(markdown))) == sorted(entities)


def test_code_tells_its_language_and_a_link_its_target() -> None:
    found = rendered("```python\nx\n```\n[a](https://b.c/d)")
    assert found.entities == [
        {"type": "pre", "offset": 0, "length": 1, "language": "python"},
        {"type": "text_link", "offset": 2, "length": 1, "url": "https://b.c/d"},
    ]


@pytest.mark.parametrize(
    "text", ["x" * 4096, "😀" * 2048, "  \n", "", "| a | b |\n|---|---|\n" + "|" + "x" * 3000 + "|y|\n|z|w|"]
)
def test_what_would_not_fit_stays_as_it_was_written(text: str) -> None:
    assert rendered(text) == Rendered(text, [])


def test_no_more_is_marked_than_telegram_reads() -> None:
    found = rendered("**a** b " * 300)
    assert len(found.entities) == MOST_ENTITIES


@given(MARKDOWN)
@example("**a `b` c** > [d `e`](https://f.g) ~~_h_~~")
@example("> ```\n>  \n> x\n>  \n> ```")
def test_telegram_finds_no_fault(markdown: str) -> None:
    found = rendered(markdown)
    assert list(faults(found.text, found.entities)) == []
    for one, other in pairwise(found.entities):
        assert one["offset"] <= other["offset"]
    assert len({(entity["type"], entity["offset"]) for entity in found.entities}) == len(found.entities)


@given(MARKDOWN, st.integers(0, 400))
def test_what_is_shown_on_the_way_has_no_fault_either(markdown: str, length: int) -> None:
    text = unfinished(markdown[:length], "▌", LONGEST, utf16_units)
    found = rendered(text)
    assert list(faults(found.text, found.entities)) == []


@given(st.text(max_size=300))
def test_entities_of_any_text_are_apart_or_nested(text: str) -> None:
    found = rendered(text)
    spans = [(entity["offset"], entity["offset"] + entity["length"]) for entity in found.entities]
    assert all(0 <= start < end <= utf16_units(found.text) for start, end in spans)
    for (start, end), (other_start, other_end) in combinations(spans, 2):
        assert end <= other_start or (start <= other_start and other_end <= end)


@pytest.mark.parametrize(
    ("route", "target"),
    [
        ({"chat_id": "5"}, Target(5, None)),
        ({"chat_id": "-100123", "chat_type": "group"}, Target(-100123, None)),
        ({"chat_id": "-100123", "chat_type": "group", "thread_id": "1"}, Target(-100123, None)),
        ({"chat_id": "-100123", "chat_type": "group", "thread_id": "7"}, Target(-100123, 7)),
        ({"chat_id": "5", "thread_id": "1"}, Target(5, 1)),
        ({"chat_id": "@news", "chat_type": "channel"}, Target("@news", None)),
    ],
)
def test_where_it_goes(route: dict[str, Any], target: Target) -> None:
    assert target_of(SessionSource(platform="telegram", **route)) == target


@pytest.mark.parametrize("chat", ["", "alice", "-", "1.5", "5x"])
def test_what_is_no_chat_is_refused(chat: str) -> None:
    with pytest.raises(SendRefused, match="is no chat on Telegram"):
        target_of(SessionSource(platform="telegram", chat_id=chat))


def test_messages_have_numbers() -> None:
    assert [number_of(said) for said in ("7", "", None, "x", "-1")] == [7, None, None, None, None]


@pytest.mark.parametrize(
    ("kind", "size", "way"),
    [
        ("image/png", 5, "photo"),
        ("image/jpeg", LARGEST_PHOTO + 1, "document"),
        ("image/svg+xml", 5, "document"),
        ("audio/mpeg", 5, "audio"),
        ("audio/ogg", 5, "voice"),
        ("video/mp4", 5, "video"),
        ("application/pdf", 5, "document"),
    ],
)
def test_as_what_a_file_is_sent(kind: str, size: int, way: str) -> None:
    assert way_of(Attachment("a", kind, size)) == way
