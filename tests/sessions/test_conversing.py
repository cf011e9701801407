"""Conversations of programs: begun once, gone on with from any answer, read through all their parts, removed whole."""

import json
from typing import Any

import pytest
from lane_rows import begin, finish, say

from segue.core.errors import InUse, NotFound
from segue.core.inbox import Entry, InboxState
from segue.core.lifecycle import Phase, Suspension
from segue.core.messages import draft
from segue.core.moments import instant
from segue.core.policy import ResetReason
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.platforms.api_server.inbound import source_of
from segue.ports.store import Store, Transaction
from segue.sessions import calling
from segue.sessions.calling import Call, SpokenOtherwise
from segue.sessions.compressing import compress_session
from segue.sessions.conversing import (
    Footing,
    Room,
    footing_in,
    go_on_after,
    hand_over,
    is_anothers,
    move_to,
    put_down,
    remove,
    silence,
    stand_in,
    stretches,
)
from segue.sessions.discarding import empty_trash, purge_conversation
from segue.sessions.steering import suspend_lane

LAPTOP = Principal("api_server:laptop")
ME, EVE = Scope(LAPTOP), Scope(Principal("telegram:2"))
NOW = instant(1_000.0)


def room(name: str = "talk", agent: str = "main") -> Room:
    return Room(agent, source_of("laptop", name), LAPTOP)


def stand(store: Store, fresh_id: str = "a", name: str = "talk") -> Footing:
    return store.write(ME, stand_in, room(name), fresh_id, NOW)


def asked(store: Store, text: str, at: float) -> Entry:
    return say(store, text, platform="api_server", chat_id="talk", user_id="laptop", user_name="laptop", at=at)


def answered(store: Store, text: str, at: float) -> Entry:
    entry = asked(store, text, at)
    finish(store, begin(store, entry))
    return store.read(OWNER, lambda tx: tx.inbox.find(entry.id)) or entry


def words(store: Store, session_id: str) -> list[str | None]:
    return store.read(OWNER, lambda tx: [row.content for row in tx.messages.of(session_id)])


def go_on(store: Store, entry: Entry, fresh_id: str = "b", agent: str = "main") -> Footing:
    return store.write(ME, go_on_after, entry, room("other", agent), fresh_id, instant(5_000.0))


def give(store: Store, footing: Footing, text: str, at: float = 4_000.0) -> list[Any]:
    return store.write(ME, put_down, footing, [draft("assistant", text, at)])


def test_a_conversation_is_begun_once(store: Store) -> None:
    first = stand(store)
    assert (first.session_id, first.is_new) == ("a", True)
    again = stand(store, "b")
    assert (again.session_id, again.is_new) == ("a", False)
    assert asked(store, "hi", 1_001.0).lane_key == first.lane.key


@pytest.mark.parametrize(
    ("why", "reason"),
    [(Suspension.STOPPED, ResetReason.SUSPENDED), (Suspension.CRASHED, ResetReason.CRASHED)],
)
def test_what_is_said_in_a_suspended_one_begins_anew_for_the_reason_of_that(
    store: Store, why: Suspension, reason: ResetReason
) -> None:
    first = stand(store)
    store.write(OWNER, suspend_lane, first.lane.key, NOW, why)
    assert (stand(store, "b").session_id, stand(store, "c").session_id) == ("b", "b")
    (reset,) = store.read(OWNER, lambda tx: tx.lanes.resets(first.lane.key))
    assert (reset.from_session, reset.to_session, reset.reason) == ("a", "b", reason)


def test_what_was_put_down_first_is_told_and_the_agent_is_told_who_it_is(store: Store) -> None:
    give(store, stand(store), "I was here.")
    entry = answered(store, "hi", 4_001.0)
    assert entry.session_id == "a"
    assert words(store, "a") == ["I was here.", "hi"]
    session = store.read(OWNER, lambda tx: tx.sessions.find("a"))
    assert session is not None
    assert session.system_prompt == f"You are on {entry.lane_key}."


def test_nothing_is_put_down_or_taken_out_while_something_is_open(store: Store) -> None:
    footing = stand(store)
    (row,) = give(store, footing, "before")
    asked(store, "hi", 4_001.0)
    with pytest.raises(InUse):
        give(store, footing, "between")
    with pytest.raises(InUse):
        store.write(ME, silence, "a", row.seq)
    with pytest.raises(InUse):
        store.write(ME, remove, "a", 1.0)
    assert words(store, "a") == ["before"]


def test_behind_the_last_answer_the_conversation_goes_on(store: Store) -> None:
    stand(store)
    entry = answered(store, "one", 1_001.0)
    footing = go_on(store, entry)
    assert (footing.session_id, footing.is_new, footing.lane.key) == ("a", False, entry.lane_key)


def test_behind_what_waits_it_goes_on_too(store: Store) -> None:
    stand(store)
    first = asked(store, "one", 1_001.0)
    assert go_on(store, first).lane.key == first.lane_key
    asked(store, "two", 1_002.0)
    with pytest.raises(InUse):
        go_on(store, first)


def test_behind_an_earlier_answer_a_branch_begins(store: Store) -> None:
    stand(store)
    first = answered(store, "one", 1_001.0)
    answered(store, "two", 1_010.0)
    footing = go_on(store, first)
    assert (footing.session_id, footing.is_new) == ("b", True)
    assert words(store, "b") == ["one"]
    assert words(store, "a") == ["one", "two"]
    assert footing.lane.key == room("other").key
    assert store.write(ME, stand_in, room("other"), "c", NOW).session_id == "b"


def test_what_was_put_down_behind_an_answer_is_not_in_its_branch(store: Store) -> None:
    first = stand(store)
    entry = answered(store, "one", 1_001.0)
    give(store, first, "later")
    footing = go_on(store, entry)
    assert (footing.session_id, words(store, footing.session_id)) == ("b", ["one"])


def test_another_agent_gets_a_branch_and_is_told_who_it_is(store: Store) -> None:
    stand(store)
    footing = go_on(store, answered(store, "one", 1_001.0), agent="helper")
    session = store.read(OWNER, lambda tx: tx.sessions.find("b"))
    assert session is not None
    assert (session.agent, session.system_prompt, session.lane_key) == ("helper", None, footing.lane.key)


def test_a_summary_alone_is_nothing_that_was_said_since(store: Store) -> None:
    stand(store)
    entry = answered(store, "one", 1_001.0)
    summary = draft("user", "All in all.", 2_000.0)
    store.write(ME, compress_session, "a", child_id="a2", summary=summary, kept=None, now=2_000.0)
    assert go_on(store, entry).session_id == "a2"
    answered(store, "two", 2_001.0)
    assert (go_on(store, entry).session_id, words(store, "b")) == ("b", ["one"])


def test_what_was_never_begun_is_followed_by_nothing(store: Store) -> None:
    stand(store)
    entry = asked(store, "one", 1_001.0)
    store.write(OWNER, lambda tx: tx.inbox.change([entry], state=str(InboxState.CANCELLED)))
    with pytest.raises(NotFound):
        go_on(store, entry._replace(state=str(InboxState.CANCELLED)))


def test_a_conversation_is_read_and_removed_with_all_that_it_became(store: Store) -> None:
    stand(store)
    entry = answered(store, "one", 1_001.0)
    summary = draft("user", "All in all.", 2_000.0)
    store.write(ME, compress_session, "a", child_id="a2", summary=summary, kept=None, now=2_000.0)
    store.write(ME, suspend_lane, entry.lane_key, instant(2_500.0), "stuck")
    lane = store.read(ME, lambda tx: tx.lanes.find(entry.lane_key))
    assert lane is not None
    assert lane.phase is Phase.SUSPENDED
    assert stand(store, "c").session_id == "c"

    def names(tx: Transaction) -> list[str]:
        return [part.id for part in stretches(tx, "a")]

    assert store.read(ME, names) == ["a", "a2", "c"]
    assert store.read(ME, footing_in, "a").session_id == "c"
    with pytest.raises(NotFound):
        store.read(EVE, names)
    store.write(ME, remove, "a", 3_000.0)
    assert store.read(OWNER, lambda tx: [tx.sessions.find(one) for one in ("a", "a2", "c")]) == [None] * 3
    assert store.read(OWNER, lambda tx: sorted(one.session_id for one in tx.trash.listed())) == ["a", "a2", "c"]


def test_another_agent_takes_over_only_before_anybody_has_answered(store: Store) -> None:
    first = stand(store)
    give(store, first, "before")
    moved = store.write(ME, move_to, first, room("talk", "helper"), NOW)
    assert moved is not None
    assert (moved.session_id, moved.lane.key) == ("a", room("talk", "helper").key)
    assert store.read(ME, lambda tx: tx.lanes.find(first.lane.key)) is None
    other = stand(store, "b")
    answered(store, "hi", 1_001.0)
    assert store.write(ME, move_to, other, room("talk", "helper2"), NOW) is None


def test_one_message_is_taken_out_and_no_other(store: Store) -> None:
    footing = stand(store)
    rows = [give(store, footing, text)[0] for text in ("a", "b", "c")]
    store.write(ME, silence, "a", rows[1].seq)
    assert words(store, "a") == ["a", "c"]
    with pytest.raises(NotFound):
        store.write(ME, silence, "a", rows[1].seq)
    session = store.read(ME, lambda tx: tx.sessions.find("a"))
    assert session is not None
    assert session.message_count == 2


def call(digest: str = "d", at: float = 100.0) -> Call:
    return Call(digest, "lane", "chat", "main", at)


def test_a_call_is_kept_and_must_be_the_same(store: Store) -> None:
    store.write(ME, calling.keep_call, "m", call())
    assert store.read(ME, calling.same_call, "m", "d") == call()
    assert store.read(ME, calling.same_call, "other", "d") is None
    with pytest.raises(SpokenOtherwise):
        store.read(ME, calling.same_call, "m", "another")
    assert store.read(EVE, calling.find_call, "m") is None  # nobody sees what another one called


def test_what_was_done_under_a_key_is_found_again(store: Store) -> None:
    store.write(ME, calling.keep_done, "a", "k", "d", ["x"])
    assert store.read(ME, calling.find_done, "k", "d") == ["x"]
    assert store.read(EVE, calling.find_done, "k", "d") is None
    with pytest.raises(SpokenOtherwise):
        store.read(ME, calling.find_done, "k", "another")


def test_a_retry_is_recognised_for_a_while(store: Store) -> None:
    store.write(ME, calling.keep_call, "m", call())
    assert [store.read(ME, calling.retried, "d", now) for now in (100.0, 700.0, 701.0, 99.0)] == ["m", "m", None, None]
    assert store.read(ME, calling.retried, "x", 100.0) is None


def test_who_has_the_answer_does_not_try_again(store: Store) -> None:
    for name, digest in (("m", "d"), ("n", "d"), ("o", "dx")):
        store.write(ME, calling.keep_call, name, call(digest))
    store.write(ME, calling.has_arrived, "m", "d")  # the later one is meant, and has not arrived
    assert store.read(ME, calling.retried, "d", 100.0) == "n"
    store.write(ME, calling.has_arrived, "n", "d")
    assert [store.read(ME, calling.retried, one, 100.0) for one in ("d", "dx")] == [None, "o"]


def test_histories_that_are_alike_are_remembered_up_to_a_number(store: Store) -> None:
    for number in range(calling.MOST_ALIKE + 2):
        store.write(ME, calling.keep_call, f"m{number}", call()._replace(history="history"))
    found = store.read(ME, calling.calls_after, "history")
    assert list(found) == [f"m{number}" for number in range(2, calling.MOST_ALIKE + 2)]
    assert list(store.read(ME, calling.calls_after, "another")) == []


def test_instructions_are_news_once(store: Store) -> None:
    told = [store.write(ME, calling.is_news, "lane", one) for one in ("a", "a", "b", "a")]
    assert told == [True, False, True, True]


def test_a_name_that_goes_to_somebody_else_takes_no_words_along(store: Store) -> None:
    old = stand(store)
    store.write(ME, put_down, old, [draft("user", "mine", 1.0)])
    theirs = Room("main", source_of("laptop", "talk"), EVE.principal)
    assert store.read(OWNER, is_anothers, theirs)
    store.write(OWNER, hand_over, theirs, NOW)
    new = store.write(EVE, stand_in, theirs, "b", NOW)
    assert (new.session_id, new.lane.principal) == ("b", EVE.principal)
    assert words(store, "b") == []
    ended = store.read(ME, lambda tx: tx.sessions.find("a"))
    assert ended is not None
    assert ended.end_reason == "owner_changed"
    store.write(OWNER, hand_over, theirs, NOW)
    assert store.write(EVE, stand_in, theirs, "c", NOW).session_id == "b"


def facts(store: Store, scope: Scope) -> dict[str, str | None]:
    return store.read(scope, lambda tx: {key: tx.meta.get(key) for key in tx.meta.beginning("api:")})


def called_in(store: Store, scope: Scope, session_id: str) -> None:
    """Everything that is kept of a call."""

    def work(tx: Transaction) -> None:
        tx.meta.set(calling.METADATA + session_id, "{}")
        calling.is_news(tx, f"lane {session_id}", "Be brief.")
        made = Call(f"d{session_id}", f"lane {session_id}", "chat", "main", 1.0, session_id=session_id, history="h")
        calling.keep_call(tx, f"m{session_id}", made)
        calling.keep_done(tx, session_id, f"k{session_id}", "d", ["x"])

    store.write(scope, work)


@pytest.mark.parametrize("scope", [ME, OWNER])
@pytest.mark.parametrize("is_trashed", [False, True])
def test_nothing_is_kept_of_calls_in_a_conversation_that_is_purged(
    store: Store, scope: Scope, is_trashed: bool
) -> None:
    stand(store, "a", "one")
    stand(store, "b", "other")
    called_in(store, ME, "b")
    before = facts(store, ME)
    assert len(before) == 8
    called_in(store, ME, "a")
    called_in(store, OWNER, "a")
    if is_trashed:
        store.write(ME, remove, "a", 2.0)
    assert len(facts(store, ME)) > len(before)
    store.write(scope, purge_conversation, "a")
    assert facts(store, ME) == before
    assert (facts(store, OWNER) == {}) == (scope is OWNER)


def test_what_leaves_the_trash_for_good_takes_its_calls_along(store: Store) -> None:
    stand(store)
    called_in(store, ME, "a")
    store.write(ME, remove, "a", 2.0)
    assert facts(store, ME) != {}  # it may come back
    store.write(OWNER, empty_trash)
    assert facts(store, ME) == {}


def test_calls_that_nobody_tried_again_are_forgotten_by_those_that_come_later(store: Store) -> None:
    for number in range(50):
        store.write(ME, calling.keep_call, f"m{number}", call(f"same{number}", number * calling.RETRY_SECONDS))
    kept = [value for key, value in facts(store, ME).items() if key.startswith(calling.BODY)]
    assert [len(json.loads(value or "")) for value in kept] == [2]
