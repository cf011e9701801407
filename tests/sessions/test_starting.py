"""Sessions begin, end and begin again; a session belongs to whoever began it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from segue.core.errors import InvalidSession, SessionNotFound
from segue.core.keys import KeyRules
from segue.core.messages import draft
from segue.core.policy import ResetPolicies
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import Filter, Store, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.finding import get_session
from segue.sessions.opening import Arrival, Rules, open_session
from segue.sessions.starting import create_session, end_session, reopen_session
from segue.sessions.steering import reset_on_request

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM = Audience("agent:main:telegram:group:-100")
BOB_IN_THE_ROOM = Scope(Principal("telegram:1"), ROOM)
THE_ROOM = Scope(Principal(ROOM), ROOM)
RULES = Rules(KeyRules(), ResetPolicies(), timedelta(hours=1))
NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
FULL = Session(
    id="full",
    source="telegram",
    user_id="u",
    model="provider/model",
    started_at=1741176000.125,
    last_active_at=1741176001.25,
    input_tokens=1,
    output_tokens=2,
    cache_read_tokens=3,
    cache_write_tokens=4,
    reasoning_tokens=5,
    billing_provider="p",
    billing_base_url="https://example.org",
    billing_mode="m",
    estimated_cost_usd=0.1,
    actual_cost_usd=0.2,
    cost_status="s",
    cost_source="c",
    pricing_version="v",
    api_call_count=6,
    kind="automation",
    agent="helper",
    start_reason="new",
    lane_key="agent:main:telegram:dm:1",
    principal="telegram:1",
    audience="somewhere",
    first_line="línea 行 🙂",
    archived=1,
    pinned=1,
    cwd="/tmp/ü",
    branched_from="b",
    reset_from="r",
    spawned_by="s",
    kept_session_id="k",
    kept_seq=7,
    context_tokens=8,
    context_window=9,
    model_config='{"temperature":0.5}',
    system_prompt="be good " * 1000,
)


def begin(store: Store, name: str = "a", scope: Scope = ME, **columns: Any) -> str:
    return store.write(scope, create_session, Session(name, "cli", started_at=5.0)._replace(**columns))


def found(store: Store, name: str = "a", scope: Scope = ME) -> Session:
    return store.read(scope, get_session, name)


def count(tx: Transaction) -> int:
    return tx.sessions.count(Filter(archived=None, tips_only=False))


def test_a_new_session_is_open_and_was_active_when_it_began(store: Store) -> None:
    assert begin(store) == "a"
    session = found(store)
    assert session == Session("a", "cli", started_at=5.0, last_active_at=5.0)
    assert session.is_open


def test_every_column_comes_back_as_it_was_given(store: Store) -> None:
    store.write(ME, create_session, FULL)
    assert found(store, "full") == FULL


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "../../etc/passwd",
        "a/b",
        "with space",
        " ",
        "100%",
        "a_b",
        "'; DROP TABLE sessions; --",
        "é語🙂",
        "y" * 200,
    ],
)
def test_an_id_may_have_any_shape(store: Store, name: str) -> None:
    begin(store, name)
    assert found(store, name).id == name


@pytest.mark.parametrize("name", ["", "y" * 201, "half \ud800 a character"])
def test_an_id_that_cannot_be_kept_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidSession):
        begin(store, name)
    assert store.read(ME, count) == 0


def test_a_session_needs_a_source(store: Store) -> None:
    with pytest.raises(InvalidSession):
        begin(store, source="")
    assert store.read(ME, count) == 0


@pytest.mark.parametrize("second", [ME, BOB, CAROL], ids=["the owner", "the same person", "somebody else"])
def test_an_id_can_be_given_once_whoever_has_it(store: Store, second: Scope) -> None:
    begin(store, scope=BOB, model="first")
    with pytest.raises(InvalidSession):
        begin(store, scope=second, model="second")
    assert found(store).model == "first"


@pytest.mark.parametrize(
    ("scope", "principal", "audience"),
    [
        pytest.param(ME, "telegram:9", "somewhere", id="the owner says whose it is"),
        pytest.param(BOB, "telegram:1", "", id="a person's own in private"),
        pytest.param(BOB_IN_THE_ROOM, "telegram:1", ROOM, id="a person's own in a room"),
        pytest.param(THE_ROOM, ROOM, ROOM, id="the room's own"),
    ],
)
def test_a_session_belongs_to_whoever_creates_it(store: Store, scope: Scope, principal: str, audience: str) -> None:
    begin(store, scope=scope, principal="telegram:9", audience="somewhere")
    assert (found(store).principal, found(store).audience) == (principal, audience)


def test_an_ended_session_says_when_and_why(store: Store) -> None:
    begin(store)
    store.write(ME, end_session, "a", "user_exit", 9.5)
    session = found(store)
    assert (session.ended_at, session.end_reason, session.is_open) == (9.5, "user_exit", False)


def test_the_first_reason_to_end_stays(store: Store) -> None:
    begin(store)
    store.write(ME, end_session, "a", "user_exit", 9.0)
    before = found(store)
    store.write(ME, end_session, "a", "timeout", 10.0)
    assert found(store) == before


def test_a_reason_that_no_database_can_hold_is_made_storable(store: Store) -> None:
    begin(store)
    store.write(ME, end_session, "a", "half \ud800", 9.0)
    assert found(store).end_reason == "half \ufffd"


def test_a_reopened_session_is_as_if_it_had_never_ended(store: Store) -> None:
    begin(store)
    before = found(store)
    store.write(ME, end_session, "a", "user_exit", 9.0)
    store.write(ME, reopen_session, "a")
    assert found(store) == before
    store.write(ME, end_session, "a", "again", 11.0)
    assert found(store).end_reason == "again"


def test_reopening_an_open_session_changes_nothing(store: Store) -> None:
    begin(store)
    before = found(store)
    store.write(ME, reopen_session, "a")
    assert found(store) == before


@pytest.mark.parametrize("scope", [BOB, BOB_IN_THE_ROOM, THE_ROOM], ids=["a person", "a person in a room", "a room"])
def test_nobody_ends_or_reopens_what_is_not_theirs(store: Store, scope: Scope) -> None:
    begin(store, "open")
    begin(store, "ended", ended_at=6.0, end_reason="user_exit")
    with pytest.raises(SessionNotFound):
        store.write(scope, end_session, "open", "stolen", 9.0)
    with pytest.raises(SessionNotFound):
        store.write(scope, reopen_session, "ended")
    assert found(store, "open").is_open
    assert found(store, "ended").end_reason == "user_exit"


def test_what_is_not_there_cannot_end_or_begin_again(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        store.write(ME, end_session, "nobody", "user_exit", 9.0)
    with pytest.raises(SessionNotFound):
        store.write(ME, reopen_session, "nobody")


def test_a_session_that_goes_on_in_a_child_is_not_reopened(store: Store) -> None:
    begin(store)
    summary = draft("user", "so far", 9.0)
    store.write(ME, compress_session, "a", child_id="b", summary=summary, kept=None, now=9.0)
    with suppress(InvalidSession):
        store.write(ME, reopen_session, "a")
    assert found(store).end_reason == "compression"


def arrive(store: Store, fresh_id: str, at: datetime = NOON) -> str:
    source = SessionSource(platform="telegram", chat_id="1", user_id="1")
    return store.write(ME, open_session, Arrival(source, at, fresh_id), RULES).session.id


def test_a_session_is_not_reopened_while_its_lane_goes_on_elsewhere(store: Store) -> None:
    arrive(store, "old")
    store.write(ME, reset_on_request, "agent:main:telegram:dm:1", "new", NOON, "owner")
    before = found(store, "old")
    with pytest.raises(InvalidSession):
        store.write(ME, reopen_session, "old")
    assert found(store, "old") == before


def test_reopening_the_session_a_lane_is_in_changes_nothing(store: Store) -> None:
    arrive(store, "current")
    before = found(store, "current")
    store.write(ME, reopen_session, "current")
    assert found(store, "current") == before


@pytest.mark.parametrize("days", [0, 3], ids=["soon", "when the lane has expired"])
def test_a_lane_takes_messages_after_an_earlier_session_of_it_was_reopened(store: Store, days: int) -> None:
    arrive(store, "old")
    store.write(ME, reset_on_request, "agent:main:telegram:dm:1", "new", NOON, "owner")
    store.write(ME, end_session, "new", "user_exit", NOON.timestamp())
    store.write(ME, reopen_session, "old")
    assert found(store, arrive(store, "fresh", NOON + timedelta(days=days))).is_open
