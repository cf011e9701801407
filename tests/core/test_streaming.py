"""An answer that is read while it is written."""

import re
from itertools import pairwise

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.chunks import MEASURES, characters
from segue.core.fences import open_fence
from segue.core.silence import is_silent
from segue.core.streaming import PATIENCE, Shown, Streaming, Wait, balanced, show, unfinished

SETTINGS = Streaming(edit_interval=1.0, buffer_threshold=10, cursor="▌")
LONG_AGO = 100.0
SNIPPETS = (
    *("word ", "\n", "\n\n", "*", "**", "**bold** ", "`", "``", "`code` ", "``a ` b`` ", "- item\n", "~~~", "```"),
    *(
        "```python\n",
        "one = 1\n",
        "\n```\n",
        "~~~sh\n",
        "\n~~~\n",
        "````md\n```\n",
        "👩‍💻",
        "NO_REPLY",
        "x" * 30,
        "2 ** 3 ",
    ),
)
answers = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=5), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("seconds", "fresh", "is_shown"),
    [
        pytest.param(0.5, 500, False, id="at most one edit in an interval"),
        pytest.param(1.0, 10, True, id="an interval has passed and enough has come"),
        pytest.param(1.0, 9, False, id="too little has come"),
        pytest.param(PATIENCE - 0.1, 9, False, id="still too little"),
        pytest.param(PATIENCE, 1, True, id="a little after a long time"),
        pytest.param(LONG_AGO, 0, False, id="nothing has come"),
    ],
)
def test_an_edit_waits_for_its_time_and_for_words(seconds: float, fresh: int, is_shown: bool) -> None:
    shown = Shown(at=50.0, text="word▌", length=4)
    found = show("word" + "s" * fresh, shown, 50.0 + seconds, SETTINGS, 2000)
    assert isinstance(found, Shown) == is_shown
    if is_shown:
        assert found == Shown(50.0 + seconds, "word" + "s" * fresh + "▌", 4 + fresh)


@pytest.mark.parametrize(
    ("fresh", "until"),
    [
        pytest.param(500, 51.0, id="until the interval has passed"),
        pytest.param(3, 51.0, id="first of all for the interval"),
        pytest.param(0, None, id="for words"),
    ],
)
def test_whoever_waits_knows_how_long(fresh: int, until: float | None) -> None:
    shown = Shown(at=50.0, text="word▌", length=4)
    assert show("word" + "s" * fresh, shown, 50.5, SETTINGS, 2000) == Wait(until)


def test_few_words_are_shown_when_the_wait_is_over() -> None:
    shown = Shown(at=50.0, text="word▌", length=4)
    found = show("words", shown, 51.5, SETTINGS, 2000)
    assert found == Wait(50.0 + PATIENCE)
    assert isinstance(show("words", shown, 50.0 + PATIENCE, SETTINGS, 2000), Shown)


def test_the_first_words_wait_for_no_interval() -> None:
    begun = Shown(at=50.0)
    assert show("ten words..", begun, 50.1, SETTINGS, 2000) == Shown(50.1, "ten words..▌", 11)
    assert show("few", begun, 50.1, SETTINGS, 2000) == Wait(50.0 + PATIENCE)


def test_nothing_is_shown_on_the_way_where_streaming_is_off() -> None:
    assert show("w" * 500, Shown(0.0), LONG_AGO, SETTINGS._replace(is_enabled=False), 2000) == Wait()


@pytest.mark.parametrize("answer", ["N", "NO_", "NO_REPLY", "**NO_REPLY", " NO_REPLY."])
def test_an_answer_that_may_be_none_is_not_shown(answer: str) -> None:
    assert show(answer, Shown(0.0), LONG_AGO, SETTINGS, 2000) == Wait()


@pytest.mark.parametrize("answer", ["No", "Nobody knows", "NOT yet"])
def test_an_answer_that_only_begins_alike_is_shown(answer: str) -> None:
    assert not is_silent(answer)
    assert isinstance(show(answer, Shown(0.0), LONG_AGO, SETTINGS, 2000), Shown)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param("Some words ", "Some words▌", id="words"),
        pytest.param("So:\n```py\none = 1", "So:\n```py\none = 1\n```\n▌", id="a block of code is closed"),
        pytest.param("So:\n```py\none = 1\n``", "So:\n```py\none = 1\n```\n▌", id="half a fence waits"),
        pytest.param("So:\n```py\none = 1\n```", "So:\n```py\none = 1\n```\n▌", id="a fence that has just come"),
        pytest.param("So:\n```p", "So:▌", id="a fence that is being opened waits"),
        pytest.param("~~~\n```\nx", "~~~\n```\nx\n~~~\n▌", id="the fence that is open, and no other"),
        pytest.param("Call `print", "Call `print`▌", id="code in a line is closed"),
        pytest.param("Call `", "Call▌", id="a lonely mark waits"),
        pytest.param("Call ``a ` b`", "Call ``a ` b``▌", id="half of what closes it"),
        pytest.param("Call ```a\nb\n``\nc", "Call ```a\nb\n``\nc```▌", id="what closes it is no fence"),
        pytest.param("This is **very", "This is **very**▌", id="bold words are closed"),
        pytest.param("This is **very*", "This is **very**▌", id="half of what closes them"),
        pytest.param("This is **", "This is▌", id="what opens them waits"),
        pytest.param("**Call `f", "**Call `f`**▌", id="one in the other"),
        pytest.param("Call `a**b` now", "Call `a**b` now▌", id="stars in code are no bold"),
        pytest.param("An **old\n\nparagraph", "An **old\n\nparagraph▌", id="what earlier paragraphs left open stays"),
        pytest.param("**", "", id="nothing to show"),
        pytest.param("\n\n", "", id="nothing at all"),
    ],
)
def test_what_is_open_is_closed_and_half_a_mark_waits(answer: str, text: str) -> None:
    assert unfinished(answer, "▌", 2000) == text


@given(answers, st.integers(1, 200), st.sampled_from(list(MEASURES)))
@examples(60, in_torture=1500)
@example("```" + "`" * 100, 20, "characters")
@example("So ```a\n``\n~~~\n" + "word " * 9, 20, "characters")
@example("So ```a\n```x` " + "word " * 9, 16, "characters")
@example("**" + "word " * 40, 20, "bytes")
def test_every_text_on_the_way_fits_is_balanced_and_ends_with_the_cursor(answer: str, longest: int, units: str) -> None:
    text = unfinished(answer, "▌", longest, MEASURES[units])
    assert MEASURES[units](text) <= longest
    assert text == "" or (text.endswith("▌") and text != "▌")
    assert open_fence(text) is None


@given(answers)
@examples(60, in_torture=1500)
@example("Call `x`\n`")
def test_what_is_balanced_stays_as_it_is(answer: str) -> None:
    once = balanced(answer)
    assert balanced(once) == once


def test_a_text_that_does_not_fit_stops_growing() -> None:
    answer = "".join(f"Sentence number {number} is here. " for number in range(40))
    shown, seen = Shown(0.0), []
    for step in range(1, 60):
        found = show(answer[: step * 25], shown, step * 2.0, SETTINGS, 200)
        if isinstance(found, Shown):
            shown = found
            seen.append(found.text)
    assert len(seen) > 3
    assert len(set(seen)) == len(seen)
    assert max(map(len, seen)) <= 200


def test_a_message_that_is_full_is_looked_at_again_after_an_interval() -> None:
    answer = "word " * 100
    full = show(answer, Shown(0.0), LONG_AGO, SETTINGS, 200)
    assert isinstance(full, Shown)
    later = LONG_AGO + 2.0
    assert show(answer * 2, full, later, SETTINGS, 200) == Wait(not_before=later + SETTINGS.edit_interval)


def test_what_lies_far_behind_the_first_message_costs_nothing() -> None:
    def cost(words: int) -> int:
        measured = 0

        def measure(text: str) -> int:
            nonlocal measured
            measured += len(text)
            return len(text)

        unfinished("word\n" * words, "▌", 200, measure)
        return measured

    assert cost(1_000) == cost(10_000)


@given(answers, st.integers(1, 10))
@examples(40, in_torture=500)
def test_edits_keep_their_distance(answer: str, pace: int) -> None:
    shown, moments = Shown(0.0), []
    for step in range(0, len(answer), pace):
        found = show(answer[:step], shown, step * 0.07, SETTINGS, 500)
        if isinstance(found, Shown):
            moments.append(found.at)
            shown = found
    assert all(later - earlier >= SETTINGS.edit_interval for earlier, later in pairwise(moments))


def test_a_cursor_of_nothing_leaves_the_text_alone() -> None:
    assert unfinished("So:\n```\nx", "", 2000, characters) == "So:\n```\nx\n```"
    assert re.fullmatch(r"w+", unfinished("w" * 50, "", 20))
