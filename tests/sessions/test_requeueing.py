"""Messages are answered after all, or no more: by whoever looks after the inbox."""

import time

import pytest
from lane_rows import ALICE, BOB, answered, begin, cut_off, died, finish, found, hold, live_run, say, try_to_begin

from segue.core.errors import Invalid, NotFound
from segue.core.inbox import OPEN, Entry, InboxState
from segue.core.leases import lane_lease
from segue.core.queueing import Drop, QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import TurnState
from segue.sessions.discarding import purge_conversation
from segue.sessions.leasing import release
from segue.sessions.reading import view_of
from segue.sessions.requeueing import (
    CANCELLED_HERE,
    cancel_messages,
    cancel_waiting,
    dead_messages,
    retry_messages,
)
from segue.storage.store import SqlStore

LONG_AGO = 1_700_000_000.0


def being_answered(store: SqlStore, text: str, person: str) -> Entry:
    """A message that a living gateway answers."""
    entry = say(store, text, person)
    begin(store, entry)
    hold(store, lane_lease(entry.lane_key), live_run(store))
    return entry


def test_a_dead_message_waits_again_as_a_new_attempt_of_no_turn(store: SqlStore) -> None:
    entry = died(store, "why?")
    assert (found(store, entry).state, found(store, entry).turn_id is None) == ("dead", False)
    (again,) = store.write(OWNER, retry_messages, [entry.id], 5.0)
    assert (again.state, again.turn_id, again.reason, again.ended_at, again.admitted_at) == (
        *("waiting", None, None, None),
        5.0,
    )
    finish(store, begin(store, again))
    assert found(store, entry).state == "done"


def test_what_is_retried_goes_before_what_came_later(store: SqlStore) -> None:
    first, second = died(store, "first"), died(store, "second")
    later = say(store, "later")
    store.write(OWNER, retry_messages, [second.id, first.id], time.time())
    waiting = store.read(OWNER, lambda tx: tx.inbox.waiting(ALICE))
    assert [entry.id for entry in waiting] == [first.id, second.id, later.id]


def test_the_end_of_the_turn_that_was_told_of_a_message_does_not_end_its_retry(store: SqlStore) -> None:
    rules = QueueRules(cap=1, drop=Drop.SUMMARIZE)
    dropped, kept = say(store, "too much", rules=rules), say(store, "the last", rules=rules)
    assert found(store, dropped).state == "cancelled"
    begun = begin(store, kept)
    assert found(store, dropped).turn_id == begun.situation.turn.id
    store.write(OWNER, retry_messages, [dropped.id], time.time())
    finish(store, begun)
    assert (found(store, kept).state, found(store, dropped).state) == ("done", "waiting")


def test_a_retry_does_not_set_the_clock_of_its_lane_back(store: SqlStore) -> None:
    entry = died(store, "long ago", at=LONG_AGO)
    answered(store, "today", at=LONG_AGO + 86400 * 3)
    (again,) = store.write(OWNER, retry_messages, [entry.id], LONG_AGO + 86400 * 3 + 60)
    finish(store, begin(store, again))
    lane = store.read(OWNER, lambda tx: tx.lanes.find(ALICE))
    assert lane is not None
    assert lane.last_person_at.timestamp() == LONG_AGO + 86400 * 3 + 60


def test_refused_and_cancelled_messages_are_answered_after_all(store: SqlStore) -> None:
    full = QueueRules(cap=1, drop=Drop.NEW)
    waits, refused = say(store, "one", rules=full), say(store, "two", rules=full)
    store.write(OWNER, cancel_messages, [waits.id], 1.0)
    assert [found(store, one).state for one in (waits, refused)] == ["cancelled", "refused"]
    store.write(OWNER, retry_messages, [waits.id, refused.id], 2.0)
    assert [found(store, one).state for one in (waits, refused)] == ["waiting", "waiting"]


def test_one_message_that_cannot_be_retried_keeps_all_as_they_are(store: SqlStore) -> None:
    dead, done, waits = died(store, "dead"), answered(store, "done"), say(store, "waits")
    running = being_answered(store, "running", "bob")
    for other, why in ((done, "was answered"), (waits, "waits already"), (running, "is being answered")):
        with pytest.raises(Invalid, match=why):
            store.write(OWNER, retry_messages, [dead.id, other.id], 1.0)
    with pytest.raises(NotFound, match="no message 999"):
        store.write(OWNER, retry_messages, [dead.id, 999], 1.0)
    assert found(store, dead).state == "dead"


def test_a_message_whose_answer_was_cut_off_can_be_retried(store: SqlStore) -> None:
    entry = cut_off(store, "again")
    (again,) = store.write(OWNER, retry_messages, [entry.id], 5.0)
    assert (again.state, again.turn_id) == ("waiting", None)
    begun = begin(store, again)
    assert begun.situation.turn.attempt == 1
    finish(store, begun)
    assert found(store, entry).state == "done"
    said = store.read(OWNER, view_of, begun.opened.session.id)
    assert [message.content for message in said if message.role == "user"] == ["again"], "it was said once"


def test_a_message_whose_answer_was_cut_off_can_be_cancelled_and_its_turn_ends(store: SqlStore) -> None:
    entry = cut_off(store, "never mind")
    store.write(OWNER, cancel_messages, [entry.id], 5.0)
    cancelled = found(store, entry)
    assert (cancelled.state, cancelled.reason) == ("cancelled", CANCELLED_HERE)
    turn = store.read(OWNER, lambda tx: tx.turns.find(cancelled.turn_id or ""))
    assert turn is not None
    assert (turn.state, turn.reason) == ("stopped", CANCELLED_HERE)
    assert store.read(OWNER, lambda tx: tx.inbox.open_lanes()) == []


def test_what_one_turn_answers_is_retried_and_cancelled_together(store: SqlStore) -> None:
    first, second = say(store, "one"), say(store, "two")
    begin(store, first, second)
    for act, state in ((cancel_messages, "cancelled"), (retry_messages, "waiting")):
        if act is cancel_messages:
            lease = hold(store, lane_lease(ALICE), live_run(store))
            with pytest.raises(Invalid, match="is being answered"):
                store.write(OWNER, act, [first.id], 5.0)
            store.write(OWNER, release, lease)
        changed = store.write(OWNER, act, [first.id] if act is cancel_messages else [first.id, second.id], 5.0)
        assert [(entry.id, entry.state) for entry in changed] == [(first.id, state), (second.id, state)]


def test_everything_dead_is_found_and_nothing_else(store: SqlStore) -> None:
    dead = [died(store, "one"), died(store, "two", "bob")]
    answered(store, "fine")
    say(store, "waits")
    assert [entry.id for entry in store.read(OWNER, dead_messages)] == [entry.id for entry in dead]


def test_a_message_whose_words_were_removed_is_not_retried(store: SqlStore) -> None:
    entry = died(store, "a secret")
    session = found(store, entry).session_id
    assert session is not None
    store.write(OWNER, purge_conversation, session)
    assert store.read(OWNER, dead_messages) == []
    with pytest.raises(Invalid, match="removed for good"):
        store.write(OWNER, retry_messages, [entry.id], 1.0)


def test_a_purge_also_removes_a_message_that_waits_again(store: SqlStore) -> None:
    entry, other = died(store, "a secret"), say(store, "something else", "bob")
    session = found(store, entry).session_id
    assert session is not None
    store.write(OWNER, retry_messages, [entry.id], 1.0)
    store.write(OWNER, purge_conversation, session)
    assert (found(store, entry).state, found(store, entry).text) == ("cancelled", "")
    assert store.read(OWNER, lambda tx: tx.inbox.open_lanes()) == [BOB]
    assert found(store, other).text == "something else"


def test_cancelling_says_by_whom_and_spares_what_is_being_answered(store: SqlStore) -> None:
    running, waits, dead = being_answered(store, "running", "bob"), say(store, "waits"), died(store, "dead", "carol")
    with pytest.raises(Invalid, match="is being answered"):
        store.write(OWNER, cancel_messages, [waits.id, running.id], 1.0)
    assert found(store, waits).state == "waiting"
    store.write(OWNER, cancel_messages, [waits.id, dead.id], 7.0)
    for entry in (waits, dead):
        row = found(store, entry)
        assert (row.state, row.reason, row.ended_at) == ("cancelled", CANCELLED_HERE, 7.0)
    with pytest.raises(Invalid, match="cancelled already"):
        store.write(OWNER, cancel_messages, [waits.id], 1.0)


def test_of_a_lane_what_has_begun_meanwhile_is_left_alone(store: SqlStore) -> None:
    begun, waits = say(store, "begun"), say(store, "waits")
    begin(store, begun)
    done = store.write(OWNER, cancel_waiting, [begun.id, waits.id], 1.0)
    assert [entry.id for entry in done] == [waits.id]
    assert found(store, begun).state == "running"


def test_a_turn_does_not_begin_with_a_message_that_was_cancelled_a_moment_before(store: SqlStore) -> None:
    chosen = [say(store, "one"), say(store, "two")]
    store.write(OWNER, cancel_messages, [chosen[0].id], 1.0)
    assert try_to_begin(store, *chosen) is None
    assert [found(store, one).state for one in chosen] == ["cancelled", "waiting"]
    assert store.read(OWNER, lambda tx: tx.lanes.find(ALICE)) is None


def test_messages_are_counted_and_shown_by_state_and_lane(store: SqlStore) -> None:
    answered(store, "done")
    dead, waits = died(store, "dead"), [say(store, f"waits {number}") for number in range(3)]
    other = say(store, "elsewhere", "bob", at=LONG_AGO)
    counted = store.read(OWNER, lambda tx: tx.inbox.count(list(InboxState)))
    assert counted == {"done": 1, "dead": 1, "waiting": 4}
    last = store.read(OWNER, lambda tx: tx.inbox.latest(["waiting", "dead"], 3, ALICE))
    assert [entry.id for entry in last] == [waits[0].id, waits[1].id, waits[2].id]
    assert [one.id for one in store.read(OWNER, lambda tx: tx.inbox.latest(["dead"], 3))] == [dead.id]
    queues = store.read(OWNER, lambda tx: tx.inbox.queues(OPEN))
    assert [(queue.lane_key, queue.waiting) for queue in queues] == [(BOB, 1), (ALICE, 3)]
    assert queues[0].oldest_at == other.admitted_at


def test_a_stopped_turn_can_be_retried_too(store: SqlStore) -> None:
    entry = say(store, "stopped")
    finish(store, begin(store, entry), TurnState.STOPPED, "", "Somebody stopped it.")
    (again,) = store.write(OWNER, retry_messages, [entry.id], 1.0)
    assert again.state == "waiting"
