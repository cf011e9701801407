"""Sentences that answer, and sentences that tell what a conversation was about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.extracts import (
    Spoken,
    Summary,
    answering,
    excerpt_of,
    roots_of,
    sentences,
    share_of,
    summary_of,
)

CACHE = [
    Spoken("user", "Hello. Which cache did we want for the gateway?"),
    Spoken("assistant", "We chose Redis with a limit of 2 GB. It evicts the oldest keys. Anything else?"),
    Spoken("user", "What is for lunch?"),
    Spoken("assistant", "There is soup."),
]


@pytest.mark.parametrize(
    ("asked", "text", "share"),
    [
        ("climb", "a climbing rose", 1.0),
        ("allergies", "He has an allergy.", 1.0),
        ("tortillas", "la tortilla", 1.0),
        ("climbing rose", "a rose", 0.5),
        ("port", "a portrait", 1.0),
        ("tea", "a team", 0.0),
        ("無線", "有無線網路", 1.0),
        ("", "anything", 0.0),
    ],
)
def test_how_much_of_a_question_a_text_has(asked: str, text: str, share: float) -> None:
    assert share_of(roots_of(asked.split()), text) == share


def test_sentences_end_where_people_end_them() -> None:
    assert sentences("It costs 1.10 euros. Fine!\n- **one** thing\n* * *") == [
        "It costs 1.10 euros.",
        "Fine!",
        "one thing",
    ]
    assert sentences("灯塔不寻找船。它只是亮着！") == ["灯塔不寻找船。", "它只是亮着！"]


def test_an_answer_is_no_question_if_there_is_anything_else() -> None:
    found = answering(CACHE, roots_of(["cache", "gateway", "limit"]))
    assert found.text == "We chose Redis with a limit of 2 GB. It evicts the oldest keys."
    assert found.is_clear
    assert answering(CACHE[:1], roots_of(["cache"])).text.endswith("Which cache did we want for the gateway?")


def test_a_passage_of_a_long_sentence_shows_what_was_asked_for() -> None:
    text = "word " * 200 + "the dentist is on Tuesday " + "word " * 200
    found = answering([Spoken("assistant", text)], roots_of(["dentist"]))
    assert "the dentist is on Tuesday" in found.text
    assert len(found.text) <= 300
    assert found.text.startswith("…")


def test_without_words_there_is_no_clear_answer() -> None:
    assert not answering(CACHE, ()).is_clear
    assert answering([], roots_of(["x"])) == ("", 0.0)


def test_a_summary_has_the_first_request_the_telling_sentences_and_the_last_answer() -> None:
    said = [
        Spoken("user", "How should we water the garden?"),
        Spoken("assistant", "Water the tomatoes in the morning. The garden needs water twice a week. Yes."),
        Spoken("user", "And the roses in the garden? Okay."),
        Spoken("assistant", "Roses need deep water once a week. Mulch keeps the water in the garden."),
        Spoken("assistant", "Good luck with it."),
    ]
    told = summary_of(said)
    assert told.request == "How should we water the garden?"
    assert told.answer == "Good luck with it."
    assert told.sentences == (
        "The garden needs water twice a week.",
        "Roses need deep water once a week.",
        "Mulch keeps the water in the garden.",
    )


def test_a_summary_of_little_says_nothing_twice() -> None:
    assert summary_of([]) == Summary("", (), "")
    assert summary_of([Spoken("user", "Hello.")]) == Summary("Hello.", (), "")


def test_a_short_conversation_is_shown_whole_and_a_long_one_with_gaps() -> None:
    assert excerpt_of(CACHE, 4000) == CACHE
    long = [Spoken("user", f"{number} " + "x" * 100) for number in range(100)]
    assert excerpt_of([], 100) == []
    for around in (None, 50):
        shown = excerpt_of(long, 1000, around)
        assert sum(len(one.text) for one in shown if one) <= 1000
        assert None in shown
    assert [one and one.text[:3] for one in excerpt_of(long, 400, 50)][1:-1] == ["48 ", "49 ", "50 ", "51 "]
    assert [one and one.text[:2] for one in excerpt_of(long, 400)] == ["0 ", "1 ", None, "98", "99"]


@given(
    st.lists(st.builds(Spoken, st.sampled_from(["user", "assistant"]), st.text(max_size=200)), max_size=8), st.text()
)
def test_any_conversation_can_be_extracted_from(said: list[Spoken], asked: str) -> None:
    roots = roots_of(asked.split())
    found = answering(said, roots)
    assert 0 <= found.share <= 1
    assert all(len(line) <= 300 for line in (found.text, *summary_of(said).sentences))
    assert [one for one in excerpt_of(said, 10_000) if one] == said
