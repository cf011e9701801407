"""What people and restarts do to a lane besides talking in it: reset, switch, suspend, interrupt, forget."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from segue.core.errors import InvalidSession, LaneNotFound, SegueError, SessionNotFound
from segue.core.keys import KeyRules
from segue.core.lifecycle import Continue, Interruption, Lane, Phase, Reset, Resume, Start
from segue.core.messages import Spot, draft
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy, ResetReason
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import Filter, ResetRow, Store, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import discard_conversation
from segue.sessions.finding import get_session
from segue.sessions.opening import Arrival, Opened, Rules, open_session
from segue.sessions.reading import view_of
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session, end_session
from segue.sessions.steering import (
    complete_turn,
    delete_lane,
    get_lane,
    interrupt_lane,
    interrupt_recent,
    prune_lanes,
    reset_on_request,
    suspend_lane,
    switch_session,
    touch_lane,
)

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
RULES = Rules(KeyRules(), ResetPolicies(ResetPolicy(ResetMode.IDLE, idle=DAY)), freshness=HOUR)
OWNED = RULES._replace(keys=KeyRules(owners=frozenset({"telegram:1"})))
KEY, OTHER = "agent:main:telegram:dm:1", "agent:main:telegram:dm:2"
TOPIC = "agent:main:telegram:dm:1:topic:t"


def arrive(
    store: Store, fresh_id: str, at: datetime = NOON, chat: str = "1", thread: str | None = None, rules: Rules = RULES
) -> Opened:
    source = SessionSource(platform="telegram", chat_id=chat, user_id=chat, thread_id=thread)
    return store.write(ME, open_session, Arrival(source, at, fresh_id), rules)


def lane(store: Store, key: str = KEY) -> Lane:
    return store.read(ME, get_lane, key)


def found(store: Store, name: str) -> Session:
    return store.read(ME, get_session, name)


def say(store: Store, name: str) -> None:
    store.write(ME, append_message, name, draft("user", "hello", NOON.timestamp()))


def finalise(tx: Transaction) -> None:
    tx.lanes.change(get_lane(tx, KEY)._replace(finalised_at=NOON))


STEERING: dict[str, Callable[[Transaction, str], object]] = {
    "reset": lambda tx, key: reset_on_request(tx, key, "fresh", NOON, "owner"),
    "switch": lambda tx, key: switch_session(tx, key, "s", NOON),
    "suspend": lambda tx, key: suspend_lane(tx, key, NOON),
    "interrupt": lambda tx, key: interrupt_lane(tx, key, Interruption.RESTART, NOON),
    "complete": complete_turn,
    "touch": lambda tx, key: touch_lane(tx, key, NOON),
    "delete": lambda tx, key: delete_lane(tx, key, NOON),
}


@pytest.mark.parametrize("steer", STEERING.values(), ids=STEERING)
def test_there_must_be_a_lane_that_one_can_see(store: Store, steer: Callable[[Transaction, str], object]) -> None:
    arrive(store, "s")
    before = lane(store)
    for scope, key in ((ME, OTHER), (ME, ""), (CAROL, KEY)):
        with pytest.raises(LaneNotFound):
            store.write(scope, steer, key)
    assert lane(store) == before
    assert found(store, "s").is_open


@pytest.mark.parametrize("steer", STEERING.values(), ids=STEERING)
def test_whoever_may_see_a_lane_may_steer_it(store: Store, steer: Callable[[Transaction, str], object]) -> None:
    arrive(store, "s")
    store.write(BOB, steer, KEY)


@pytest.mark.parametrize("steer", ["suspend", "interrupt", "complete", "touch"])
def test_only_a_person_moves_the_clock_that_resets_go_by(store: Store, steer: str) -> None:
    arrive(store, "s", NOON - HOUR)
    store.write(ME, STEERING["interrupt"], KEY)
    store.write(ME, STEERING[steer], KEY)
    assert lane(store).last_person_at == NOON - HOUR


# Reset


def test_a_reset_on_request_begins_a_new_session_in_the_same_lane(store: Store) -> None:
    arrive(store, "old")
    say(store, "old")
    changed = store.write(ME, reset_on_request, KEY, "new", NOON + HOUR, "telegram:1")
    assert changed == lane(store)
    assert (changed.session_id, changed.updated_at) == ("new", NOON + HOUR)
    old, new = found(store, "old"), found(store, "new")
    assert (old.ended_at, old.end_reason) == ((NOON + HOUR).timestamp(), "session_reset")
    assert (new.reset_from, new.lane_key, new.principal, new.source) == ("old", KEY, "telegram:1", "telegram")
    (row,) = store.read(ME, lambda tx: tx.lanes.resets(KEY))
    assert row == ResetRow(KEY, NOON + HOUR, ResetReason.ASKED, "telegram:1", "old", "new", True)
    assert arrive(store, "x", NOON + HOUR + MINUTE).session.id == "new"


@pytest.mark.parametrize("phase", [Phase.INTERRUPTED, Phase.SUSPENDED])
def test_a_reset_ends_what_was_wrong_with_the_lane(store: Store, phase: Phase) -> None:
    arrive(store, "old")
    store.write(ME, STEERING["suspend" if phase is Phase.SUSPENDED else "interrupt"], KEY)
    assert lane(store).phase is phase
    changed = store.write(ME, reset_on_request, KEY, "new", NOON, "owner")
    assert (changed.phase, changed.phase_reason, changed.phase_since) == (Phase.ACTIVE, None, None)
    assert arrive(store, "x", NOON + MINUTE).decision == Continue()


def test_a_new_session_that_was_asked_for_after_long_silence_is_kept(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, reset_on_request, KEY, "new", NOON + 3 * DAY, "telegram:1")
    assert arrive(store, "x", NOON + 3 * DAY + MINUTE).session.id == "new"


def test_a_new_session_is_not_finalised(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, finalise)
    assert store.write(ME, reset_on_request, KEY, "new", NOON, "owner").finalised_at is None


def test_a_reset_after_the_session_is_gone_begins_one(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, discard_conversation, "old", NOON.timestamp())
    store.write(ME, reset_on_request, KEY, "new", NOON, "owner")
    assert lane(store).session_id == "new"
    assert found(store, "new").reset_from is None


def test_a_reset_does_not_change_why_a_session_ended(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, end_session, "old", "user_exit", NOON.timestamp())
    store.write(ME, reset_on_request, KEY, "new", NOON + HOUR, "owner")
    assert (found(store, "old").end_reason, found(store, "old").ended_at) == ("user_exit", NOON.timestamp())


def test_a_reset_needs_an_id_of_its_own(store: Store) -> None:
    arrive(store, "old")
    store.write(CAROL, create_session, Session("taken", "cli"))
    with pytest.raises(InvalidSession):
        store.write(ME, reset_on_request, KEY, "taken", NOON, "owner")
    assert lane(store).session_id == "old"
    assert found(store, "old").is_open


# Switch


def test_a_lane_goes_on_with_an_earlier_session(store: Store) -> None:
    arrive(store, "first")
    store.write(ME, reset_on_request, KEY, "second", NOON, "owner")
    changed = store.write(ME, switch_session, KEY, "first", NOON + HOUR)
    assert changed == lane(store)
    assert changed.session_id == "first"
    first, second = found(store, "first"), found(store, "second")
    assert (first.ended_at, first.end_reason, first.lane_key) == (None, None, KEY)
    assert (second.ended_at, second.end_reason) == ((NOON + HOUR).timestamp(), "session_switch")
    assert arrive(store, "x", NOON + 2 * HOUR).session.id == "first"


def test_switching_takes_a_session_out_of_the_lane_it_was_in(store: Store) -> None:
    arrive(store, "here")
    arrive(store, "there", thread="t")
    store.write(ME, switch_session, KEY, "there", NOON)
    assert (lane(store).session_id, lane(store, TOPIC).session_id) == ("there", None)
    assert found(store, "there").lane_key == KEY
    opened = arrive(store, "fresh", NOON + MINUTE, thread="t")
    assert (opened.session.id, opened.decision) == ("fresh", Start())
    assert arrive(store, "x", NOON + MINUTE).session.id == "there"


def test_a_session_of_another_person_is_refused_or_really_switched_to(store: Store) -> None:
    arrive(store, "mine")
    arrive(store, "theirs", chat="2")
    before = lane(store)
    try:
        store.write(ME, switch_session, KEY, "theirs", NOON)
    except SegueError:
        assert lane(store) == before
        assert (found(store, "mine").is_open, lane(store, OTHER).session_id) == (True, "theirs")
    else:
        assert (lane(store).session_id, lane(store, OTHER).session_id) == ("theirs", None)
        assert arrive(store, "x", NOON + MINUTE).session.id == "theirs"


def test_a_conversation_in_several_parts_joins_a_lane_whole(store: Store) -> None:
    store.write(ME, create_session, Session("a", "cli"))
    say(store, "a")
    summary = draft("user", "so far", NOON.timestamp())
    kept = Spot("a", 1)
    store.write(ME, compress_session, "a", child_id="b", summary=summary, kept=kept, now=NOON.timestamp())
    arrive(store, "mine")
    before = store.read(ME, view_of, "b")
    store.write(ME, switch_session, KEY, "b", NOON)
    assert store.read(BOB, view_of, "b") == before
    assert {one.id for one in store.read(ME, lambda tx: tx.sessions.listed(Filter(), None, 0))} == {"b", "mine"}


def test_a_session_from_the_terminal_joins_a_lane(store: Store) -> None:
    arrive(store, "mine", rules=OWNED)
    store.write(ME, create_session, Session("terminal", "cli", ended_at=5.0, end_reason="user_exit"))
    store.write(ME, switch_session, KEY, "terminal", NOON)
    assert (found(store, "terminal").is_open, found(store, "terminal").lane_key) == (True, KEY)
    assert found(store, "terminal").source == "cli"
    assert arrive(store, "x", NOON + MINUTE, rules=OWNED).session.id == "terminal"


def test_switching_is_a_persons_doing_and_moves_the_clock(store: Store) -> None:
    arrive(store, "first")
    store.write(ME, reset_on_request, KEY, "second", NOON, "owner")
    store.write(ME, switch_session, KEY, "first", NOON + 3 * DAY)
    assert lane(store).last_person_at == NOON + 3 * DAY
    assert arrive(store, "x", NOON + 3 * DAY + MINUTE).session.id == "first"


def test_switching_to_the_current_session_keeps_it(store: Store) -> None:
    arrive(store, "s")
    before = found(store, "s")
    assert store.write(ME, switch_session, KEY, "s", NOON + HOUR).session_id == "s"
    assert found(store, "s") == before


@pytest.mark.parametrize("to", ["s", "earlier"], ids=["the current one", "another one"])
@pytest.mark.parametrize("state", ["suspended", "ended"])
def test_a_session_that_was_asked_for_is_the_one_that_goes_on(store: Store, state: str, to: str) -> None:
    arrive(store, "earlier")
    store.write(ME, reset_on_request, KEY, "s", NOON, "owner")
    if state == "suspended":
        store.write(ME, suspend_lane, KEY, NOON)
    else:
        store.write(ME, end_session, "s", "user_exit", NOON.timestamp())
    store.write(ME, switch_session, KEY, to, NOON + MINUTE)
    opened = arrive(store, "fresh", NOON + 2 * MINUTE)
    assert (opened.session.id, opened.session.is_open) == (to, True)


def test_a_lane_never_goes_back_before_a_compression(store: Store) -> None:
    arrive(store, "a")
    summary = draft("user", "so far", NOON.timestamp())
    store.write(ME, compress_session, "a", child_id="b", summary=summary, kept=None, now=NOON.timestamp())
    store.write(ME, reset_on_request, KEY, "c", NOON, "owner")
    with suppress(InvalidSession):
        store.write(ME, switch_session, KEY, "a", NOON)
    assert lane(store).session_id in ("b", "c")
    assert found(store, "a").end_reason == "compression"


def test_a_switched_lane_is_not_finalised(store: Store) -> None:
    arrive(store, "first")
    store.write(ME, reset_on_request, KEY, "second", NOON, "owner")
    store.write(ME, finalise)
    assert store.write(ME, switch_session, KEY, "first", NOON).finalised_at is None


def test_there_must_be_a_session_to_switch_to_that_one_can_see(store: Store) -> None:
    arrive(store, "bob's")
    arrive(store, "carol's", chat="2")
    before = lane(store)
    for scope, target in ((ME, "nobody"), (BOB, "carol's")):
        with pytest.raises(SessionNotFound):
            store.write(scope, switch_session, KEY, target, NOON)
    assert lane(store) == before
    assert found(store, "bob's").is_open


# Suspend and interrupt


def test_a_suspended_lane_says_since_when_and_why(store: Store) -> None:
    arrive(store, "s")
    changed = store.write(ME, suspend_lane, KEY, NOON + HOUR, "stuck")
    assert (changed.phase, changed.phase_reason, changed.phase_since) == (Phase.SUSPENDED, "stuck", NOON + HOUR)
    assert lane(store) == changed
    assert changed.last_person_at == NOON
    assert found(store, "s").is_open


@pytest.mark.parametrize("reason", list(Interruption))
def test_an_interrupted_lane_says_since_when_and_why(store: Store, reason: Interruption) -> None:
    arrive(store, "s")
    changed = store.write(ME, interrupt_lane, KEY, reason, NOON + HOUR)
    assert (changed.phase, changed.phase_reason, changed.phase_since) == (Phase.INTERRUPTED, reason, NOON + HOUR)
    assert lane(store) == changed
    assert changed.last_person_at == NOON


def test_an_interruption_never_replaces_a_suspension(store: Store) -> None:
    arrive(store, "s")
    before = store.write(ME, suspend_lane, KEY, NOON)
    store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON + HOUR)
    assert lane(store) == before


def test_a_suspension_replaces_an_interruption(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON)
    assert store.write(ME, suspend_lane, KEY, NOON).phase is Phase.SUSPENDED
    assert arrive(store, "new", NOON + MINUTE).decision == Reset(ResetReason.SUSPENDED)


def test_a_turn_that_is_cut_off_again_is_as_fresh_as_its_last_interruption(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON)
    assert arrive(store, "x", NOON + 50 * MINUTE).decision == Resume()
    again = store.write(ME, interrupt_lane, KEY, Interruption.SHUTDOWN_DRAIN, NOON + 55 * MINUTE)
    assert (again.phase_reason, again.phase_since) == (Interruption.SHUTDOWN_DRAIN, NOON + 55 * MINUTE)
    assert arrive(store, "x", NOON + 90 * MINUTE).decision == Resume()


def test_only_a_completed_turn_makes_an_interrupted_lane_active(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON)
    store.write(ME, touch_lane, KEY, NOON + MINUTE)
    assert lane(store).phase is Phase.INTERRUPTED
    changed = store.write(ME, complete_turn, KEY)
    assert (changed.phase, changed.phase_reason, changed.phase_since) == (Phase.ACTIVE, None, None)
    assert lane(store) == changed


@pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.SUSPENDED])
def test_a_completed_turn_changes_no_other_phase(store: Store, phase: Phase) -> None:
    arrive(store, "s")
    if phase is Phase.SUSPENDED:
        store.write(ME, suspend_lane, KEY, NOON)
    before = lane(store)
    assert store.write(ME, complete_turn, KEY) == before == lane(store)


# Touch


def test_a_touch_moves_no_clock_that_resets_go_by(store: Store) -> None:
    arrive(store, "s")
    changed = store.write(ME, touch_lane, KEY, NOON + DAY)
    assert (changed.updated_at, changed.last_person_at) == (NOON + DAY, NOON)
    assert arrive(store, "new", NOON + DAY + SECOND).decision == Reset(ResetReason.IDLE)


@pytest.mark.parametrize(("noted", "kept"), [(50, 50), (0, 0), (None, 7)])
def test_a_touch_notes_how_full_the_context_is(store: Store, noted: int | None, kept: int) -> None:
    arrive(store, "s")
    store.write(ME, touch_lane, KEY, NOON, 7)
    store.write(ME, touch_lane, KEY, NOON, noted)
    assert found(store, "s").context_tokens == kept


def test_a_lane_without_a_session_can_be_touched(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    assert store.write(ME, touch_lane, KEY, NOON + HOUR, 5).updated_at == NOON + HOUR


# After a crash


def test_lanes_in_use_a_moment_ago_are_interrupted(store: Store) -> None:
    for chat, age in (("1", 0), ("2", 120), ("3", 121), ("4", 5), ("5", 5)):
        arrive(store, f"s{chat}", NOON - age * SECOND, chat)
    store.write(ME, suspend_lane, "agent:main:telegram:dm:4", NOON)
    store.write(ME, interrupt_lane, "agent:main:telegram:dm:5", Interruption.SHUTDOWN_DRAIN, NOON - MINUTE)
    already = lane(store, "agent:main:telegram:dm:5")
    assert store.write(ME, interrupt_recent, NOON, timedelta(seconds=120)) == 2
    phases = {chat: lane(store, f"agent:main:telegram:dm:{chat}").phase for chat in "12345"}
    assert phases == {
        "1": Phase.INTERRUPTED,
        "2": Phase.INTERRUPTED,
        "3": Phase.ACTIVE,
        "4": Phase.SUSPENDED,
        "5": Phase.INTERRUPTED,
    }
    assert lane(store, "agent:main:telegram:dm:5") == already
    assert (lane(store).phase_reason, lane(store).phase_since) == ("restart_interrupted", NOON)
    assert store.write(ME, interrupt_recent, NOON, timedelta(seconds=120)) == 0


# Forget


def test_deleting_a_lane_is_safe(store: Store) -> None:
    arrive(store, "s")
    say(store, "s")
    store.write(ME, delete_lane, KEY, NOON + HOUR)
    with pytest.raises(LaneNotFound):
        lane(store)
    session = found(store, "s")
    assert (session.ended_at, session.end_reason) == ((NOON + HOUR).timestamp(), "lane_deleted")
    assert store.read(ME, lambda tx: tx.messages.count("s")) == 1
    opened = arrive(store, "fresh", NOON + 2 * HOUR)
    assert (opened.session.id, opened.decision, opened.session.reset_from) == ("fresh", Start(), None)


def test_deleting_a_lane_does_not_change_why_its_session_ended(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, end_session, "s", "user_exit", NOON.timestamp())
    store.write(ME, delete_lane, KEY, NOON + HOUR)
    assert found(store, "s").end_reason == "user_exit"


def test_a_lane_without_a_session_can_be_deleted(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    store.write(ME, delete_lane, KEY, NOON)
    assert store.read(ME, lambda tx: tx.lanes.listed()) == []


def test_lanes_that_nobody_used_for_long_are_forgotten(store: Store) -> None:
    for chat, days in (("old", 11), ("young", 9), ("touched", 11), ("suspended", 11), ("busy", 11), ("edge", 10)):
        arrive(store, chat, NOON - days * DAY, chat)
    keys = {chat: f"agent:main:telegram:dm:{chat}" for chat in ("old", "young", "touched", "suspended", "busy", "edge")}
    store.write(ME, touch_lane, keys["touched"], NOON - DAY)
    store.write(ME, suspend_lane, keys["suspended"], NOON - 11 * DAY)
    assert store.write(ME, prune_lanes, NOON, 10 * DAY, {keys["busy"]}) == 1
    left = {one.key for one in store.read(ME, lambda tx: tx.lanes.listed())}
    assert left == set(keys.values()) - {keys["old"]}
    assert not found(store, "old").is_open


def test_forgetting_touches_only_lanes_that_one_can_see(store: Store) -> None:
    arrive(store, "bob's", NOON - 11 * DAY)
    arrive(store, "carol's", NOON - 11 * DAY, "2")
    assert store.write(BOB, prune_lanes, NOON, 10 * DAY) == 1
    assert lane(store, OTHER).session_id == "carol's"


# Listing


def test_lanes_are_listed_by_their_last_use(store: Store) -> None:
    for chat, minutes in (("1", 0), ("2", 20), ("3", 10)):
        arrive(store, chat, NOON + timedelta(minutes=minutes), chat)

    def listed(**since: Any) -> list[str | None]:
        return [one.session_id for one in store.read(ME, lambda tx: tx.lanes.listed(**since))]

    assert listed() == ["2", "3", "1"]
    assert listed(active_since=NOON + 10 * MINUTE) == ["2", "3"]
    assert listed(active_since=NOON + 21 * MINUTE) == []
    store.write(ME, touch_lane, KEY, NOON + HOUR)
    assert listed() == ["1", "2", "3"]
