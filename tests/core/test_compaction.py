"""Where a long conversation is cut, and what is left of old tool results."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.compaction import beginning, chunks, continued, plan, prunable, squeezed, turns_kept_on_request
from segue.core.messages import SUMMARY_SEQ, Said, draft, said
from segue.core.naming import chosen_title
from segue.core.pruning import NOTHING_LEFT, Cut, Pruning
from segue.core.silence import is_silent
from segue.core.sizes import tokens_in, tokens_of_all
from segue.core.summaries import accepted, fitted, plain_summary
from segue.core.text import storable
from segue.core.transcript import UNKNOWN_RESULT, as_chat


def user(text: str) -> tuple[str, str, list[str]]:
    return ("user", text, [])


def rows(*messages: tuple[str, str, list[str]]) -> list[Said]:
    """Messages with the ids of their calls, or of the call that they answer."""
    made = []
    for seq, (role, text, ids) in enumerate(messages, 1):
        calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
        answered = ids[0] if role == "tool" else None
        drafted = draft(
            role, text, 1.0, tool_calls=calls if role == "assistant" and ids else None, tool_call_id=answered
        )
        made.append(said(drafted, seq))
    return made


@st.composite
def conversations(draw: st.DrawFn) -> list[Said]:
    """Turns with several steps, each of which may call tools; the last one may be cut off anywhere."""
    messages: list[tuple[str, str, list[str]]] = []
    number = 0
    for _ in range(draw(st.integers(1, 12))):
        messages.append(("user", draw(st.text(max_size=200)), []))
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"c{(number := number + 1)}" for _ in range(draw(st.integers(0, 3)))]
            messages.append(("assistant", draw(st.text(max_size=200)), ids))
            messages += [("tool", "x" * draw(st.integers(0, 2_000)), [one]) for one in ids]
    view = rows(*messages)
    return view[: draw(st.integers(1, len(view)))]


def _stays_valid(kept: Sequence[Said]) -> bool:
    """Whether each result that stays has its call, and each call but the last has its results."""
    calls = {call["id"] for message in kept for call in message.calls}
    return all(message.tool_call_id in calls for message in kept if message.role == "tool")


@given(conversations(), st.integers(1, 3_000), st.integers(1, 20))
def test_a_cut_splits_no_call_from_its_result_and_loses_nothing(view: list[Said], tokens: int, turns: int) -> None:
    made = plan(view, tokens, turns)
    if made is None:
        return
    assert made.told + made.kept == view
    assert made.told
    assert made.kept
    assert _stays_valid(made.kept)
    whole = [chat for chat in as_chat(made.told) if chat.get("content") == UNKNOWN_RESULT]
    assert not whole, "what is summarised has all its results"
    assert sum(message.role == "user" for message in made.kept) <= turns


@given(conversations(), st.integers(1, 20))
def test_there_is_always_something_to_summarise_when_it_does_not_fit(view: list[Said], turns: int) -> None:
    steps = [at for at, message in enumerate(view) if message.role == "user" or (at and message.role == "assistant")]
    if len(steps) > 1 and _stays_valid(view):
        made = plan(view, 0, turns)
        assert made is None or len(made.kept) < len(view)


def test_as_many_turns_stay_as_may_and_fit() -> None:
    view = rows(*[one for number in range(30) for one in (user(f"question {number}"), ("assistant", "yes", []))])
    made = plan(view, 10_000, 20)
    assert made is not None
    assert made.kept[0].content == "question 10"
    short = plan(view, tokens_of_all(view[-6:]), 20)
    assert short is not None
    assert short.kept[0].content == "question 27"
    assert plan(view, 10_000, 30) is None


def test_a_summary_that_is_there_is_taken_up_and_not_told_again() -> None:
    summary = said(draft("user", "What came before.", 1.0), SUMMARY_SEQ)
    view = [summary, *rows(user("one"), ("assistant", "yes", []), user("two"), ("assistant", "yes", []))]
    made = plan(view, 1, 20)
    assert made is not None
    assert made.summary == "What came before."
    assert [message.content for message in made.told][:2] == ["one", "yes"]


def test_a_turn_that_is_too_long_by_itself_is_cut_and_what_was_asked_is_told() -> None:
    steps = [one for n in range(9) for one in (("assistant", "", [f"c{n}"]), ("tool", "x" * 700, [f"c{n}"]))]
    view = rows(user("make the soup"), *steps)
    made = plan(view, 500, 20)
    assert made is not None
    assert made.kept[0].role == "assistant"
    assert "make the soup" in continued("The summary.", view, made.kept)


@given(conversations(), st.integers(0, 3_000))
def test_a_beginning_fits_and_leaves_nothing_open(view: list[Said], tokens: int) -> None:
    begun = beginning(view, tokens)
    assert begun == view[: len(begun)]
    assert tokens_of_all(begun) <= tokens
    if len(begun) < len(view):
        assert not [chat for chat in as_chat(begun) if chat.get("content") == UNKNOWN_RESULT]


def test_a_call_that_never_got_a_result_keeps_nothing_open() -> None:
    """Whoever stops the first of two tools leaves the second without a result for ever."""
    stopped = [user("look"), ("assistant", "", ["c1", "c2"]), ("tool", "stopped", ["c1"])]
    later = [one for number in range(30) for one in (user(f"question {number}"), ("assistant", "yes " * 100, []))]
    view = rows(*stopped, *later)
    made = plan(view, 2_000, 20)
    assert made is not None
    assert tokens_of_all(made.kept) <= 2_000


@given(st.lists(st.text(max_size=500), max_size=20), st.integers(50, 2_000))
def test_every_piece_fits_and_has_every_word(texts: list[str], tokens: int) -> None:
    view = rows(*map(user, texts))
    pieces = chunks(view, tokens)
    assert all(tokens_in(piece) <= tokens + 8 * piece.count("\n") for piece in pieces)
    joined = "".join(piece.replace("\n", "") for piece in pieces)
    assert all(storable(text).replace("\n", "") in joined for text in texts)


# Summaries


def test_a_summary_about_something_else_is_refused() -> None:
    source = "Person: The leeks are in the cellar. Agent: I have noted the cellar."
    assert accepted("The leeks are kept in the cellar.", source, 500)
    assert accepted("", source, 500) is None
    assert accepted("Lorem ipsum dolor sit amet consectetur", source, 500) is None
    assert accepted("葱在地窖里", "Person: 葱在地窖里。", 500) == "葱在地窖里"
    assert accepted("!!! ??? …", source, 500) is None


@given(st.text(), st.integers(1, 500))
def test_what_is_fitted_fits(text: str, tokens: int) -> None:
    assert tokens_in(fitted(text, tokens)) <= tokens


@given(st.text(max_size=3_000), st.lists(st.text(max_size=300), max_size=60), st.integers(100, 2_000))
def test_a_summary_without_help_has_an_end(earlier: str, texts: list[str], tokens: int) -> None:
    assert tokens_in(plain_summary(earlier, rows(*map(user, texts)), tokens)) <= tokens * 1.2 + 40


# Old results


def with_results(*sizes: int) -> list[Said]:
    steps = [
        one
        for number, size in enumerate(sizes)
        for one in (user("?"), ("assistant", "", [f"c{number}"]), ("tool", "x" * size, [f"c{number}"]))
    ]
    return rows(*steps)


def test_old_results_keep_their_ends_and_the_last_answers_keep_theirs() -> None:
    rules = Pruning(min_chars=0)
    view = with_results(20_000, 20_000, 9_000, 9_000, 9_000)
    cuts = prunable(view, 35_000, rules)
    assert [(one.at, one.cut) for one in cuts] == [(2, Cut(1_500, 1_500)), (5, Cut(1_500, 1_500))]
    assert prunable(view, 200_000, rules) == []


def test_past_the_hard_share_nothing_is_left() -> None:
    cuts = prunable(with_results(40_000, 40_000, 10, 10, 10), 20_000, Pruning(min_chars=0))
    assert {one.cut for one in cuts} == {NOTHING_LEFT}


def test_few_characters_and_short_results_stay() -> None:
    assert prunable(with_results(40_000, 10, 10, 10), 10_000, Pruning()) == []
    view = with_results(60_000, 3_000, 10, 10, 10)
    assert [one.at for one in prunable(view, 40_000, Pruning())] == [2]


def test_what_was_cut_stays_cut() -> None:
    view = with_results(60_000, 60_000, 10, 10, 10)
    first = prunable(view, 100_000, Pruning())
    frozen = [message._replace(pruned="1500:1500") if message.role == "tool" else message for message in view]
    assert first
    assert prunable(frozen, 100_000, Pruning()) == []


def test_results_that_are_too_much_alone_are_squeezed() -> None:
    view = with_results(50_000, 80_000)
    cuts = {one.at: one.cut for one in squeezed(view, 5_000)}
    left = [message._replace(pruned=cuts[at].noted) if at in cuts else message for at, message in enumerate(view)]
    assert tokens_of_all(left) <= 6_000
    assert squeezed(view, 10**6) == []


def test_a_squeeze_never_shows_more_than_before() -> None:
    """A result of which nothing is left stays so, and a short one is not made longer by what says that it was cut."""
    view = [*with_results(9_000, 151, 60_000), *rows(user("z" * 9_000))]
    view[2] = view[2]._replace(pruned=NOTHING_LEFT.noted)
    assert [one.at for one in squeezed(view, 100)] == [8]


# On request


@pytest.mark.parametrize(
    ("turns", "protect_last_n", "kept"),
    [(0, 20, 1), (1, 20, 1), (7, 20, 1), (8, 20, 2), (30, 20, 7), (200, 20, 20), (200, 3, 3), (8, 1, 1)],
)
def test_on_request_a_quarter_of_the_turns_is_kept_and_no_more_than_are_protected(
    turns: int, protect_last_n: int, kept: int
) -> None:
    summary = said(draft("user", "what was said before", 1.0), SUMMARY_SEQ)
    spoken = [said(draft(role, "x", 1.0), 1 + at) for at in range(turns) for role in ("user", "assistant")]
    assert turns_kept_on_request([summary, *spoken], protect_last_n) == kept


# Small things


def test_silence() -> None:
    assert is_silent("NO_REPLY")
    assert is_silent("  NO_REPLY. ")
    assert is_silent("Saved it. NO_REPLY")
    assert is_silent("")
    assert not is_silent("I noted that you like leeks.")


ASKED = "please tell me how to make leek soup for six people"


@pytest.mark.parametrize(
    ("answer", "title", "source"),
    [
        ('"Soup for Sunday."', "Soup for Sunday", "model"),
        ("**Title: Soup for Sunday**", "Soup for Sunday", "model"),
        ("周日的汤", "周日的汤", "model"),
        ("", "please tell me how to make leek", "first_words"),
        (
            "Sure! " + "Here is a very long explanation of what I think " * 3,
            "please tell me how to make leek",
            "first_words",
        ),
        (json.dumps({"a": "b" * 200}), "please tell me how to make leek", "first_words"),
    ],
)
def test_a_title_is_what_was_answered_or_the_first_words(answer: str, title: str, source: str) -> None:
    assert chosen_title(answer, ASKED) == (title, source)
