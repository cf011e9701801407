"""Sessions whose time is over: what the rows say, and when nothing is done."""

from datetime import timedelta

import pytest

from segue.core.errors import InUse
from segue.core.keys import KeyRules
from segue.core.leases import Lease, Run, session_lease
from segue.core.messages import draft
from segue.core.moments import DAY, instant
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.scope import OWNER_AT_CONSOLE as ME
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource
from segue.core.turns import FAREWELL, Turn, TurnState
from segue.ports.store import Transaction
from segue.sessions.finalising import (
    CUT_OFF,
    LANE_GONE,
    Farewell,
    Try,
    end_farewell,
    find_due,
    find_left,
    owe_farewell,
    take_leave,
)
from segue.sessions.leasing import take_lease
from segue.sessions.opening import Arrival, Opened, Rules, open_session
from segue.sessions.recording import append_message
from segue.sessions.recovering import interrupt_left
from segue.sessions.steering import delete_lane, reset_on_request, switch_session
from segue.storage.store import SqlStore

RULES = Rules(
    KeyRules(), ResetPolicies(default=ResetPolicy(ResetMode.IDLE, idle=timedelta(hours=1))), timedelta(hours=1)
)
ALICE = SessionSource(platform="telegram", chat_id="1", user_id="1")
KEY = "agent:main:telegram:dm:1"
LATER, MUCH_LATER = DAY, 2 * DAY


def claim(tx: Transaction, session_id: str, principal: str) -> Lease:
    return take_lease(tx, session_lease(session_id), "run", principal, lambda _: False)


def arrive(store: SqlStore, at: float, fresh_id: str) -> Opened:
    """A message, as the gateway opens its session."""

    def work(tx: Transaction) -> Opened:
        before = tx.lanes.find(KEY)
        opened = open_session(tx, Arrival(ALICE, instant(at), fresh_id), RULES)
        owe_farewell(tx, before, opened, f"{fresh_id}-farewell", "run", at)
        append_message(tx, opened.session.id, draft("user", f"hello {fresh_id}", at))
        return opened

    return store.write(ME, work)


def leave(store: SqlStore, session_id: str, at: float, *, can_take_notes: bool = True) -> Farewell | None:
    return store.write(ME, take_leave, session_id, Try(f"try{at}", "run", at, can_take_notes), RULES, claim)


def due(store: SqlStore, at: float) -> list[str]:
    return store.read(ME, find_due, RULES, at)


def latest(store: SqlStore, session_id: str) -> Turn | None:
    return store.read(ME, lambda tx: tx.turns.latest(session_id, FAREWELL))


def test_a_lane_is_due_when_it_has_expired_and_not_before(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    assert due(store, 3600.0) == []
    assert leave(store, "a", 3600.0) is None
    assert due(store, 3601.0) == ["a"]
    farewell = leave(store, "a", 3601.0)
    assert farewell is not None
    assert farewell.turn is not None
    assert store.write(ME, end_farewell, farewell, [], None, 3602.0)
    assert due(store, LATER) == []
    assert leave(store, "a", LATER) is None


def test_a_message_that_comes_first_leaves_its_old_session_owing_once(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    arrive(store, LATER, "b")
    assert store.read(ME, find_left) == due(store, LATER) == ["a"]
    farewell = leave(store, "a", LATER)
    assert farewell is not None
    assert store.read(ME, find_left) == [], "it is being done"
    assert store.write(ME, end_farewell, farewell, [], None, LATER)
    assert due(store, LATER) == []
    lane = store.read(ME, lambda tx: tx.lanes.find(KEY))
    assert lane is not None
    assert (lane.session_id, lane.finalised_at) == ("b", None)


def test_what_was_finalised_before_the_message_owes_nothing(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    farewell = leave(store, "a", 4000.0)
    assert farewell is not None
    store.write(ME, end_farewell, farewell, [], None, 4000.0)
    arrive(store, LATER, "b")
    assert due(store, LATER) == []


def test_a_reset_that_somebody_asked_for_owes_nothing(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    store.write(ME, reset_on_request, KEY, "b", instant(10.0), "owner")
    assert due(store, 11.0) == []


def test_a_session_that_is_taken_up_again_owes_nothing_until_it_is_over_again(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    arrive(store, LATER, "b")
    store.write(ME, switch_session, KEY, "a", instant(LATER))
    assert leave(store, "a", LATER) is None
    assert due(store, LATER) == []
    assert due(store, MUCH_LATER) == ["a"]
    farewell = leave(store, "a", MUCH_LATER)
    assert farewell is not None
    assert farewell.turn is not None
    assert farewell.turn.id == "b-farewell", "the one that was owed"


def test_only_what_was_said_since_is_a_reason_to_remember_again(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    first = leave(store, "a", 4000.0)
    assert first is not None
    store.write(ME, end_farewell, first, [], None, 4000.0)
    store.write(ME, switch_session, KEY, "a", instant(4000.0))
    silent = leave(store, "a", 8000.0)
    assert silent is not None
    assert silent.turn is None, "finalised, and nobody was asked"
    store.write(ME, switch_session, KEY, "a", instant(8000.0))
    store.write(ME, append_message, "a", draft("user", "one more thing", 8000.0))
    again = leave(store, "a", 12000.0)
    assert again is not None
    assert again.turn is not None


def test_without_notes_it_is_over_at_once_and_nothing_counts_as_remembered(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    arrive(store, LATER, "b")
    farewell = leave(store, "a", LATER, can_take_notes=False)
    assert farewell is not None
    assert farewell.turn is None
    ended = latest(store, "a")
    assert ended is not None
    assert (ended.state, ended.first_seq) == (TurnState.DONE, 0)
    assert due(store, LATER) == []


def test_a_session_that_somebody_has_open_is_left_alone(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    store.write(ME, lambda tx: tx.leases.add_run(Run("chat", "segue chat", "h", "b", 1, "1", 1.0, 1.0)))
    store.write(ME, lambda tx: tx.leases.take(session_lease("a"), "chat", "owner", 60.0))
    with pytest.raises(InUse):
        leave(store, "a", LATER)
    assert latest(store, "a") is None


def test_a_lane_that_was_forgotten_owes_nothing_any_more(store: SqlStore) -> None:
    arrive(store, 0.0, "a")
    arrive(store, LATER, "b")
    store.write(ME, delete_lane, KEY, instant(LATER))
    assert leave(store, "a", LATER) is None
    ended = latest(store, "a")
    assert ended is not None
    assert ended.reason == LANE_GONE
    assert due(store, LATER) == []


def test_a_lane_of_other_settings_is_in_nobodys_way(store: SqlStore) -> None:
    together = RULES._replace(keys=KeyRules(dm_scope=DmScope.MAIN, main_key="home", owners=frozenset({"telegram:1"})))
    store.write(ME, open_session, Arrival(ALICE, instant(0.0), "old"), together)
    assert [lane.key for lane in store.read(ME, lambda tx: tx.lanes.listed())] == ["agent:main:home"]
    arrive(store, 0.0, "a")
    assert due(store, LATER) == ["a"]


def settled_crash(store: SqlStore, run_id: str, beside: str | None = None) -> None:
    """The process that began a farewell died, while a turn of another session ran beside it or not."""

    def work(tx: Transaction) -> None:
        run = Run(run_id, f"gateway {run_id}", "here", "boot", 7, "1", 1.0, 1.0)
        tx.leases.add_run(run)
        if beside is not None:
            tx.turns.insert(Turn(f"{run_id}-turn", beside, run_id, TurnState.RUNNING, 1, 0, 1.0))
        interrupt_left(tx, lambda one: one.id == run_id, 2.0)
        tx.turns.change(f"{run_id}-turn", state=str(TurnState.DONE), ended_at=2.0)

    store.write(ME, work)


def begun_in(store: SqlStore, run_id: str, at: float) -> Farewell | None:
    return store.write(ME, take_leave, "first", Try(f"try{at}", run_id, at), RULES, claim)


def test_a_farewell_is_given_up_for_crashes_of_its_own_and_not_for_restarts_and_those_of_others(
    store: SqlStore,
) -> None:
    arrive(store, 0.0, "first")
    bob = SessionSource(platform="telegram", chat_id="2", user_id="2")
    store.write(ME, open_session, Arrival(bob, instant(0.0), "beside"), RULES)
    for number in range(5):  # restarts, and stores that failed
        farewell = begun_in(store, f"restarted{number}", LATER)
        assert farewell is not None
        assert farewell.turn is not None
    for number in range(5):
        begun_in(store, f"crowded{number}", LATER)
        settled_crash(store, f"crowded{number}", "beside")
    found = latest(store, "first")
    assert found is not None
    assert (found.ended_at, found.attempt, round(found.blame, 3)) == (None, 10, 2.5)
    begun_in(store, "crashed", LATER)
    settled_crash(store, "crashed")
    begun_in(store, "last", LATER)
    found = latest(store, "first")
    assert found is not None
    assert (found.state, found.reason) == (TurnState.FAILED, CUT_OFF)


def test_a_farewell_that_waits_for_its_next_try_is_blamed_for_no_crash(store: SqlStore) -> None:
    arrive(store, 0.0, "first")
    farewell = begun_in(store, "one", LATER)
    assert farewell is not None
    assert not store.write(ME, end_farewell, farewell, [], "Nobody is there.", LATER)
    settled_crash(store, "one")
    found = latest(store, "first")
    assert found is not None
    assert found.blame == 1.0
