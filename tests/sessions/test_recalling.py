"""What an agent is told of the past: the right conversations, cut to size, and never the one that is going on."""

from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import DEADLINE

from segue.core.messages import Draft, State, draft
from segue.core.query import Query, parse, terms_of
from segue.core.recollection import FEW_CHARACTERS, MOST_CHARACTERS, passage
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sessions import Kind, Session
from segue.ports.store import Narrowing, Transaction
from segue.sessions import recalling
from segue.sessions.recalling import Recall, Recollection, recall, summarised
from segue.sessions.recording import append_message
from segue.sessions.searching import INCOMPLETE, Answer, search
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0
MANY = 70
"""More than are looked at in one search."""


def add(
    tx: Transaction,
    /,
    session_id: str,
    texts: list[str],
    kind: str = Kind.INTERACTIVE,
    principal: str = "owner",
    source: str = "cli",
    begin: float = NOW,
    **columns: Any,
) -> None:
    drafts = [draft("assistant" if number % 2 else "user", text, begin + number) for number, text in enumerate(texts)]
    fill(tx, Session(session_id, source, started_at=NOW, kind=kind, principal=principal, **columns), drafts)


def fill(tx: Transaction, session: Session, messages: list[Draft]) -> None:
    create_session(tx, session)
    for message in messages:
        append_message(tx, session.id, message)


def ask(store: SqlStore, text: str, scope: Scope = OWNER, **wanted: Any) -> Recall:
    return store.read(scope, recall, parse(text), NOW, UTC, lambda: DEADLINE, **wanted)


def about(text: str, most: int, asked: str) -> str:
    return passage(text, most, list(terms_of(parse(asked).tree)))


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


def names(found: Recall) -> list[str]:
    return [one.session.id for one in found.recollections]


def test_the_best_three_conversations_are_recalled_and_the_present_one_is_not(store: SqlStore) -> None:
    for number in range(5):
        store.write(OWNER, add, f"s{number}", [f"roses number {number}", "noted"])
    assert len(names(ask(store, "roses"))) == 3
    assert "s2" not in names(ask(store, "roses", current="s2", limit=10))
    assert len(names(ask(store, "roses", current="s2", limit=10))) == 4
    assert names(ask(store, "roses", current="gone", limit=1)) != []


def test_what_runs_by_itself_comes_after_people(store: SqlStore) -> None:
    store.write(OWNER, add, "job", ["roses are red"], Kind.AUTOMATION)
    store.write(OWNER, add, "talk", ["roses are red"])
    assert names(ask(store, "roses")) == ["talk", "job"]


def test_a_long_conversation_is_cut_around_its_matches(store: SqlStore) -> None:
    filler = [f"filler {number} " + "x" * 900 for number in range(300)]
    store.write(OWNER, add, "long", [*filler[:150], "the dentist is on Tuesday", *filler[150:]])
    [one] = ask(store, "dentist").recollections
    assert len(one.text) <= MOST_CHARACTERS
    assert "the dentist is on Tuesday" in one.text
    assert one.text.startswith("…\n")
    assert one.text.endswith("\n…")
    assert "filler 149 " in one.text
    assert "filler 0 " not in one.text
    assert one.opening[0].startswith("User: filler 0 ")
    assert one.closing[-1].startswith("User: filler 299 ")


def test_nobody_recalls_what_is_somebody_elses(store: SqlStore) -> None:
    store.write(OWNER, add, "alice", ["roses of alice"], Kind.INTERACTIVE, "telegram:1")
    assert names(ask(store, "roses", Scope(Principal("telegram:2")))) == []
    assert names(ask(store, "roses", Scope(Principal("telegram:1")))) == ["alice"]


def test_a_summariser_is_asked_once_for_each(store: SqlStore) -> None:
    store.write(OWNER, add, "s", ["roses", "noted"])
    found = ask(store, "roses")
    told = summarised("roses", found, lambda asked, one: f"{asked}: {len(one.text)} characters")
    assert [one.summary for one in told.recollections] == [f"roses: {len(found.recollections[0].text)} characters"]
    assert found.recollections[0].text == "User: roses\nAssistant: noted"


def test_a_topic_that_is_discussed_now_does_not_hide_what_was_said_of_it(store: SqlStore) -> None:
    store.write(OWNER, add, "old", ["roses in March"])
    store.write(OWNER, add, "begun", ["roses again"] * MANY)
    store.write(OWNER, add, "present", ["roses, still"] * MANY, parent_session_id="begun")
    store.write(OWNER, add, "helper", ["roses for a helper"] * MANY, Kind.SUBAGENT, spawned_by="begun")
    store.write(OWNER, add, "its-helper", ["roses for its helper"], Kind.SUBAGENT, spawned_by="helper")
    assert names(ask(store, "roses", current="begun", limit=9)) == ["old"]
    found = ask(store, "roses", current="present", limit=9)
    assert set(names(found)) == {"old", "present"}, "of an earlier part of it, a model is told a summary alone"
    assert all(hit.found.session_id in ("old", "begun") for one in found.recollections for hit in one.hits)
    assert set(names(ask(store, "roses", limit=9))) == {"old", "present", "helper", "its-helper"}


def test_many_hits_in_one_conversation_do_not_hide_the_next(store: SqlStore) -> None:
    store.write(OWNER, add, "oldest", ["roses in March"])
    for number in range(3):
        store.write(OWNER, add, f"part{number}", ["roses"] * MANY)
        store.write(OWNER, add, f"talk{number}", ["roses"] * MANY, parent_session_id=f"part{number}")
    found = ask(store, "roses", limit=4)
    assert set(names(found)) == {"oldest", "talk0", "talk1", "talk2"}
    assert len(found.notes) == len(set(found.notes))


def test_the_better_answer_comes_first_even_if_it_is_found_later(store: SqlStore) -> None:
    store.write(OWNER, add, "strong", ["roses, roses"])
    store.write(OWNER, add, "weak", ["roses " + "and so on " * 100] * 3 * MANY)
    assert names(ask(store, "roses")) == ["strong", "weak"]


def test_many_runs_of_a_job_do_not_hide_what_people_said(store: SqlStore) -> None:
    store.write(OWNER, add, "talk", ["roses"])
    for number in range(MANY):
        store.write(OWNER, add, f"run{number}", ["roses, roses, roses"] * 4, Kind.AUTOMATION)
    assert names(ask(store, "roses"))[0] == "talk"
    assert len(names(ask(store, "roses"))) == 3


def test_what_others_said_only_in_part_is_not_taken_for_more_of_the_same(store: SqlStore) -> None:
    store.write(OWNER, add, "other", ["roses, and nothing else"])
    store.write(OWNER, add, "whole", ["roses and tulips"] * MANY)
    found = ask(store, "roses tulips")
    assert names(found) == ["whole"]
    assert not [note for note in found.notes if note.startswith("No message")]
    assert names(ask(store, "roses tulips", current="whole")) == ["other"]


def rounds_of(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None) -> list[Answer]:
    """The answers of every search that is made from now on."""
    answers: list[Answer] = []

    def searching(tx: Transaction, query: Query, *rest: Any) -> Answer:
        answers.append(search(tx, query, *rest))
        then()
        return answers[-1]

    monkeypatch.setattr(recalling, "search", searching)
    return answers


def test_looking_further_ends_and_says_so(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        store.write(OWNER, add, f"s{number}", ["roses"] * MANY, begin=NOW + MANY * number)
    answers = rounds_of(monkeypatch)
    found = ask(store, "roses", limit=12)
    assert len(answers) == len(found.recollections) == 8
    assert found.notes.count(INCOMPLETE) == 1


def test_nothing_more_is_looked_for_when_the_time_is_up(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(OWNER, add, "first", ["roses"])
    store.write(OWNER, add, "second", ["roses"] * MANY)
    left = [5.0]
    answers = rounds_of(monkeypatch, lambda: left.append(0.0))
    found = store.read(OWNER, recall, parse("roses"), NOW, UTC, lambda: left[-1])
    assert (names(found), found.notes, len(answers)) == (["second"], [INCOMPLETE], 1)


def test_one_search_is_enough_where_it_finds_everything(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(OWNER, add, "s", ["roses"])
    answers = rounds_of(monkeypatch)
    assert names(ask(store, "roses")) == ["s"]
    assert len(answers) == 1


def test_only_what_is_asked_for_is_recalled(store: SqlStore) -> None:
    store.write(OWNER, add, "here", ["roses", "yes, roses"])
    store.write(OWNER, add, "there", ["roses", "no"], source="telegram")
    assert names(ask(store, "roses", narrowing=Narrowing(sources=("telegram",)))) == ["there"]
    assert names(ask(store, "roses", narrowing=Narrowing(roles=("assistant",)))) == ["here"]
    assert names(ask(store, "roses", narrowing=Narrowing(since=NOW + 1))) == ["here"]
    assert names(ask(store, "roses", narrowing=Narrowing(exclude_sessions=("here",)), current="there")) == []


@pytest.mark.parametrize("size", [0, 30, 300, FEW_CHARACTERS, 20_000])
def test_a_conversation_is_told_as_shortly_as_somebody_wants(store: SqlStore, size: int) -> None:
    long = "word " * 3_000
    texts = [f"{long} the dentist number {number} {long}" for number in range(5)]
    store.write(OWNER, add, "s", [long, long, *texts, long, long])
    [one] = ask(store, "dentist", size=size).recollections
    assert len(one.text) <= size
    assert len("".join(one.opening + one.closing)) <= size / 2
    if size >= FEW_CHARACTERS:
        assert all(f"dentist number {number}" in one.text for number in range(5))
        assert (len(one.opening), len(one.closing)) == (2, 2)


def test_a_conversation_of_many_matches_is_no_longer_than_it_may_be(store: SqlStore) -> None:
    store.write(OWNER, add, "s", ["dentist", "and so on " * 100] * 20)
    for size in range(60, 300, 4):
        [one] = ask(store, "dentist", size=size).recollections
        assert 0 < len(one.text) <= size


def test_the_best_of_many_matches_is_told_first(store: SqlStore) -> None:
    store.write(OWNER, add, "s", [*["dentist " + "and so on " * 100] * 30, "The dentist: dentist Doe!"])
    [one] = ask(store, "dentist", size=2_000).recollections
    assert "The dentist: dentist Doe!" in one.text


def test_a_long_message_is_cut_around_what_was_found_in_it(store: SqlStore) -> None:
    filler = "and so on, " * 2_000
    store.write(OWNER, add, "s", [f"Dear all, {filler} the dentist is on Tuesday {filler}", "noted"])
    [one] = ask(store, "the dentist").recollections
    assert "the dentist is on Tuesday" in one.text
    assert one.text.startswith("User: … ")
    assert one.text.endswith(" …\nAssistant: noted")
    assert 7_000 < len(one.text) < 8_100


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dentist", "my Dentist"),
        ("the dentist", "the dentist"),
        ('"to be there"', "to be there"),
        ("the art", "pure art"),
        ("denti*", "dentistry"),
        ("~entis", "a dentist"),
        ("dentists", "dentists'"),
        ("Zahnärztin", "ZAHNARZTIN"),
        ("牙医", "我的牙医很好"),
        ("C#", "in C# only"),
    ],
)
@pytest.mark.parametrize("filler", ["be there to start, to part in the ", "他们说话", "x", "é\n"])
def test_what_was_found_is_in_the_passage_wherever_it_stands(asked: str, said: str, filler: str) -> None:
    for ahead in (0, 20_000, 20_399):
        text = (filler * 20_000)[:ahead] + f" {said} " + (filler * 20_000)[:20_000]
        told = about(text, 1_000, asked)
        assert said in told
        assert len(told) <= 1_000


def test_what_begins_in_one_piece_and_ends_in_the_next_is_found() -> None:
    for ahead in range(3_990, 4_260):
        assert "牙医" in about("他" * ahead + "牙医" + "们" * 4_000, 1_000, "牙医")
        assert "dentist" in about("x" * ahead + "dentist" + "x" * 4_000, 1_000, "~dentist")


def test_words_that_stand_everywhere_do_not_tear_a_passage_apart() -> None:
    filler = "the one and the other, " * 500
    told = about(f"{filler} the dentist {filler}", 2_000, "the dentist")
    before, _, after = told.partition("the dentist")
    assert told.count("…") == 2
    assert min(len(before), len(after)) > 400


@pytest.mark.parametrize("text", ["a dentist, " * 100, ("a dentist, " + "and so on, " * 20) * 10])
def test_a_passage_of_many_pieces_is_no_longer_than_it_may_be(text: str) -> None:
    for most in range(1, 600):
        assert len(about(text, most, "dentist")) <= most


def test_matches_far_from_each_other_are_all_in_the_passage() -> None:
    filler = "and so on, " * 1_000
    told = about(f"{filler} dentist {filler} Tuesday {filler}", 2_000, "dentist tuesday")
    assert "dentist" in told
    assert "Tuesday" in told
    assert told.startswith("… ")
    assert told.count("…") == 3


def test_without_a_match_a_passage_is_the_beginning() -> None:
    assert about("one two three", 8, "nine") == "one two…"
    assert about("one two three", 13, "nine") == "one two three"
    assert about("one two three", 0, "two") == ""


@given(st.text(max_size=300), st.integers(-1, 200), st.text(max_size=20))
def test_no_passage_is_longer_than_it_may_be(text: str, most: int, asked: str) -> None:
    told = about(text, most, asked)
    assert len(told) <= max(most, 0) or told == text == ""


def test_what_was_compacted_is_told_and_what_was_undone_is_not(store: SqlStore) -> None:
    store.write(OWNER, add, "s", ["roses of old", "noted"])
    store.write(OWNER, lambda tx: tx.messages.mark("s", 1, State.LIVE, State.COMPACTED))
    for text in ("roses of today", "roses never"):
        store.write(OWNER, append_message, "s", draft("user", text, NOW))
    store.write(OWNER, lambda tx: tx.messages.mark("s", 4, State.LIVE, State.UNDONE))
    [one] = ask(store, "roses").recollections
    assert one.text == "User: roses of old\nAssistant: noted\nUser: roses of today"
    assert one.opening == ["User: roses of old", "Assistant: noted"]


def test_a_match_in_what_a_tool_was_told_is_seen_with_its_name(store: SqlStore) -> None:
    filler = "x, " * 5_000
    calls = [call("write_file", f'{{"text": "{filler} dentist on Tuesday {filler}"}}'), call("terminal", '{"c": "ls"}')]
    other = [call("terminal", f'{{"c": "echo {filler}"}}')]
    messages = [
        draft("user", "go on", NOW),
        draft("assistant", None, NOW, tool_calls=other),
        draft("assistant", "I write it down.", NOW, tool_calls=calls),
    ]
    store.write(OWNER, fill, Session("s", "cli", started_at=NOW), messages)
    [one] = ask(store, "dentist").recollections
    _, echoed, _, wrote, listed = one.text.split("\n")
    assert echoed.startswith('Assistant: [calls terminal {"c": "echo x, x, ')
    assert len(echoed) < 400
    assert wrote.startswith("[calls write_file … ")
    assert "dentist on Tuesday" in wrote
    assert listed == '[calls terminal {"c": "ls"}]'


def test_the_output_of_a_tool_is_told_shortly_unless_it_was_asked_for(store: SqlStore) -> None:
    output = "x, " * 5_000 + "the dentist is on Tuesday" + ", x" * 5_000
    messages = [draft("user", "which dentist?", NOW), draft("tool", output, NOW, tool_name="calendar")]
    store.write(OWNER, fill, Session("s", "cli", started_at=NOW), messages)
    [shortly] = ask(store, "dentist").recollections
    assert shortly.text.startswith("User: which dentist?\ncalendar: x, x, ")
    assert len(shortly.text) < 400
    [asked_for] = ask(store, "in:tools dentist tuesday").recollections
    assert "the dentist is on Tuesday" in asked_for.text
    assert "\ncalendar: … x, " in asked_for.text


def test_a_summary_that_fails_does_not_lose_the_others(store: SqlStore) -> None:
    store.write(OWNER, add, "a", ["roses"], title="The garden")
    for name in ("b", "c"):
        store.write(OWNER, add, name, ["roses"])

    def summarise(asked: str, one: Recollection) -> str:
        if one.session.id == "a":
            raise TimeoutError("The model is away.")
        return " " if one.session.id == "b" else f"{asked} in {one.session.id}"

    found = ask(store, "roses")
    made = summarised("roses", found._replace(notes=["A note."]), summarise)
    assert {one.session.id: one.summary for one in made.recollections} == {"a": None, "b": None, "c": "roses in c"}
    assert made.notes[0] == "A note."
    assert set(made.notes[1:]) == {"No summary could be made of 'The garden'.", "No summary could be made of 'b'."}
