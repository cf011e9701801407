"""A message arrives in a lane: which session it belongs to, and what is written down about it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st

from segue.core.errors import InvalidSession, NotFound
from segue.core.keys import KeyRules
from segue.core.lifecycle import Continue, Decision, Interruption, Lane, Phase, Reset, Resume, Start
from segue.core.messages import draft
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy, ResetReason, ResetRule
from segue.core.portable import from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource
from segue.ports.store import Filter, ResetRow, Store, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import discard_conversation, restore_conversation
from segue.sessions.exporting import export_session
from segue.sessions.finding import get_session
from segue.sessions.importing import OnConflict, import_session
from segue.sessions.opening import Arrival, Opened, Rules, open_session
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session, end_session, reopen_session
from segue.sessions.steering import (
    complete_turn,
    delete_lane,
    get_lane,
    interrupt_lane,
    reset_on_request,
    suspend_lane,
    switch_session,
    touch_lane,
)

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
IDLE = ResetPolicies(ResetPolicy(ResetMode.IDLE, idle=HOUR))
RULES = Rules(KeyRules(), IDLE, freshness=30 * MINUTE)
KEY = "agent:main:telegram:dm:1"
DM = SessionSource(platform="telegram", chat_id="1", user_id="1", user_name="Bob")


def arrive(
    store: Store,
    fresh_id: str,
    at: datetime = NOON,
    source: SessionSource = DM,
    rules: Rules = RULES,
    *,
    busy: bool = False,
    force_new: bool = False,
) -> Opened:
    return store.write(ME, open_session, Arrival(source, at, fresh_id, busy=busy, force_new=force_new), rules)


def lane(store: Store, key: str = KEY) -> Lane:
    return store.read(ME, get_lane, key)


def found(store: Store, name: str) -> Session:
    return store.read(ME, get_session, name)


def say(store: Store, name: str, at: datetime = NOON) -> None:
    store.write(ME, append_message, name, draft("user", "hello", at.timestamp()))


def resets(store: Store, key: str = KEY) -> list[ResetRow]:
    return store.read(ME, lambda tx: tx.lanes.resets(key))


def open_in_lane(store: Store, key: str = KEY) -> list[str]:
    every = store.read(ME, lambda tx: tx.sessions.listed(Filter(archived=None, tips_only=False), None, 0))
    return [one.id for one in every if one.lane_key == key and one.ended_at is None]


# The first message


def test_the_first_message_makes_a_lane_and_its_session(store: Store) -> None:
    opened = arrive(store, "s")
    assert opened.decision == Start()
    assert opened.session == found(store, "s")
    assert opened.session == Session(
        id="s",
        source="telegram",
        user_id="1",
        started_at=NOON.timestamp(),
        last_active_at=NOON.timestamp(),
        start_reason="new",
        lane_key=KEY,
        principal="telegram:1",
    )
    assert opened.lane == lane(store)
    assert (opened.lane.key, opened.lane.session_id, opened.lane.phase) == (KEY, "s", Phase.ACTIVE)
    assert opened.lane.last_person_at == opened.lane.created_at == opened.lane.updated_at == NOON
    assert opened.lane.origin == DM
    assert resets(store) == []


@pytest.mark.parametrize(
    ("source", "rules", "key", "principal", "audience"),
    [
        pytest.param(DM, KeyRules(), KEY, "telegram:1", "", id="a direct message"),
        pytest.param(DM, KeyRules(owners=frozenset({"telegram:1"})), KEY, "owner", "", id="the owner's"),
        pytest.param(
            DM,
            KeyRules(DmScope.MAIN, owners=frozenset({"telegram:1"})),
            "agent:main:main",
            "owner",
            "",
            id="the owner's main lane",
        ),
        pytest.param(
            DM, KeyRules(identity_links={"bob": ("telegram:1",)}), "agent:main:dm:bob", "person:bob", "", id="linked"
        ),
        pytest.param(
            SessionSource(platform="slack", chat_type="channel", chat_id="C1", user_id="U1"),
            KeyRules(),
            "agent:main:slack:channel:C1:U1",
            "slack:U1",
            "agent:main:slack:channel:C1",
            id="one person's in a channel",
        ),
        pytest.param(
            SessionSource(platform="slack", chat_type="channel", chat_id="C1", user_id="U1"),
            KeyRules(group_sessions_per_user=False),
            "agent:main:slack:channel:C1",
            "agent:main:slack:channel:C1",
            "agent:main:slack:channel:C1",
            id="a shared channel",
        ),
        pytest.param(
            SessionSource(platform="slack", chat_type="group", chat_id="C1", thread_id="T", user_id="U1"),
            KeyRules(),
            "agent:main:slack:group:C1:topic:T",
            "agent:main:slack:group:C1:topic:T",
            "agent:main:slack:group:C1:topic:T",
            id="a thread",
        ),
        pytest.param(
            SessionSource(platform="slack", chat_type="group", chat_id="C:1%\n", user_id="U\ud800"),
            KeyRules(),
            "agent:main:slack:group:C%3A1%25%0A:U%ED%A0%80",
            "slack:U%ED%A0%80",
            "agent:main:slack:group:C%3A1%25%0A",
            id="hostile ids",
        ),
    ],
)
def test_a_session_belongs_to_whoever_can_see_its_lane(
    store: Store, source: SessionSource, rules: KeyRules, key: str, principal: str, audience: str
) -> None:
    opened = arrive(store, "s", source=source, rules=Rules(rules, IDLE, HOUR))
    for owner in (opened.session, opened.lane, found(store, "s"), lane(store, key)):
        assert (owner.principal, owner.audience) == (principal, audience)
    assert (opened.lane.key, opened.session.lane_key) == (key, key)
    assert lane(store, key).origin == source


@pytest.mark.parametrize(("platform", "kind"), [("telegram", "interactive"), ("webhook", "automation")])
def test_a_session_is_of_the_kind_of_its_platform(store: Store, platform: str, kind: str) -> None:
    assert arrive(store, "s", source=SessionSource(platform=platform, chat_id="1")).session.kind == kind


def test_each_agent_has_lanes_of_its_own(store: Store) -> None:
    arrive(store, "main's")
    opened = store.write(ME, open_session, Arrival(DM, NOON, "helper's", agent="helper"), RULES)
    assert (opened.session.id, opened.session.agent) == ("helper's", "helper")
    assert opened.lane.key == "agent:helper:telegram:dm:1"
    again = store.write(ME, open_session, Arrival(DM, NOON + DAY, "helper's second", agent="helper"), RULES)
    assert again.session.agent == "helper"


def test_an_id_that_is_taken_is_never_shared(store: Store) -> None:
    store.write(CAROL, create_session, Session("taken", "cli"))
    with pytest.raises(InvalidSession):
        arrive(store, "taken")
    assert store.read(ME, lambda tx: tx.lanes.listed()) == []


# The next message


def test_the_next_message_goes_to_the_same_session_and_moves_the_clock(store: Store) -> None:
    arrive(store, "s")
    later = SessionSource(platform="telegram", chat_id="1", user_id="1", user_name="Robert", message_id="2")
    opened = arrive(store, "unused", NOON + HOUR, later)
    assert (opened.decision, opened.session.id) == (Continue(), "s")
    now = lane(store)
    assert (now.last_person_at, now.updated_at, now.created_at) == (NOON + HOUR, NOON + HOUR, NOON)
    assert now.origin == later
    assert store.read(ME, lambda tx: tx.sessions.find("unused")) is None


def test_only_what_a_person_says_begins_the_idle_time_anew(store: Store) -> None:
    arrive(store, "s")
    arrive(store, "unused", NOON + 30 * MINUTE)
    spoken = NOON + 30 * MINUTE
    by_itself = Arrival(DM, spoken + 50 * MINUTE, "unused", is_person=False)
    assert store.write(ME, open_session, by_itself, RULES).session.id == "s"
    store.write(ME, touch_lane, KEY, spoken + 55 * MINUTE, 77)
    say(store, "s", spoken + 58 * MINUTE)
    assert lane(store).last_person_at == spoken
    opened = arrive(store, "fresh", spoken + 61 * MINUTE)
    assert (opened.decision, opened.session.id) == (Reset(ResetReason.IDLE), "fresh")


@pytest.mark.parametrize(
    ("source", "recorded"),
    [
        (DM, ("telegram", None, None)),
        (replace(DM, account="work"), ("telegram", "work", None)),
        (SessionSource(platform="tincan", chat_id="c", chat_type="group", thread_id="5"), ("tincan", None, "5")),
    ],
)
def test_a_lane_knows_platform_account_and_thread(
    store: Store, source: SessionSource, recorded: tuple[str | None, ...]
) -> None:
    opened = arrive(store, "s", source=source)
    origin = lane(store, opened.lane.key).origin
    assert origin is not None
    assert (origin.platform, origin.account, origin.thread_id) == recorded
    assert found(store, "s").source == recorded[0]


FRESHLY, STALELY = NOON + 90 * MINUTE, NOON + 60 * MINUTE


@pytest.mark.parametrize(
    ("phase", "since", "busy", "at", "decision"),
    [
        pytest.param(None, None, False, NOON + HOUR, Continue(), id="nothing happened"),
        pytest.param(None, None, False, NOON + 2 * HOUR, Reset(ResetReason.IDLE), id="expired"),
        pytest.param(None, None, True, NOON + 2 * HOUR, Continue(), id="busy before expired"),
        pytest.param("interrupted", FRESHLY, False, NOON + 2 * HOUR, Resume(), id="interrupted before expired"),
        pytest.param("interrupted", FRESHLY, True, NOON + 2 * HOUR, Resume(), id="interrupted before busy"),
        pytest.param("interrupted", STALELY, True, NOON + 2 * HOUR, Continue(), id="stale: busy before expired"),
        pytest.param("interrupted", STALELY, False, NOON + 2 * HOUR, Reset(ResetReason.IDLE), id="stale and expired"),
        pytest.param("interrupted", NOON, False, NOON + 31 * MINUTE, Continue(), id="stale, not expired"),
        pytest.param("suspended", NOON, False, NOON + MINUTE, Reset(ResetReason.SUSPENDED), id="suspended"),
        pytest.param("suspended", NOON, True, NOON + MINUTE, Reset(ResetReason.SUSPENDED), id="suspended before busy"),
        pytest.param("suspended", NOON, False, NOON + DAY, Reset(ResetReason.SUSPENDED), id="suspended before expired"),
    ],
)
def test_suspended_goes_before_interrupted_before_busy_before_expired(
    store: Store, phase: str | None, since: datetime | None, busy: bool, at: datetime, decision: Decision
) -> None:
    arrive(store, "old")
    if phase == "interrupted":
        store.write(ME, interrupt_lane, KEY, Interruption.RESTART, since or NOON)
    if phase == "suspended":
        store.write(ME, interrupt_lane, KEY, Interruption.RESTART, since or NOON)
        store.write(ME, suspend_lane, KEY, since or NOON)
    opened = arrive(store, "new", at, busy=busy)
    assert opened.decision == decision
    assert opened.session.id == ("new" if isinstance(decision, Reset) else "old")
    assert opened.lane.last_person_at == at
    assert open_in_lane(store) == [opened.session.id]


@pytest.mark.parametrize(
    ("source", "resets_after"),
    [
        pytest.param(DM, 60, id="direct messages as the default says"),
        pytest.param(SessionSource(platform="telegram", chat_type="group", chat_id="g"), 10, id="a group"),
        pytest.param(SessionSource(platform="telegram", chat_type="channel", chat_id="c"), 10, id="a channel"),
        pytest.param(
            SessionSource(platform="telegram", chat_type="group", chat_id="g", thread_id="t"), 20, id="a thread"
        ),
        pytest.param(
            SessionSource(platform="discord", chat_type="thread", chat_id="t", parent_chat_id="p"), 20, id="as a chat"
        ),
        pytest.param(SessionSource(platform="slack", chat_type="group", chat_id="g"), 5, id="a platform's own"),
        pytest.param(SessionSource(platform="cli", chat_id="x"), None, id="the terminal"),
        pytest.param(SessionSource(platform="webhook", chat_id="x"), None, id="a webhook"),
        pytest.param(SessionSource(platform="api_server", chat_id="x"), None, id="the API"),
    ],
)
def test_the_policy_is_that_of_the_place(store: Store, source: SessionSource, resets_after: int | None) -> None:
    policies = ResetPolicies(
        ResetPolicy(ResetMode.IDLE, idle=HOUR),
        {"group": ResetRule(idle_minutes=10), "thread": ResetRule(idle_minutes=20)},
        {"slack": ResetRule(ResetMode.IDLE, idle_minutes=5), "cli": ResetRule(ResetMode.IDLE, idle_minutes=1)},
    )
    rules = Rules(KeyRules(), policies, HOUR)
    minutes = timedelta(minutes=resets_after or 10**6)
    arrive(store, "old", NOON, source, rules)
    assert arrive(store, "on time", NOON + minutes, source, rules).session.id == "old"
    late = arrive(store, "late", NOON + 2 * minutes + MINUTE, source, rules).session.id
    assert late == ("old" if resets_after is None else "late")


def test_a_clock_that_steps_back_resets_nothing(store: Store) -> None:
    arrive(store, "s")
    assert arrive(store, "new", NOON - DAY).session.id == "s"
    assert arrive(store, "new", NOON - DAY + HOUR).session.id == "s"


# What a reset writes


def test_a_reset_ends_the_old_session_and_links_the_new_one(store: Store) -> None:
    arrive(store, "old")
    say(store, "old")
    opened = arrive(store, "new", NOON + 2 * HOUR)
    old = found(store, "old")
    assert (old.ended_at, old.end_reason) == ((NOON + 2 * HOUR).timestamp(), "idle")
    new = opened.session
    assert (new.reset_from, new.start_reason, new.lane_key, new.principal) == ("old", "reset", KEY, "telegram:1")
    assert (new.message_count, new.input_tokens, new.is_open) == (0, 0, True)
    row = ResetRow(KEY, NOON + 2 * HOUR, ResetReason.IDLE, "telegram:1", "old", "new", True)
    assert resets(store) == [row]
    assert store.read(ME, lambda tx: tx.lanes.reset_into("new")) == row
    assert store.read(ME, lambda tx: tx.lanes.reset_into("old")) is None


def test_a_reset_knows_whether_there_was_anything_to_forget(store: Store) -> None:
    arrive(store, "old")
    arrive(store, "new", NOON + 2 * HOUR)
    assert [row.had_activity for row in resets(store)] == [False]


def test_a_daily_reset_says_so(store: Store) -> None:
    rules = Rules(KeyRules(), ResetPolicies(ResetPolicy(ResetMode.BOTH, at_hour=13)), HOUR)
    arrive(store, "old", rules=rules)
    assert arrive(store, "same", NOON + 59 * MINUTE, rules=rules).session.id == "old"
    assert arrive(store, "new", NOON + HOUR, rules=rules).decision == Reset(ResetReason.DAILY)
    assert found(store, "old").end_reason == "daily"


def test_a_suspended_lane_is_active_again_in_its_new_session(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, suspend_lane, KEY, NOON)
    opened = arrive(store, "new", NOON + MINUTE)
    assert (opened.lane.phase, opened.lane.phase_reason, opened.lane.phase_since) == (Phase.ACTIVE, None, None)
    assert found(store, "old").end_reason == "suspended"
    assert arrive(store, "newer", NOON + 2 * MINUTE).session.id == "new"


def test_a_resumed_lane_stays_interrupted_until_a_turn_completes(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON)
    assert arrive(store, "x", NOON + MINUTE).lane.phase is Phase.INTERRUPTED
    assert arrive(store, "x", NOON + 2 * MINUTE).decision == Resume()
    store.write(ME, complete_turn, KEY)
    assert arrive(store, "x", NOON + 3 * MINUTE).decision == Continue()


@pytest.mark.parametrize("phase", ["active", "interrupted", "suspended", "busy"])
def test_a_new_session_can_be_asked_for_whatever_the_phase(store: Store, phase: str) -> None:
    arrive(store, "old")
    if phase == "interrupted":
        store.write(ME, interrupt_lane, KEY, Interruption.RESTART, NOON)
    if phase == "suspended":
        store.write(ME, suspend_lane, KEY, NOON)
    opened = arrive(store, "new", NOON + MINUTE, force_new=True, busy=phase == "busy")
    assert (opened.decision, opened.session.id) == (Reset(ResetReason.ASKED), "new")
    assert (found(store, "old").end_reason, opened.lane.phase) == ("session_reset", Phase.ACTIVE)


def test_a_first_session_is_no_reset_even_when_a_new_one_is_asked_for(store: Store) -> None:
    assert arrive(store, "s", force_new=True).decision == Start()
    assert resets(store) == []


def test_a_lane_remembers_all_its_resets(store: Store) -> None:
    for day in range(4):
        arrive(store, f"day {day}", NOON + day * DAY)
    assert [(row.from_session, row.to_session) for row in resets(store)] == [
        ("day 0", "day 1"),
        ("day 1", "day 2"),
        ("day 2", "day 3"),
    ]
    assert open_in_lane(store) == ["day 3"]


def test_a_message_makes_a_finalised_lane_live_again(store: Store) -> None:
    arrive(store, "s")

    def finalise(tx: Transaction) -> None:
        tx.lanes.change(get_lane(tx, KEY)._replace(finalised_at=NOON))

    store.write(ME, finalise)
    assert lane(store).finalised_at == NOON
    arrive(store, "s", NOON + MINUTE)
    assert lane(store).finalised_at is None


# Sessions that others changed


def test_a_message_never_goes_into_an_ended_session(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, end_session, "s", "user_exit", NOON.timestamp())
    opened = arrive(store, "fresh", NOON + MINUTE)
    assert opened.session.is_open
    assert open_in_lane(store) == [opened.session.id]


def test_a_lane_whose_session_was_deleted_starts_afresh(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    assert lane(store).session_id is None
    opened = arrive(store, "fresh", NOON + MINUTE)
    assert (opened.decision, opened.session.id) == (Start(), "fresh")


def test_a_session_that_comes_back_from_the_trash_is_in_its_lane_again(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    store.write(ME, restore_conversation, "s")
    assert arrive(store, "fresh", NOON + MINUTE).session.id == "s"


def test_a_session_whose_lane_went_on_comes_back_as_ended(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    arrive(store, "fresh", NOON + MINUTE)
    notes = store.write(ME, restore_conversation, "s").notes
    assert len(notes) == 1
    assert not found(store, "s").is_open
    assert arrive(store, "x", NOON + 2 * MINUTE).session.id == "fresh"


def bring(store: Store, **data: Any) -> None:
    portable = from_mapping({"id": "imported", "source": "telegram", "lane_key": KEY, **data})
    store.write(ME, import_session, portable, on_conflict=OnConflict.SKIP, now=NOON.timestamp())


@pytest.mark.parametrize(
    ("after", "session"), [(MINUTE, "imported"), (2 * HOUR, "fresh")], ids=["continued", "expired as any other"]
)
def test_an_open_session_that_was_imported_is_adopted_by_its_lane(store: Store, after: timedelta, session: str) -> None:
    bring(store, principal="telegram:1", started_at=NOON.timestamp() - 60, last_active_at=NOON.timestamp())
    opened = arrive(store, "fresh", NOON + after)
    assert opened.session.id == session
    assert (opened.lane.principal, opened.lane.origin) == ("telegram:1", DM)
    assert opened.lane.created_at == NOON - MINUTE
    assert open_in_lane(store) == [session]
    if session == "fresh":
        assert [row.from_session for row in resets(store)] == ["imported"]


def test_an_open_session_that_was_imported_is_adopted_by_a_lane_that_has_none(store: Store) -> None:
    arrive(store, "s")
    store.write(ME, discard_conversation, "s", NOON.timestamp())
    bring(store, principal="telegram:1", last_active_at=NOON.timestamp())
    assert arrive(store, "fresh", NOON + MINUTE).session.id == "imported"


def test_an_ended_session_that_was_imported_is_not_adopted(store: Store) -> None:
    bring(store, principal="telegram:1", last_active_at=NOON.timestamp(), ended_at=NOON.timestamp())
    assert arrive(store, "fresh", NOON + MINUTE).session.id == "fresh"


# One open session in a lane


def test_of_many_first_messages_at_once_one_makes_the_session(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda number: arrive(store, f"s{number}").session.id, range(8)))
    assert len(names) == 1
    assert open_in_lane(store) == list(names)


ACTS = ("message", "force", "suspend", "interrupt", "complete", "reset", "switch", "touch", "forget", "end", "reopen")
acts = st.lists(
    st.tuples(st.sampled_from([*ACTS, "discard", "restore", "compress", "import"]), st.integers(0, 4)), max_size=12
)


def act(store: Store, what: str, which: int, at: datetime, step: int) -> None:
    """Do something to the lane or to one of its sessions; what is not possible is refused by name."""
    name = f"s{which}"
    works: dict[str, Any] = {
        "force": lambda tx: open_session(tx, Arrival(DM, at, f"s{step}", force_new=True), RULES),
        "suspend": lambda tx: suspend_lane(tx, KEY, at),
        "interrupt": lambda tx: interrupt_lane(tx, KEY, Interruption.RESTART, at),
        "complete": lambda tx: complete_turn(tx, KEY),
        "reset": lambda tx: reset_on_request(tx, KEY, f"s{step}", at, "owner"),
        "switch": lambda tx: switch_session(tx, KEY, name, at),
        "touch": lambda tx: touch_lane(tx, KEY, at),
        "forget": lambda tx: delete_lane(tx, KEY, at),
        "end": lambda tx: end_session(tx, name, "user_exit", at.timestamp()),
        "reopen": lambda tx: reopen_session(tx, name),
        "discard": lambda tx: discard_conversation(tx, name, at.timestamp()),
        "restore": lambda tx: restore_conversation(tx, name),
        "compress": lambda tx: compress_session(
            tx, name, child_id=f"s{step}", summary=draft("user", "so far", 1.0), kept=None, now=at.timestamp()
        ),
        "import": lambda tx: import_session(
            tx,
            from_mapping(export_session(tx, name) | {"model": f"changed {step}"}),
            on_conflict=OnConflict.REPLACE,
            now=at.timestamp(),
        ),
    }
    if what == "message":
        arrive(store, f"s{step}", at)
    else:
        store.write(ME, works[what])


@given(acts=acts, minutes=st.lists(st.sampled_from([0, 1, 45, 200]), min_size=13, max_size=13))
@examples(40, in_torture=400, suppress_health_check=SHARED_STORE)
def test_whatever_happens_a_message_finds_the_only_open_session_of_its_lane(
    store: Store, acts: list[tuple[str, int]], minutes: list[int]
) -> None:
    def wipe(tx: Transaction) -> None:
        for session in tx.sessions.listed(Filter(archived=None, tips_only=False), None, 0):
            tx.sessions.delete([session.id])
        for lane in tx.lanes.listed():
            tx.lanes.delete(lane.key)
        tx.trash.remove(tx.trash.listed())

    store.write(ME, wipe)
    at = NOON
    arrive(store, "s0", at)
    for step, (what, which) in enumerate(acts, 1):
        at += timedelta(minutes=minutes[step])
        with suppress(NotFound, InvalidSession):
            act(store, what, which, at, step)
    opened = arrive(store, "last", at + MINUTE)
    assert opened.session.is_open
    assert opened.lane.session_id == opened.session.id
    assert open_in_lane(store) == [opened.session.id]


# Who


def test_a_lane_is_seen_by_its_own_people_only(store: Store) -> None:
    room = SessionSource(platform="slack", chat_type="group", chat_id="g", thread_id="t", user_id="u")
    arrive(store, "bob's")
    arrive(store, "carol's", source=SessionSource(platform="telegram", chat_id="2", user_id="2"))
    shared = arrive(store, "room's", source=room).lane

    def keys(scope: Scope) -> set[str]:
        return {one.key for one in store.read(scope, lambda tx: tx.lanes.listed())}

    assert keys(BOB) == {KEY}
    assert keys(CAROL) == {"agent:main:telegram:dm:2"}
    assert keys(ME) == {KEY, "agent:main:telegram:dm:2", shared.key}
    for scope in (CAROL, Scope(Principal("slack:u"))):
        assert store.read(scope, lambda tx: tx.lanes.find(KEY)) is None
        assert store.read(scope, lambda tx: tx.lanes.find_by_session("bob's")) is None
        assert store.read(scope, lambda tx: tx.lanes.resets(KEY)) == []
        assert store.write(scope, lambda tx: tx.lanes.delete(KEY)) is False
