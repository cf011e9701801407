"""What is done to a lane from outside, and how lanes are looked at."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from lane_rows import ALICE, BOB, HOUSE, answered, begin, cut_off, finish, found, hold, live_run, say

from segue.core.errors import AmbiguousLane, InUse, LaneNotFound, LeaseLost, NotFound
from segue.core.leases import lane_lease, platform_lease, session_lease
from segue.core.lifecycle import Phase
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.preferences import decode
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction
from segue.sessions import leasing
from segue.sessions.minding import GIVEN_UP, Hand, check_free, forget_lane, renew_lane
from segue.sessions.overseeing import Sight, find_lane, list_lanes, look_into
from segue.sessions.watching import long_interrupted, watch
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
HAND = Hand("console-run", is_gone)
SIGHT = Sight("main", ResetPolicies(ResetPolicy(ResetMode.IDLE, idle=timedelta(hours=2))), is_gone)


def session_in(store: SqlStore, key: str = ALICE) -> str:
    lane = store.read(OWNER, find_lane, key)
    assert lane.session_id is not None
    return lane.session_id


def test_a_renewed_lane_has_a_new_session_and_says_who_did_it(store: SqlStore) -> None:
    answered(store, "hello")
    old = session_in(store)
    done = store.write(OWNER, renew_lane, ALICE, "fresh", NOW, HAND)
    assert (done.old_session, done.lane.session_id, session_in(store)) == (old, "fresh", "fresh")
    detail = store.read(OWNER, look_into, ALICE, SIGHT)
    (reset,) = detail.resets
    assert (reset.who, reset.from_session, reset.to_session, str(reset.reason)) == (
        *("console", old, "fresh"),
        "session_reset",
    )
    ended = store.read(OWNER, lambda tx: tx.sessions.find(old))
    assert ended is not None
    assert ended.end_reason == "session_reset"


def test_the_first_turn_after_it_is_told_where_it_is_and_what_was_chosen(store: SqlStore) -> None:
    answered(store, "hello")
    store.write(OWNER, lambda tx: tx.sessions.change(session_in(store), model_config='{"queue": "steer"}'))
    store.write(OWNER, renew_lane, ALICE, "fresh", datetime.now(UTC), HAND)
    begun = begin(store, say(store, "again"))
    assert begun.opened.session.id == "fresh"
    assert begun.situation.system == f"You are on {ALICE}."
    assert decode(begun.opened.session.model_config).queue == "steer"
    finish(store, begun)


@pytest.mark.parametrize(
    "act",
    [
        lambda tx: renew_lane(tx, ALICE, "fresh", NOW, HAND),
        lambda tx: forget_lane(tx, ALICE, NOW, HAND),
    ],
)
def test_nothing_is_done_while_somebody_works_there(store: SqlStore, act: Callable[[Transaction], object]) -> None:
    answered(store, "hello")
    run = live_run(store)
    lease = hold(store, lane_lease(ALICE), run)
    with pytest.raises(InUse, match=f"at work in {ALICE}: segue gateway, process {run.pid}") as caught:
        store.write(OWNER, act)
    assert not {run.host, str(run.pid)} & set(re.findall(r"\w+", caught.value.public)), "others are not told where"
    store.write(OWNER, leasing.hold, lease)
    assert session_in(store) != "fresh"


def test_a_conversation_that_is_open_in_a_chat_stays_there(store: SqlStore) -> None:
    answered(store, "hello")
    hold(store, session_lease(session_in(store)), live_run(store, "segue chat"))
    with pytest.raises(InUse, match="open elsewhere: in segue chat"):
        store.write(OWNER, renew_lane, ALICE, "fresh", NOW, HAND)


def test_a_worker_that_was_given_up_for_dead_stores_nothing_afterwards(store: SqlStore) -> None:
    entry = say(store, "hello")
    begun = begin(store, entry)
    store.write(OWNER, lambda tx: tx.leases.hold(begun.lease, -1.0))
    done = store.write(OWNER, renew_lane, ALICE, "fresh", NOW, HAND)
    assert done.given_up == 1
    with pytest.raises(LeaseLost):
        finish(store, begun)
    assert (found(store, entry).state, found(store, entry).reason) == ("dead", GIVEN_UP)


def test_the_lane_is_free_again_afterwards(store: SqlStore) -> None:
    answered(store, "hello")
    store.write(OWNER, renew_lane, ALICE, "fresh", NOW, HAND)
    lane = store.read(OWNER, find_lane, ALICE)
    store.read(OWNER, check_free, lane, lambda _run: False)
    store.write(OWNER, forget_lane, ALICE, NOW, HAND)


def test_what_waits_is_answered_in_the_new_session(store: SqlStore) -> None:
    answered(store, "hello")
    waits = say(store, "and another")
    assert store.write(OWNER, renew_lane, ALICE, "fresh", NOW, HAND).waiting == 1
    assert found(store, waits).state == "waiting"


def test_a_forgotten_lane_leaves_its_conversation(store: SqlStore) -> None:
    answered(store, "hello")
    session = session_in(store)
    store.write(OWNER, forget_lane, ALICE, NOW, HAND)
    assert store.read(OWNER, lambda tx: tx.lanes.find(ALICE)) is None
    kept = store.read(OWNER, lambda tx: tx.sessions.find(session))
    assert kept is not None
    assert (kept.message_count > 0, kept.end_reason) == (True, "lane_deleted")
    with pytest.raises(LaneNotFound):
        store.write(OWNER, forget_lane, ALICE, NOW, HAND)


def test_the_next_message_makes_a_forgotten_lane_anew(store: SqlStore) -> None:
    answered(store, "hello")
    answered(store, "good morning", "bob")
    old, other = session_in(store), session_in(store, BOB)
    store.write(OWNER, forget_lane, ALICE, NOW, HAND)
    answered(store, "hello again")
    assert session_in(store) not in (old, other)
    assert session_in(store, BOB) == other


def test_only_idle_lanes_are_forgotten(store: SqlStore) -> None:
    answered(store, "hello")
    say(store, "waits")
    with pytest.raises(InUse, match="1 message waits in"):
        store.write(OWNER, forget_lane, ALICE, NOW, HAND)
    cut_off(store, "cut off", "bob")
    with pytest.raises(InUse, match="not finished in"):
        store.write(OWNER, forget_lane, BOB, NOW, HAND)
    assert {lane.key for lane in store.read(OWNER, lambda tx: tx.lanes.listed())} == {ALICE, BOB}


def test_a_lane_is_found_by_its_key_or_by_a_part_that_no_other_has(store: SqlStore) -> None:
    for person in ("alice", "bob", "alicia"):
        answered(store, "hello", person)
    assert store.read(OWNER, find_lane, ALICE).key == ALICE
    assert store.read(OWNER, find_lane, "BOB").key == BOB
    with pytest.raises(AmbiguousLane, match="'ali' is in 2 lanes"):
        store.read(OWNER, find_lane, "ali")
    with pytest.raises(NotFound, match="No lane has 'zoe' in its key"):
        store.read(OWNER, find_lane, "zoe")


def test_lanes_are_listed_with_all_that_bears_on_their_next_message(store: SqlStore) -> None:
    at = NOW.timestamp()
    answered(store, "hello", at=at)
    answered(store, "good morning", "bob", at=at + 1)
    say(store, "waits")
    hold(store, lane_lease(BOB), live_run(store))
    bob, alice = store.read(OWNER, list_lanes, SIGHT, None, 9)
    assert (bob.lane.key, alice.lane.key) == (BOB, ALICE)
    assert (bob.worker is not None, alice.worker) == (True, None)
    assert (alice.standing.waiting, alice.standing.running) == (1, 0)
    assert alice.next_reset == NOW + timedelta(hours=2)
    assert alice.session is not None
    assert alice.session.first_line == "hello"
    assert [one.lane.key for one in store.read(OWNER, list_lanes, SIGHT, None, 1)] == [BOB]
    late = store.read(OWNER, list_lanes, SIGHT, NOW + timedelta(seconds=0.5), 9)
    assert [one.lane.key for one in late] == [BOB]


def test_the_watch_sees_who_is_there_and_what_nobody_works_on(store: SqlStore) -> None:
    empty = store.read(OWNER, watch, is_gone)
    assert (empty.is_up, empty.left_waiting, empty.undelivered) == (False, 0.0, 0)
    run = live_run(store)
    hold(store, platform_lease("scripted", "work:1"), run)
    answered(store, "hello")
    say(store, "attended", at=empty.now - 500)
    hold(store, lane_lease(ALICE), run)
    say(store, "unattended", "bob", at=empty.now - 100)
    seen = store.read(OWNER, watch, is_gone)
    assert seen.is_up
    assert [(one.platform, one.account) for one in seen.platforms] == [("scripted", "work:1")]
    assert seen.inbox == {"waiting": 2, "running": 0, "refused": 0, "dead": 0}
    assert seen.undelivered == 1
    assert [queue.lane_key for queue in seen.unattended] == [BOB]
    assert 100 <= seen.left_waiting < 160
    store.write(OWNER, leasing.end_run, run.id, empty.now)
    gone = store.read(OWNER, watch, is_gone)
    assert (gone.is_up, list(gone.platforms), len(gone.unattended)) == (False, [], 2)


def test_only_lanes_that_were_cut_off_long_ago_are_found(store: SqlStore) -> None:
    cut_off(store, "long ago", at=NOW.timestamp() - 7200)
    cut_off(store, "just now", "bob", at=NOW.timestamp() - 60)
    lanes = store.read(OWNER, long_interrupted, NOW, HOUSE.rules.freshness)
    assert [(lane.key, lane.phase) for lane in lanes] == [(ALICE, Phase.INTERRUPTED)]
