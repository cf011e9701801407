"""`SessionStore`: which session each conversation is in, every method by name and result."""

import inspect
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from segue import SessionDB, SessionSource, SessionStore
from segue.app import open_store
from segue.config import Settings, from_environment, settings_from
from segue.core.errors import Invalid, InvalidMessage, LaneNotFound, SessionNotFound
from segue.core.keys import KeyRules
from segue.core.lifecycle import Interruption
from segue.core.policy import ResetPolicies
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store
from segue.sessions.discarding import purge_conversation
from segue.sessions.opening import Arrival, Rules, open_session
from segue.sessions.steering import get_lane, interrupt_lane, suspend_lane

KEY = "agent:main:telegram:dm:1"
DM = SessionSource(platform="telegram", chat_id="1", chat_name="Bob", user_id="1", user_name="Bob")
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
HOUR_OF_SILENCE = {"session": {"reset": {"mode": "idle", "idle_minutes": 60}}}


def configured(home: Path, **settings: Any) -> Settings:
    database = from_environment().database
    return settings_from({"database": database, **HOUR_OF_SILENCE, **settings}, home, {"TZ": "UTC"})


@pytest.fixture
def sessions(home: Path) -> Iterator[SessionStore]:
    """Lanes that are reset after an hour without a word."""
    with SessionStore(config=configured(home)) as opened:
        yield opened


@pytest.fixture
def beside(sessions: SessionStore, home: Path) -> Iterator[Store]:
    """The same database by another door, through which the past can be written."""
    with open_store() as opened:
        yield opened


@pytest.fixture
def transcripts(sessions: SessionStore) -> Iterator[SessionDB]:
    with SessionDB() as opened:
        yield opened


def spoke(beside: Store, ago: timedelta, source: SessionSource = DM, session: str = "old") -> datetime:
    """A person said something that long ago."""
    at = datetime.now(UTC) - ago
    rules = Rules(KeyRules(), ResetPolicies(), MINUTE)
    beside.write(OWNER_AT_CONSOLE, open_session, Arrival(source, at, session), rules)
    return at


def chat(number: int) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=str(number), user_id=str(number))


# Signatures


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("get_or_create_session", ["source", "force_new"]),
        ("update_session", ["session_key", "last_prompt_tokens"]),
        ("reset_session", ["session_key", "display_name"]),
        ("switch_session", ["session_key", "target_session_id"]),
        ("suspend_session", ["session_key"]),
        ("mark_resume_pending", ["session_key", "reason"]),
        ("clear_resume_pending", ["session_key"]),
        ("suspend_recently_active", ["max_age_seconds"]),
        ("prune_old_entries", ["max_age_days"]),
        ("list_sessions", ["active_minutes"]),
        ("lookup_by_session_id", ["session_id"]),
        ("has_any_sessions", []),
        ("append_to_transcript", ["session_id", "message", "skip_db"]),
        ("rewrite_transcript", ["session_id", "messages"]),
        ("load_transcript", ["session_id"]),
        ("rewind_session", ["session_id", "n"]),
        ("__init__", ["db_path", "config", "has_active_processes_fn"]),
    ],
)
def test_there_is_a_method_with_the_documented_arguments(name: str, parameters: list[str]) -> None:
    method = getattr(SessionStore, name)
    assert [one for one in inspect.signature(method).parameters if one != "self"] == parameters


# Which session a message belongs to


def test_the_first_message_begins_a_session(sessions: SessionStore) -> None:
    before = datetime.now(UTC)
    entry = sessions.get_or_create_session(DM)
    assert entry.session_key == KEY
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", entry.session_id)
    assert before - SECOND <= entry.created_at <= entry.updated_at <= datetime.now(UTC)
    assert (entry.origin, entry.platform, entry.chat_type, entry.display_name) == (DM, "telegram", "dm", "Bob")
    assert (entry.was_auto_reset, entry.is_fresh_reset, entry.suspended, entry.resume_pending) == (False,) * 4


def test_the_next_message_goes_to_the_same_session(sessions: SessionStore) -> None:
    first = sessions.get_or_create_session(DM)
    second = sessions.get_or_create_session(DM)
    assert second.session_id == first.session_id
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert sessions.get_or_create_session(chat(2)).session_id != first.session_id


def test_a_session_outlives_its_program(home: Path) -> None:
    with SessionStore() as first:
        entry = first.get_or_create_session(DM)
        first.suspend_session(first.get_or_create_session(chat(2)).session_key)
    with SessionStore() as second:
        assert second.get_or_create_session(DM).session_id == entry.session_id
        assert second.get_or_create_session(chat(2)).auto_reset_reason == "suspended"


def test_a_new_session_can_be_forced(sessions: SessionStore) -> None:
    first = sessions.get_or_create_session(DM)
    second = sessions.get_or_create_session(DM, force_new=True)
    assert second.session_id != first.session_id
    assert (second.is_fresh_reset, second.was_auto_reset) == (True, False)


def test_a_lane_that_was_silent_too_long_begins_anew_and_says_so_once(sessions: SessionStore, beside: Store) -> None:
    spoke(beside, 2 * DAY)
    sessions.append_to_transcript("old", {"role": "user", "content": "hello"})
    entry = sessions.get_or_create_session(DM)
    assert entry.session_id != "old"
    assert (entry.was_auto_reset, entry.auto_reset_reason, entry.reset_had_activity) == (True, "idle", True)
    assert not entry.is_fresh_reset
    assert entry.total_tokens == 0
    sessions.append_to_transcript(entry.session_id, {"role": "user", "content": "hello again"})
    entry = sessions.get_or_create_session(DM)
    assert (entry.was_auto_reset, entry.auto_reset_reason, entry.reset_had_activity) == (False, None, False)


def test_a_reset_of_nothing_says_that_there_was_nothing(sessions: SessionStore, beside: Store) -> None:
    spoke(beside, 2 * DAY)
    entry = sessions.get_or_create_session(DM)
    assert (entry.was_auto_reset, entry.reset_had_activity) == (True, False)


def test_a_daily_reset_says_so(home: Path) -> None:
    daily = configured(home, session={"reset": {"mode": "daily", "at_hour": 4}})
    with SessionStore(config=daily) as sessions, open_store() as beside:
        spoke(beside, 2 * DAY)
        assert sessions.get_or_create_session(DM).auto_reset_reason == "daily"


@pytest.mark.parametrize(
    ("state", "busy", "keeps", "reason"),
    [
        pytest.param("expired", False, False, "idle", id="expired"),
        pytest.param("expired", True, True, None, id="busy before expired"),
        pytest.param("interrupted", False, True, None, id="interrupted before expired"),
        pytest.param("interrupted", True, True, None, id="interrupted and busy"),
        pytest.param("stale", False, False, "idle", id="interrupted too long ago"),
        pytest.param("stale", True, True, None, id="interrupted too long ago, but busy"),
        pytest.param("suspended", False, False, "suspended", id="suspended before expired"),
        pytest.param("suspended", True, False, "suspended", id="suspended before busy"),
        pytest.param("interrupted, suspended", False, False, "suspended", id="suspended before interrupted"),
    ],
)
def test_suspended_goes_before_interrupted_before_busy_before_expired(
    home: Path, state: str, busy: bool, keeps: bool, reason: str | None
) -> None:
    asked: list[str] = []

    def is_busy(key: str) -> bool:
        asked.append(key)
        return busy

    with SessionStore(config=configured(home), has_active_processes_fn=is_busy) as sessions:
        with open_store() as beside:
            spoke(beside, 2 * DAY)
            now = datetime.now(UTC)
            if state.startswith("interrupted"):
                beside.write(OWNER_AT_CONSOLE, interrupt_lane, KEY, Interruption.RESTART, now)
            if state == "stale":
                beside.write(OWNER_AT_CONSOLE, interrupt_lane, KEY, Interruption.RESTART, now - 61 * MINUTE)
            if state.endswith("suspended"):
                beside.write(OWNER_AT_CONSOLE, suspend_lane, KEY, now)
        entry = sessions.get_or_create_session(DM)
    assert (entry.session_id == "old") is keeps
    assert entry.auto_reset_reason == reason
    assert set(asked) <= {KEY}


def test_the_freshness_of_an_interruption_is_a_setting(home: Path) -> None:
    patient = configured(home, agent={"auto_continue_freshness": 7200})
    with SessionStore(config=patient) as sessions, open_store() as beside:
        spoke(beside, 2 * DAY)
        at = datetime.now(UTC) - 61 * MINUTE
        beside.write(OWNER_AT_CONSOLE, interrupt_lane, KEY, Interruption.RESTART, at)
        assert sessions.get_or_create_session(DM).session_id == "old"


@pytest.mark.parametrize("per_user", [True, False])
def test_who_shares_a_session_is_a_setting(home: Path, per_user: bool) -> None:
    with SessionStore(config=configured(home, group_sessions_per_user=per_user)) as sessions:
        entries = [
            sessions.get_or_create_session(
                SessionSource(platform="telegram", chat_type="group", chat_id="-100", user_id=user)
            )
            for user in ("1", "2")
        ]
    assert (entries[0].session_id != entries[1].session_id) is per_user


def test_of_many_messages_at_once_one_begins_the_session(sessions: SessionStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = {entry.session_id for entry in pool.map(lambda _: sessions.get_or_create_session(DM), range(16))}
    assert len(names) == 1
    assert [entry.session_id for entry in sessions.list_sessions()] == list(names)


def test_a_session_that_was_imported_open_is_carried_on(
    sessions: SessionStore, transcripts: SessionDB, home: Path
) -> None:
    entry = sessions.get_or_create_session(DM)
    sessions.append_to_transcript(entry.session_id, {"role": "user", "content": "hello"})
    with SessionStore(db_path=home.parent / "new home" / "state.db", config=configured(home)) as elsewhere:
        with SessionDB(home.parent / "new home" / "state.db") as there:
            assert there.import_sessions(transcripts.export_all())["added"] == 1
        assert elsewhere.get_or_create_session(DM).session_id == entry.session_id
        assert elsewhere.load_transcript(entry.session_id) == [{"role": "user", "content": "hello"}]


def test_a_lane_whose_session_was_deleted_begins_another(sessions: SessionStore, transcripts: SessionDB) -> None:
    name = sessions.get_or_create_session(DM).session_id
    transcripts.delete_session(name)
    assert sessions.lookup_by_session_id(name) is None
    assert sessions.list_sessions() == []
    assert sessions.get_or_create_session(DM).session_id != name


def test_a_message_never_goes_into_an_ended_session(sessions: SessionStore, transcripts: SessionDB) -> None:
    transcripts.end_session(sessions.get_or_create_session(DM).session_id, "user_exit")
    row = transcripts.get_session(sessions.get_or_create_session(DM).session_id)
    assert row is not None
    assert row["ended_at"] is None


# Metadata


def test_an_update_notes_tokens_and_moves_no_clock_that_resets_go_by(sessions: SessionStore, beside: Store) -> None:
    at = spoke(beside, 2 * DAY)
    sessions.update_session(KEY, last_prompt_tokens=77)
    (entry,) = sessions.list_sessions()
    assert entry.last_prompt_tokens == 77
    assert entry.updated_at > at + DAY
    assert beside.read(OWNER_AT_CONSOLE, get_lane, KEY).last_person_at == at
    sessions.update_session(KEY)
    assert sessions.list_sessions()[0].last_prompt_tokens == 77
    assert sessions.get_or_create_session(DM).auto_reset_reason == "idle"


def test_what_a_session_used_is_shown_in_its_entry(sessions: SessionStore, transcripts: SessionDB) -> None:
    name = sessions.get_or_create_session(DM).session_id
    transcripts.update_token_counts(name, 10, 20, None, 3, 4, estimated_cost_usd=0.5, cost_status="estimated")
    entry = sessions.lookup_by_session_id(name)
    assert entry is not None
    assert (entry.input_tokens, entry.output_tokens, entry.total_tokens) == (10, 20, 30)
    assert (entry.cache_read_tokens, entry.cache_write_tokens) == (3, 4)
    assert (entry.estimated_cost_usd, entry.cost_status) == (0.5, "estimated")
    assert sessions.reset_session(KEY).total_tokens == 0


# Reset and switch


def test_a_reset_begins_a_fresh_session(sessions: SessionStore, transcripts: SessionDB) -> None:
    old = sessions.get_or_create_session(DM)
    sessions.append_to_transcript(old.session_id, {"role": "user", "content": "hello"})
    entry = sessions.reset_session(KEY)
    assert entry.session_id != old.session_id
    assert (entry.is_fresh_reset, entry.was_auto_reset, entry.auto_reset_reason) == (True, False, None)
    assert entry.origin == DM
    row = transcripts.get_session(old.session_id)
    assert row is not None
    assert row["end_reason"] == "session_reset"
    again = sessions.get_or_create_session(DM)
    assert (again.session_id, again.is_fresh_reset) == (entry.session_id, True)
    sessions.append_to_transcript(entry.session_id, {"role": "user", "content": "hello"})
    assert not sessions.get_or_create_session(DM).is_fresh_reset


def test_a_reset_after_long_silence_is_no_automatic_one(sessions: SessionStore, beside: Store) -> None:
    spoke(beside, 2 * DAY)
    entry = sessions.reset_session(KEY)
    again = sessions.get_or_create_session(DM)
    assert (again.session_id, again.is_fresh_reset, again.was_auto_reset) == (entry.session_id, True, False)


def test_a_lane_goes_back_to_an_earlier_session(sessions: SessionStore, transcripts: SessionDB) -> None:
    first = sessions.get_or_create_session(DM).session_id
    second = sessions.reset_session(KEY).session_id
    entry = sessions.switch_session(KEY, first)
    assert (entry.session_id, entry.session_key) == (first, KEY)
    rows = [transcripts.get_session(name) for name in (first, second)]
    assert [row and row["end_reason"] for row in rows] == [None, "session_switch"]
    assert sessions.get_or_create_session(DM).session_id == first
    assert sessions.switch_session(KEY, first).session_id == first


def test_switching_takes_the_session_out_of_its_other_lane(sessions: SessionStore) -> None:
    thread = SessionSource(platform="telegram", chat_id="1", user_id="1", thread_id="t")
    sessions.get_or_create_session(DM)
    there = sessions.get_or_create_session(thread).session_id
    sessions.switch_session(KEY, there)
    assert [(entry.session_key, entry.session_id) for entry in sessions.list_sessions()] == [(KEY, there)]
    assert sessions.get_or_create_session(thread).session_id != there
    assert sessions.get_or_create_session(DM).session_id == there


# Suspend and resume


def test_a_suspended_lane_begins_anew(sessions: SessionStore) -> None:
    old = sessions.get_or_create_session(DM).session_id
    assert sessions.suspend_session(KEY) is True
    assert sessions.list_sessions()[0].suspended
    entry = sessions.get_or_create_session(DM)
    assert entry.session_id != old
    assert (entry.suspended, entry.was_auto_reset, entry.auto_reset_reason) == (False, True, "suspended")


@pytest.mark.parametrize("reason", ["restart_timeout", "shutdown_timeout", "restart_interrupted"])
def test_an_interrupted_lane_keeps_its_session_until_a_turn_completes(sessions: SessionStore, reason: str) -> None:
    old = sessions.get_or_create_session(DM).session_id
    assert sessions.mark_resume_pending(KEY, reason) is True
    entry = sessions.get_or_create_session(DM)
    assert (entry.session_id, entry.resume_pending, entry.resume_reason) == (old, True, reason)
    assert entry.last_resume_marked_at is not None
    assert sessions.clear_resume_pending(KEY) is True
    entry = sessions.get_or_create_session(DM)
    assert (entry.session_id, entry.resume_pending, entry.resume_reason) == (old, False, None)
    assert entry.last_resume_marked_at is None


def test_an_interruption_never_replaces_a_suspension(sessions: SessionStore) -> None:
    sessions.get_or_create_session(DM)
    sessions.suspend_session(KEY)
    assert sessions.mark_resume_pending(KEY, "restart_timeout") is False
    (entry,) = sessions.list_sessions()
    assert (entry.suspended, entry.resume_pending, entry.resume_reason) == (True, False, None)


def test_an_interruption_needs_a_known_reason(sessions: SessionStore) -> None:
    sessions.get_or_create_session(DM)
    with pytest.raises(Invalid):
        sessions.mark_resume_pending(KEY, "boredom")
    assert not sessions.list_sessions()[0].resume_pending


def test_after_a_crash_lanes_in_use_a_moment_ago_keep_their_sessions(sessions: SessionStore, beside: Store) -> None:
    spoke(beside, 60 * SECOND, chat(1), "recent")
    spoke(beside, 600 * SECOND, chat(2), "earlier")
    spoke(beside, SECOND, chat(3), "suspended")
    spoke(beside, SECOND, chat(4), "pending")
    sessions.suspend_session("agent:main:telegram:dm:3")
    sessions.mark_resume_pending("agent:main:telegram:dm:4", "shutdown_timeout")
    assert sessions.suspend_recently_active() == 1
    entries = {entry.session_id: entry for entry in sessions.list_sessions()}
    assert {name: entry.resume_reason for name, entry in entries.items()} == {
        "recent": "restart_interrupted",
        "earlier": None,
        "suspended": None,
        "pending": "shutdown_timeout",
    }
    assert entries["suspended"].suspended
    assert sessions.suspend_recently_active(max_age_seconds=3600) == 1


# Lists


def test_lanes_are_listed_the_most_recently_used_first(sessions: SessionStore, beside: Store) -> None:
    for number, minutes in ((1, 30), (2, 5), (3, 90)):
        spoke(beside, minutes * MINUTE, chat(number), f"s{number}")
    assert [entry.session_id for entry in sessions.list_sessions()] == ["s2", "s1", "s3"]
    assert [entry.session_id for entry in sessions.list_sessions(active_minutes=60)] == ["s2", "s1"]
    assert sessions.list_sessions(active_minutes=1) == []


def test_a_lane_is_found_by_its_session(sessions: SessionStore) -> None:
    first = sessions.get_or_create_session(DM)
    found = sessions.lookup_by_session_id(first.session_id)
    assert found is not None
    assert found.session_key == KEY
    second = sessions.reset_session(KEY)
    assert sessions.lookup_by_session_id(first.session_id) is None
    assert sessions.lookup_by_session_id(second.session_id) is not None
    assert sessions.lookup_by_session_id("nobody") is None


def test_a_store_knows_whether_there_ever_was_a_session(
    sessions: SessionStore, transcripts: SessionDB, beside: Store
) -> None:
    assert not sessions.has_any_sessions()
    transcripts.create_session("terminal", "cron")
    transcripts.set_session_archived("terminal", True)
    assert sessions.has_any_sessions()
    transcripts.delete_session("terminal")
    assert sessions.has_any_sessions(), "it is in the trash"
    beside.write(OWNER_AT_CONSOLE, purge_conversation, "terminal")
    assert not sessions.has_any_sessions(), "what was purged has left no trace"


def test_old_lanes_are_forgotten_and_their_sessions_are_not(home: Path) -> None:
    busy = "agent:main:telegram:dm:4"
    with (
        SessionStore(config=configured(home), has_active_processes_fn=busy.__eq__) as sessions,
        open_store() as beside,
    ):
        for number, days in ((1, 11), (2, 9), (3, 11), (4, 11)):
            spoke(beside, days * DAY, chat(number), f"s{number}")
        sessions.suspend_session("agent:main:telegram:dm:3")
        assert sessions.prune_old_entries(10) == 1
        assert {entry.session_id for entry in sessions.list_sessions()} == {"s2", "s3", "s4"}
        with SessionDB() as transcripts:
            row = transcripts.get_session("s1")
        assert row is not None
        assert row["ended_at"] is not None
        assert not sessions.get_or_create_session(chat(1)).was_auto_reset


def test_no_age_is_never_old(sessions: SessionStore, beside: Store) -> None:
    spoke(beside, 400 * DAY)
    assert sessions.prune_old_entries(0) == 0
    assert len(sessions.list_sessions()) == 1


# Transcripts


def test_a_transcript_is_appended_to_and_loaded(sessions: SessionStore) -> None:
    name = sessions.get_or_create_session(DM).session_id
    exchange: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "nul \x00"}], "name": "bob", "unheard": {"of": None}},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "name": "t", "content": "done"},
    ]
    for message in exchange:
        sessions.append_to_transcript(name, message)
    sessions.append_to_transcript(name, {"role": "user", "content": "stored already"}, skip_db=True)
    assert sessions.load_transcript(name) == exchange


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "operator"},
        {"content": "x"},
        {"role": "user", "content": {1, 2}},
        {"role": "user", "content": "x", "timestamp": "yesterday"},
        {"role": "user", "content": "x", "timestamp": float("inf")},
        {"role": "user", "content": "x", "extra": "text"},
        {"role": "user", "content": "x", "reasoning": 5},
    ],
    ids=repr,
)
def test_a_message_that_cannot_be_kept_is_refused(sessions: SessionStore, message: dict[str, Any]) -> None:
    name = sessions.get_or_create_session(DM).session_id
    with pytest.raises(InvalidMessage):
        sessions.append_to_transcript(name, message)
    sessions.append_to_transcript(name, {"role": "user", "content": "kept"})
    with pytest.raises(InvalidMessage):
        sessions.rewrite_transcript(name, [{"role": "user", "content": "new"}, message])
    assert sessions.load_transcript(name) == [{"role": "user", "content": "kept"}]


def test_a_transcript_is_rewritten_and_nothing_is_lost(sessions: SessionStore, transcripts: SessionDB) -> None:
    name = sessions.get_or_create_session(DM).session_id
    sessions.append_to_transcript(name, {"role": "user", "content": "old"})
    assert sessions.rewrite_transcript(name, [{"role": "user", "content": "new"}]) is True
    assert sessions.load_transcript(name) == [{"role": "user", "content": "new"}]
    rows = transcripts.get_messages(name, include_inactive=True)
    assert [(row["content"], row["active"]) for row in rows] == [("old", 0), ("new", 1)]


def test_turns_are_undone(sessions: SessionStore) -> None:
    name = sessions.get_or_create_session(DM).session_id
    for number in range(3):
        sessions.append_to_transcript(name, {"role": "user", "content": f"question {number}"})
        sessions.append_to_transcript(name, {"role": "assistant", "content": f"answer {number}"})
    assert sessions.rewind_session(name) == {"rewound_count": 2, "turns_undone": 1, "target_text": "question 2"}
    assert sessions.rewind_session(name, 5) == {"rewound_count": 4, "turns_undone": 2, "target_text": "question 0"}
    assert sessions.rewind_session(name) == {"rewound_count": 0, "turns_undone": 0, "target_text": None}
    assert sessions.load_transcript(name) == []


# What is not there


LANE_VERBS: dict[str, Callable[[SessionStore], object]] = {
    "update_session": lambda sessions: sessions.update_session(KEY),
    "reset_session": lambda sessions: sessions.reset_session(KEY),
    "switch_session": lambda sessions: sessions.switch_session(KEY, "x"),
    "suspend_session": lambda sessions: sessions.suspend_session(KEY),
    "mark_resume_pending": lambda sessions: sessions.mark_resume_pending(KEY),
    "clear_resume_pending": lambda sessions: sessions.clear_resume_pending(KEY),
}
SESSION_VERBS: dict[str, Callable[[SessionStore], object]] = {
    "append_to_transcript": lambda sessions: sessions.append_to_transcript("x", {"role": "user"}),
    "rewrite_transcript": lambda sessions: sessions.rewrite_transcript("x", []),
    "load_transcript": lambda sessions: sessions.load_transcript("x"),
    "rewind_session": lambda sessions: sessions.rewind_session("x"),
}


@pytest.mark.parametrize("verb", LANE_VERBS.values(), ids=LANE_VERBS)
def test_there_must_be_a_lane(sessions: SessionStore, verb: Callable[[SessionStore], object]) -> None:
    with pytest.raises(LaneNotFound):
        verb(sessions)


@pytest.mark.parametrize("verb", SESSION_VERBS.values(), ids=SESSION_VERBS)
def test_there_must_be_a_session(sessions: SessionStore, verb: Callable[[SessionStore], object]) -> None:
    with pytest.raises(SessionNotFound):
        verb(sessions)


@pytest.mark.parametrize("verb", LANE_VERBS.values(), ids=LANE_VERBS)
def test_a_lane_whose_session_is_gone_can_still_be_steered(
    sessions: SessionStore, transcripts: SessionDB, verb: Callable[[SessionStore], object]
) -> None:
    transcripts.delete_session(sessions.get_or_create_session(DM).session_id)
    transcripts.create_session("x")
    verb(sessions)
    sessions.get_or_create_session(DM)
