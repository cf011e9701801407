"""Undo: messages fall silent and can speak again, and the counters say what is live."""

from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st

from segue.core.errors import MessageNotFound, SessionNotFound
from segue.core.messages import Message, draft
from segue.core.portable import from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Store
from segue.sessions.compressing import compress_session
from segue.sessions.exporting import export_lines
from segue.sessions.finding import get_session
from segue.sessions.importing import OnConflict, import_session
from segue.sessions.recording import append_message
from segue.sessions.rewinding import Rewound, restore_rewound, rewind_to, rewind_turns
from segue.sessions.starting import create_session

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
CALLS = [{"id": "c1"}, {"id": "c2"}]


def begin(store: Store, name: str = "s", scope: Scope = ME) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0))


def say(store: Store, text: str | None, role: str = "user", name: str = "s", **fields: Any) -> int:
    return store.write(ME, append_message, name, draft(role, text, 10.0, **fields)).id


@pytest.fixture
def ids(store: Store) -> list[int]:
    """Three turns: a question with two calls and their answer, a question with an answer, a question."""
    begin(store)
    return [
        say(store, "first question"),
        say(store, None, "assistant", tool_calls=CALLS),
        say(store, "result", "tool", tool_call_id="c1"),
        say(store, "first answer", "assistant"),
        say(store, "second question"),
        say(store, "second answer", "assistant", tool_calls=CALLS[:1]),
        say(store, "third question"),
    ]


def live(store: Store, name: str = "s") -> list[int]:
    return [message.seq for message in store.read(ME, lambda tx: tx.messages.of(name))]


def counters(store: Store, name: str = "s") -> tuple[int, int, str]:
    session = store.read(ME, get_session, name)
    return session.message_count, session.tool_call_count, session.first_line


def everything(store: Store) -> str:
    pieces: list[str] = []
    store.read(ME, export_lines, pieces.append)
    return "".join(pieces)


# To a message


@pytest.mark.parametrize(
    ("target", "undone", "turns", "expected"),
    [
        pytest.param(6, 1, 1, (6, 3, "first question"), id="the last question"),
        pytest.param(4, 3, 2, (4, 2, "first question"), id="the question before"),
        pytest.param(0, 7, 3, (0, 0, ""), id="the first question"),
    ],
)
def test_undoing_a_question_silences_it_and_all_that_followed(
    store: Store, ids: list[int], target: int, undone: int, turns: int, expected: tuple[int, int, str]
) -> None:
    rewound = store.write(ME, rewind_to, "s", ids[target])
    assert (rewound.messages, rewound.turns) == (undone, turns)
    assert rewound.target is not None
    assert rewound.target.id == ids[target]
    assert live(store) == list(range(1, 8 - undone))
    assert counters(store) == expected
    assert store.read(ME, lambda tx: tx.messages.count("s")) == expected[0]


@pytest.mark.parametrize(
    "target", [1, 2, 3, 5], ids=["an answer with calls", "a tool result", "an answer", "another answer"]
)
def test_only_a_question_can_be_undone(store: Store, ids: list[int], target: int) -> None:
    before = everything(store)
    with pytest.raises(MessageNotFound):
        store.write(ME, rewind_to, "s", ids[target])
    assert everything(store) == before


def test_a_question_cannot_be_undone_twice(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_to, "s", ids[4])
    for target in (ids[4], ids[6]):
        with pytest.raises(MessageNotFound):
            store.write(ME, rewind_to, "s", target)


@pytest.mark.parametrize("number", [0, -1, 10**9, 2**63 - 1])
def test_there_must_be_a_message_to_undo_or_restore(store: Store, ids: list[int], number: int) -> None:
    for act in (rewind_to, restore_rewound):
        with pytest.raises(MessageNotFound):
            store.write(ME, act, "s", number)


def test_a_message_is_undone_only_in_its_own_session(store: Store, ids: list[int]) -> None:
    begin(store, "other")
    before = everything(store)
    for act in (rewind_to, restore_rewound):
        with pytest.raises(MessageNotFound):
            store.write(ME, act, "other", ids[0])
    assert everything(store) == before


def test_nobody_undoes_or_restores_what_is_not_theirs(store: Store, ids: list[int]) -> None:
    begin(store, "bob's", BOB)
    before = everything(store)
    for session, error in (("s", SessionNotFound), ("bob's", MessageNotFound)):
        for act in (rewind_to, restore_rewound):
            with pytest.raises(error):
                store.write(BOB, act, session, ids[0])
    with pytest.raises(SessionNotFound):
        store.write(BOB, rewind_turns, "s", 1)
    assert everything(store) == before


# By turns


@pytest.mark.parametrize(
    ("turns", "rewound", "left"),
    [(1, (1, 1), 6), (2, (3, 2), 4), (3, (7, 3), 0), (99, (7, 3), 0), (0, (0, 0), 7), (-1, (0, 0), 7)],
)
def test_turns_are_undone_from_the_end(
    store: Store, ids: list[int], turns: int, rewound: tuple[int, int], left: int
) -> None:
    result = store.write(ME, rewind_turns, "s", turns)
    assert (result.messages, result.turns) == rewound
    assert live(store) == list(range(1, left + 1))
    assert counters(store)[0] == left


def test_undo_says_what_the_first_of_them_said(store: Store, ids: list[int]) -> None:
    target = store.write(ME, rewind_turns, "s", 2).target
    assert target is not None
    assert (target.original, target.state) == ("second question", "live")


def test_undo_goes_on_where_the_last_one_stopped(store: Store, ids: list[int]) -> None:
    said = []
    for _ in range(4):
        target = store.write(ME, rewind_turns, "s", 1).target
        said.append(target and target.original)
    assert said == ["third question", "second question", "first question", None]


def test_there_is_nothing_to_undo_where_nobody_spoke(store: Store) -> None:
    begin(store)
    say(store, "hello", "assistant")
    assert store.write(ME, rewind_turns, "s", 1) == Rewound(0, 0, None)
    assert live(store) == [1]


def test_undo_needs_a_session(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        store.write(ME, rewind_turns, "nobody", 1)
    for act in (rewind_to, restore_rewound):
        with pytest.raises(SessionNotFound):
            store.write(ME, act, "nobody", 1)


def test_the_summary_of_a_compressed_conversation_is_no_turn(store: Store, ids: list[int]) -> None:
    summary = draft("user", "so far", 20.0)
    store.write(ME, compress_session, "s", child_id="child", summary=summary, kept=None, now=20.0)
    say(store, "next", name="child")
    assert store.write(ME, rewind_turns, "child", 5).turns == 1
    assert live(store, "child") == [0]
    assert counters(store, "child")[0] == 1


# Going on


def test_what_is_said_after_an_undo_gets_a_place_of_its_own(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_to, "s", ids[4])
    say(store, "another second question")
    assert live(store) == [1, 2, 3, 4, 8]
    assert counters(store) == (5, 2, "first question")


def test_an_undo_is_no_activity_and_takes_none_away(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_turns, "s", 3)
    assert store.read(ME, get_session, "s").last_active_at == 10.0


def test_after_undoing_everything_the_next_question_is_the_first(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_turns, "s", 3)
    say(store, "afresh")
    assert counters(store) == (1, 0, "afresh")


# Back again


def test_an_undo_can_be_taken_back(store: Store, ids: list[int]) -> None:
    before = everything(store)
    store.write(ME, rewind_to, "s", ids[4])
    assert store.write(ME, restore_rewound, "s", ids[4]) == 3
    assert everything(store) == before


def test_only_what_was_undone_from_there_on_speaks_again(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_to, "s", ids[0])
    assert store.write(ME, restore_rewound, "s", ids[4]) == 3
    assert live(store) == [5, 6, 7]
    assert counters(store) == (3, 1, "second question")


def test_there_is_nothing_to_restore_twice(store: Store, ids: list[int]) -> None:
    store.write(ME, rewind_turns, "s", 1)
    assert store.write(ME, restore_rewound, "s", ids[6]) == 1
    assert store.write(ME, restore_rewound, "s", ids[6]) == 0


def test_a_compacted_message_stays_compacted(store: Store) -> None:
    messages = [
        {"seq": 1, "state": "compacted", "role": "user", "content": "long ago"},
        {"seq": 2, "state": "undone", "role": "user", "content": "undone"},
        {"seq": 3, "state": "live", "role": "user", "content": "now"},
    ]
    portable = from_mapping({"id": "s", "source": "cli", "messages": messages})
    store.write(ME, import_session, portable, on_conflict=OnConflict.SKIP, now=1.0)

    def all_states() -> list[tuple[str, Message]]:
        rows = store.read(ME, lambda tx: tx.messages.of("s", every_state=True))
        return [(message.state, message) for message in rows]

    first = all_states()[0][1]
    assert store.write(ME, restore_rewound, "s", first.id) == 1
    assert [state for state, _ in all_states()] == ["compacted", "live", "live"]
    assert counters(store) == (2, 0, "undone")
    assert store.write(ME, rewind_turns, "s", 9).messages == 2
    assert [state for state, _ in all_states()] == ["compacted", "undone", "undone"]


@pytest.mark.parametrize("blank", ["", "   ", "\n\t ", " " * 900 + "far away"])
def test_a_first_message_that_shows_nothing_is_passed_over_before_and_after_an_undo(store: Store, blank: str) -> None:
    begin(store)
    say(store, blank)
    say(store, "hello")
    assert counters(store) == (2, 0, "hello")
    last = say(store, "undo me")
    store.write(ME, rewind_to, "s", last)
    assert counters(store) == (2, 0, "hello")


contents = st.sampled_from([None, "", " ", "\n", "word", "two\nlines", "x" * 300, "語", "\x00"])
turns = st.tuples(st.sampled_from(["user", "assistant", "tool"]), contents, st.sampled_from([None, [], CALLS, "odd"]))


@given(said=st.lists(turns, max_size=8), undo=st.integers(1, 4))
@examples(25, in_torture=200, suppress_health_check=SHARED_STORE)
def test_counting_one_by_one_and_counting_all_at_once_agree(store: Store, said: list[Any], undo: int) -> None:
    name = f"session {store.read(ME, lambda tx: len(tx.sessions.with_prefix('session', 1000)))}"
    begin(store, name)
    for role, content, calls in said:
        say(store, content, role, name, tool_calls=calls)
    before = store.read(ME, get_session, name)
    target = store.write(ME, rewind_turns, name, undo).target
    if target is not None:
        store.write(ME, restore_rewound, name, target.id)
    assert store.read(ME, get_session, name) == before
