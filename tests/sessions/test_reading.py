"""A conversation reads as one text: the summary, the tail that was kept, then what was said since."""

from typing import Any

import pytest

from segue.core.errors import SessionNotFound
from segue.core.messages import Spot, draft, draft_from
from segue.core.portable import from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.transcript import UNKNOWN_RESULT
from segue.ports.store import Store, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.importing import OnConflict, import_session
from segue.sessions.reading import conversation, view_of
from segue.sessions.recording import append_message, clear_messages, replace_messages
from segue.sessions.rewinding import restore_rewound, rewind_turns
from segue.sessions.starting import create_session

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
ROOM = Scope(Principal("room"), Audience("room"))
NAMES = ("mine", "bob's", "the room's")
CALL = {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"command":"ls"}'}}


def begin(store: Store, name: str, scope: Scope = ME) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0))


def say(store: Store, name: str, *texts: str) -> None:
    for text in texts:
        store.write(ME, append_message, name, draft("user", text, 2.0))


def tell(store: Store, session: str, /, **message: Any) -> None:
    store.write(ME, append_message, session, draft_from(message, 2.0))


def compress(store: Store, parent: str, child: str, kept: tuple[str, int] | None) -> None:
    summary = draft("user", f"summary in {child}", 3.0)
    boundary = Spot(*kept) if kept else None
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=boundary, now=3.0)


def view(store: Store, name: str, scope: Scope = ME) -> list[Any]:
    return [message.original for message in store.read(scope, view_of, name)]


def chat(store: Store, name: str, **wishes: Any) -> list[Any]:
    return store.read(ME, lambda tx: conversation(tx, name, **wishes))


def test_a_plain_session_is_what_was_said(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two")
    assert view(store, "a") == ["one", "two"]


def test_an_empty_session_says_nothing(store: Store) -> None:
    begin(store, "a")
    assert view(store, "a") == []
    assert chat(store, "a") == []


def test_what_was_undone_is_silent(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two", "three")
    store.write(ME, rewind_turns, "a", 2)
    say(store, "a", "four")
    assert view(store, "a") == ["one", "four"]


def test_a_compressed_conversation_is_summary_kept_tail_and_its_own_messages(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two", "three")
    compress(store, "a", "b", ("a", 2))
    assert view(store, "b") == ["summary in b", "two", "three"]
    say(store, "b", "four")
    assert view(store, "b") == ["summary in b", "two", "three", "four"]
    assert view(store, "a") == ["one", "two", "three"]


def test_a_tail_is_kept_across_two_ancestors(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two", "three")
    compress(store, "a", "b", ("a", 2))
    say(store, "b", "four", "five")
    compress(store, "b", "c", ("a", 3))
    say(store, "c", "six")
    assert view(store, "c") == ["summary in c", "three", "four", "five", "six"]
    compress(store, "c", "d", ("b", 2))
    say(store, "d", "seven")
    assert view(store, "d") == ["summary in d", "five", "six", "seven"]


def test_where_nothing_was_kept_there_is_only_the_summary(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two")
    compress(store, "a", "b", None)
    say(store, "b", "three")
    assert view(store, "b") == ["summary in b", "three"]


def test_what_an_ancestor_undid_stays_silent_in_the_tail(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two", "three")
    store.write(ME, rewind_turns, "a", 1)
    compress(store, "a", "b", ("a", 2))
    assert view(store, "b") == ["summary in b", "two"]


def test_a_child_without_its_ancestors_says_what_it_has(store: Store) -> None:
    data = {"id": "b", "source": "cli", "parent_session_id": "a", "kept_session_id": "a", "kept_seq": 2}
    messages = [{"seq": 0, "role": "user", "content": "summary"}, {"seq": 1, "role": "user", "content": "own"}]
    portable = from_mapping(data | {"messages": messages})
    store.write(ME, import_session, portable, on_conflict=OnConflict.SKIP, now=1.0)
    assert view(store, "b") == ["summary", "own"]


def test_nobody_reads_another_persons_messages_through_a_forged_link(store: Store) -> None:
    begin(store, "secret")
    say(store, "secret", "the owner's words")
    data = {"id": "b", "source": "cli", "parent_session_id": "secret", "kept_session_id": "secret", "kept_seq": 1}
    portable = from_mapping(data | {"messages": [{"role": "user", "content": "own"}]})
    store.write(BOB, import_session, portable, on_conflict=OnConflict.SKIP, now=1.0)
    assert view(store, "b", BOB) == ["own"]


def test_a_cleared_session_says_nothing_even_of_what_was_kept(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two")
    compress(store, "a", "b", ("a", 2))
    say(store, "b", "three")
    store.write(ME, clear_messages, "b")
    assert view(store, "b") == []


def test_what_was_cleared_comes_back_with_the_tail_that_was_kept(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two")
    compress(store, "a", "b", ("a", 2))
    say(store, "b", "three")
    before = store.read(ME, view_of, "b")
    first = store.read(ME, lambda tx: tx.messages.of("b")[0].id)
    store.write(ME, clear_messages, "b")
    store.write(ME, restore_rewound, "b", first)
    assert store.read(ME, view_of, "b") == before


def test_a_transcript_that_is_replaced_by_itself_says_the_same(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "one", "two")
    compress(store, "a", "b", ("a", 2))
    say(store, "b", "three")
    before = chat(store, "b")
    store.write(ME, replace_messages, "b", [draft_from(message, 9.0) for message in before])
    assert chat(store, "b") == before


@pytest.mark.parametrize("scope", [BOB, ROOM], ids=["a person", "a room"])
def test_a_session_of_somebody_else_is_not_there(store: Store, scope: Scope) -> None:
    begin(store, "a")
    for read in (view_of, conversation):
        with pytest.raises(SessionNotFound):
            store.read(scope, read, "a")


def first_of(tx: Transaction, name: str) -> int:
    return tx.messages.of(name)[0].id


def test_no_message_is_seen_outside_its_scope(store: Store) -> None:
    for name, scope in (("mine", ME), ("bob's", BOB), ("the room's", ROOM)):
        begin(store, name, scope)
        say(store, name, f"words of {name}")
    numbers = {name: store.read(ME, first_of, name) for name in NAMES}

    def seen(tx: Transaction, name: str) -> list[bool]:
        one = tx.messages
        every = (one.of(name, every_state=True), one.last(name, 5), one.last_user_seqs(name, 5), one.count(name))
        return [*map(bool, every), one.find(numbers[name]) is not None, one.find_seq(name, 1) is not None]

    for scope, shown in ((ME, set(NAMES)), (BOB, {"bob's"}), (ROOM, {"the room's"})):
        for name in NAMES:
            assert set(store.read(scope, seen, name)) == {name in shown}
        assert store.read(scope, lambda tx: tx.messages.count()) == len(shown)


def test_a_session_that_is_not_there_has_no_conversation(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        store.read(ME, conversation, "nobody")


# In chat format


def test_a_conversation_in_chat_format_is_the_one_that_was_stored(store: Store) -> None:
    begin(store, "a")
    exchange: list[dict[str, Any]] = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "list"}], "name": "zoe"},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning": "hm", "refusal": None},
        {"role": "tool", "tool_call_id": "call_1", "name": "terminal", "content": "a\x00b", "is_error": False},
        {"role": "assistant", "content": "done", "unheard_of": {"x": [1]}},
    ]
    for message in exchange:
        tell(store, "a", **message)
    assert chat(store, "a") == exchange


def test_a_call_without_a_result_is_answered_in_the_view_only(store: Store) -> None:
    begin(store, "a")
    tell(store, "a", role="assistant", content=None, tool_calls=[CALL])
    tell(store, "a", role="user", content="never mind")
    missing = {"role": "tool", "tool_call_id": "call_1", "content": UNKNOWN_RESULT}
    assert chat(store, "a")[1] == missing
    assert store.read(ME, lambda tx: tx.messages.count("a")) == 2


def test_a_result_that_came_late_stands_behind_its_call(store: Store) -> None:
    begin(store, "a")
    tell(store, "a", role="assistant", content=None, tool_calls=[CALL])
    tell(store, "a", role="user", content="wait")
    tell(store, "a", role="tool", content="late", tool_call_id="call_1")
    assert [one["content"] for one in chat(store, "a")] == [None, "late", "wait"]


def test_a_tail_kept_from_an_ancestor_is_valid_by_itself(store: Store) -> None:
    begin(store, "a")
    tell(store, "a", role="assistant", content=None, tool_calls=[CALL])
    tell(store, "a", role="tool", content="result", tool_call_id="call_1")
    compress(store, "a", "b", ("a", 2))  # the boundary stands between call and result
    tell(store, "b", role="assistant", content="done")
    assert [one["role"] for one in chat(store, "b")] == ["user", "assistant"]


def test_a_call_in_an_ancestor_is_answered_by_its_child(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "go")
    tell(store, "a", role="assistant", content=None, tool_calls=[CALL])
    compress(store, "a", "b", ("a", 1))
    tell(store, "b", role="tool", content="result", tool_call_id="call_1")
    assert [one["content"] for one in chat(store, "b")] == ["summary in b", "go", None, "result"]


def test_reasoning_goes_back_only_to_the_provider_that_made_it(store: Store) -> None:
    begin(store, "a")
    tell(store, "a", role="assistant", content="x", reasoning="hm", provider="anthropic")
    assert chat(store, "a", provider="anthropic")[0]["reasoning"] == "hm"
    assert "reasoning" not in chat(store, "a", provider="openai")[0]


def test_in_a_shared_lane_everybody_signs(store: Store) -> None:
    begin(store, "a")
    tell(store, "a", role="user", content="hi", author="Zo[ë]\n")
    assert chat(store, "a", shared=True)[0]["content"] == "[Zoë] hi"
    assert chat(store, "a")[0]["content"] == "hi"
