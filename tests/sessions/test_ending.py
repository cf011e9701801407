"""Sessions are ended from outside, and open ones are pruned: never one that somebody works in."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from lane_rows import ALICE, answered, begin, cut_off, found, hold, live_run, say

from segue.core.background import Process, ProcessState
from segue.core.errors import InUse, WrongState
from segue.core.leases import Run, lane_lease, session_lease
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.core.turns import Turn, TurnState
from segue.ports.store import Transaction
from segue.sessions import leasing
from segue.sessions.backgrounding import begin_process
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import find_prunable, prune, prune_conversation
from segue.sessions.ending import ENDED, GIVEN_UP, end_on_request
from segue.sessions.finding import get_session
from segue.sessions.minding import Hand
from segue.sessions.overseeing import find_lane
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run

HAND = Hand("console-run", is_gone)
NOW = 1_000.0


def open_one(store: SqlStore, name: str = "a", last_at: float = 10.0) -> str:
    store.write(OWNER, create_session, Session(name, "cli", title=name.title(), started_at=1.0))
    store.write(OWNER, append_message, name, draft("user", "hello", last_at))
    return name


def lane_session(store: SqlStore) -> str:
    session_id = store.read(OWNER, find_lane, ALICE).session_id
    assert session_id is not None
    return session_id


def state_of(store: SqlStore, session_id: str) -> tuple[float | None, str | None]:
    session = store.read(OWNER, get_session, session_id)
    return session.ended_at, session.end_reason


def pruned(store: SqlStore, before: float = 100.0) -> list[str]:
    """Return what is pruned together with idle sessions; the preview says the same beforehand."""
    shown = [one.id for one in store.read(OWNER, find_prunable, before, (), HAND)]
    gone = [entry.session_id for entry in store.write(OWNER, prune, before, NOW, (), HAND)]
    assert set(shown) == {name for name in gone if name in shown}
    assert bool(shown) is bool(gone)
    return gone


# Ending


@pytest.mark.parametrize("wanted", ["a", "A"])
def test_an_open_session_is_ended_by_id_and_by_title(store: SqlStore, wanted: str) -> None:
    open_one(store)
    assert store.write(OWNER, end_on_request, wanted, NOW, HAND).id == "a"
    assert state_of(store, "a") == (NOW, ENDED)


def test_what_is_not_open_is_refused_with_its_state(store: SqlStore) -> None:
    open_one(store)
    store.write(OWNER, end_on_request, "a", NOW, HAND)
    with pytest.raises(WrongState, match=r"Session a is not open \(ended: user_request\)\."):
        store.write(OWNER, end_on_request, "a", NOW + 1, HAND)
    assert state_of(store, "a") == (NOW, ENDED)


def test_of_a_compressed_conversation_the_newest_part_ends(store: SqlStore) -> None:
    open_one(store)
    summary = draft("user", "in short", 20.0)
    store.write(OWNER, compress_session, "a", child_id="b", summary=summary, kept=None, now=20.0)
    assert store.write(OWNER, end_on_request, "a", NOW, HAND).id == "b"
    assert state_of(store, "a") == (20.0, "compression")


def test_a_session_that_is_open_in_a_chat_is_not_ended(store: SqlStore) -> None:
    open_one(store)
    lease = hold(store, session_lease("a"), live_run(store, "segue chat"))
    with pytest.raises(InUse, match="open elsewhere: in segue chat"):
        store.write(OWNER, end_on_request, "a", NOW, HAND)
    store.write(OWNER, leasing.hold, lease)
    assert state_of(store, "a") == (None, None)


def test_a_session_whose_chat_was_killed_is_ended_and_its_answer_given_up(store: SqlStore) -> None:
    open_one(store)
    run = dead_chat(store)
    hold(store, session_lease("a"), run)
    turn = Turn("t", "a", run.id, TurnState.RUNNING, 1, 1, 10.0)
    store.write(OWNER, lambda tx: tx.turns.insert(turn))
    store.write(OWNER, end_on_request, "a", NOW, HAND)
    assert state_of(store, "a") == (NOW, ENDED)
    assert store.read(OWNER, lambda tx: tx.turns.running_in("a")) is None


def dead_chat(store: SqlStore) -> Run:
    """Return a run whose process is gone."""
    run = this_run("segue chat")._replace(id="killed", process_started="1")
    store.write(OWNER, leasing.begin_run, run)
    return run


def test_the_next_message_in_a_lane_begins_another_session(store: SqlStore) -> None:
    answered(store, "hello")
    old = lane_session(store)
    store.write(OWNER, end_on_request, old, NOW, HAND)
    begun = begin(store, say(store, "again"))
    assert begun.opened.session.id != old
    assert state_of(store, old)[1] == ENDED


def test_a_lane_in_which_somebody_works_keeps_its_session(store: SqlStore) -> None:
    answered(store, "hello")
    hold(store, lane_lease(ALICE), live_run(store))
    with pytest.raises(InUse, match="at work in"):
        store.write(OWNER, end_on_request, lane_session(store), NOW, HAND)


def test_a_message_whose_answer_was_cut_off_is_dead_with_a_reason(store: SqlStore) -> None:
    entry = cut_off(store, "hello")
    store.write(OWNER, end_on_request, lane_session(store), NOW, HAND)
    assert (found(store, entry).state, found(store, entry).reason) == ("dead", GIVEN_UP)


# Pruning what is open and idle


def test_idle_sessions_are_pruned_only_on_request(store: SqlStore) -> None:
    open_one(store)
    open_one(store, "young", last_at=100.0)
    assert store.write(OWNER, prune, 100.0, NOW) == []
    assert pruned(store) == ["a"]
    assert store.read(OWNER, lambda tx: tx.sessions.find("young")) is not None


def held_by_a_chat(store: SqlStore) -> None:
    hold(store, session_lease("a"), live_run(store, "segue chat"))


def with_a_process(store: SqlStore) -> None:
    run = live_run(store)
    process = Process("p", "a", run.id, "sleep 9", "/", 1, ProcessState.RUNNING, 10.0)
    store.write(OWNER, begin_process, process)


def pinned(store: SqlStore) -> None:
    store.write(OWNER, lambda tx: tx.sessions.change("a", pinned=1))


@pytest.mark.parametrize("use", [held_by_a_chat, with_a_process, pinned])
def test_an_open_session_that_is_in_use_or_pinned_is_never_pruned(
    store: SqlStore, use: Callable[[SqlStore], None]
) -> None:
    open_one(store)
    use(store)
    assert pruned(store) == []
    assert store.write(OWNER, prune_conversation, "a", 100.0, NOW, HAND) == []
    assert store.read(OWNER, lambda tx: tx.sessions.find("a")) is not None


def test_a_session_whose_chat_was_killed_is_idle(store: SqlStore) -> None:
    open_one(store)
    hold(store, session_lease("a"), dead_chat(store))
    assert pruned(store) == ["a"]


@pytest.mark.parametrize("state", ["worker", "waiting", "cut off"])
def test_a_lane_in_which_something_is_to_be_done_keeps_its_session(store: SqlStore, state: str) -> None:
    answered(store, "hello")
    if state == "worker":
        hold(store, lane_lease(ALICE), live_run(store))
    elif state == "waiting":
        say(store, "again")
    else:
        cut_off(store, "again")
    assert pruned(store, datetime.now(UTC).timestamp() + 100) == []


def test_an_idle_lane_goes_on_in_a_new_session(store: SqlStore) -> None:
    answered(store, "hello")
    old = lane_session(store)
    assert pruned(store, datetime.now(UTC).timestamp() + 100) == [old]
    assert begin(store, say(store, "again")).opened.session.id != old


def test_a_conversation_with_one_part_in_use_stays_whole(store: SqlStore) -> None:
    open_one(store)
    summary = draft("user", "in short", 20.0)
    store.write(OWNER, compress_session, "a", child_id="b", summary=summary, kept=None, now=20.0)
    hold(store, session_lease("b"), live_run(store, "segue chat"))
    assert pruned(store) == []

    def close(tx: Transaction) -> None:
        tx.leases.release_all(next(run.id for run in tx.leases.open_runs()))

    store.write(OWNER, close)
    assert pruned(store) == ["a", "b"]
