"""`SessionEntry`: every field and flag that programs ask for, derived from rows."""

from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from segue import SessionEntry, SessionSource
from segue.core.ids import LaneKey, SessionId
from segue.core.lifecycle import Interruption, Lane, Phase
from segue.core.policy import ResetReason
from segue.core.sessions import Session
from segue.facade.session_entry import entry_of
from segue.ports.store import ResetRow

NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEY = LaneKey("agent:main:telegram:group:-100:1")
SOURCE = SessionSource(platform="telegram", chat_id="-100", chat_name="My Group", chat_type="group", user_id="1")
SESSION = Session("s", "telegram", started_at=NOON.timestamp(), lane_key=KEY)
FLAGS = {
    "was_auto_reset": False,
    "auto_reset_reason": None,
    "reset_had_activity": False,
    "is_fresh_reset": False,
    "expiry_finalized": False,
    "suspended": False,
    "resume_pending": False,
    "resume_reason": None,
    "last_resume_marked_at": None,
}
DOCUMENTED = {
    *("session_key", "session_id", "created_at", "updated_at", "origin", "display_name", "platform", "chat_type"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens"),
    *("estimated_cost_usd", "cost_status", "last_prompt_tokens"),
    *FLAGS,
}


def lane(**values: Any) -> Lane:
    usual: dict[str, Any] = {"origin": SOURCE, "updated_at": NOON + MINUTE, "last_person_at": NOON}
    return Lane(key=KEY, session_id=SessionId("s"), **usual | values)


def reset(reason: ResetReason, had_activity: bool = True) -> ResetRow:
    return ResetRow(KEY, NOON, reason, "telegram:1", "before", "s", had_activity)


def flags(entry: SessionEntry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in FLAGS}


def test_there_is_every_documented_field() -> None:
    assert {one.name for one in fields(SessionEntry)} >= DOCUMENTED


def test_a_new_lane_has_no_flag_set_and_nothing_counted() -> None:
    entry = entry_of(lane(), SESSION, None)
    assert flags(entry) == FLAGS
    assert (entry.session_key, entry.session_id) == (KEY, "s")
    assert (entry.created_at, entry.updated_at) == (NOON, NOON + MINUTE)
    assert (entry.origin, entry.display_name, entry.platform, entry.chat_type) == (
        SOURCE,
        "My Group",
        "telegram",
        "group",
    )
    assert (entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.last_prompt_tokens) == (0, 0, 0, 0)
    assert (entry.cache_read_tokens, entry.cache_write_tokens) == (0, 0)
    assert (entry.estimated_cost_usd, entry.cost_status) == (0.0, "unknown")


def test_what_was_counted_is_shown() -> None:
    used = SESSION._replace(
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        estimated_cost_usd=0.5,
        cost_status="estimated",
        context_tokens=9,
    )
    entry = entry_of(lane(), used, None)
    assert (entry.input_tokens, entry.output_tokens, entry.total_tokens) == (1, 2, 3)
    assert (entry.cache_read_tokens, entry.cache_write_tokens, entry.last_prompt_tokens) == (3, 4, 9)
    assert (entry.estimated_cost_usd, entry.cost_status) == (0.5, "estimated")


@pytest.mark.parametrize(
    ("values", "row", "said", "raised"),
    [
        pytest.param(
            {},
            reset(ResetReason.IDLE),
            0,
            {"was_auto_reset": True, "auto_reset_reason": "idle", "reset_had_activity": True},
            id="reset after silence",
        ),
        pytest.param(
            {},
            reset(ResetReason.DAILY, had_activity=False),
            0,
            {"was_auto_reset": True, "auto_reset_reason": "daily"},
            id="reset at an hour, with nothing to forget",
        ),
        pytest.param(
            {},
            reset(ResetReason.SUSPENDED),
            0,
            {"was_auto_reset": True, "auto_reset_reason": "suspended", "reset_had_activity": True},
            id="reset after a stop",
        ),
        pytest.param(
            {},
            reset(ResetReason.ASKED),
            0,
            {"is_fresh_reset": True, "reset_had_activity": True},
            id="reset on request",
        ),
        pytest.param({}, reset(ResetReason.IDLE), 1, {}, id="no news after the first message"),
        pytest.param({}, reset(ResetReason.ASKED), 1, {}, id="no news after the first message, on request"),
        pytest.param({"finalised_at": NOON}, None, 3, {"expiry_finalized": True}, id="finalised"),
        pytest.param(
            {"phase": Phase.SUSPENDED, "phase_reason": "stopped", "phase_since": NOON},
            None,
            3,
            {"suspended": True},
            id="suspended",
        ),
        pytest.param(
            {"phase": Phase.INTERRUPTED, "phase_reason": Interruption.SHUTDOWN_DRAIN, "phase_since": NOON},
            None,
            3,
            {"resume_pending": True, "resume_reason": "shutdown_timeout", "last_resume_marked_at": NOON},
            id="interrupted",
        ),
    ],
)
def test_each_flag_says_what_is_the_case(
    values: dict[str, Any], row: ResetRow | None, said: int, raised: dict[str, object]
) -> None:
    entry = entry_of(lane(**values), SESSION._replace(message_count=said), row)
    assert flags(entry) == FLAGS | raised


def test_a_lane_of_unknown_origin_is_a_direct_conversation() -> None:
    entry = entry_of(lane(origin=None, updated_at=None), SESSION, None)
    assert (entry.origin, entry.platform, entry.display_name, entry.chat_type) == (None, None, None, "dm")
    assert entry.updated_at == NOON


def test_an_entry_is_a_snapshot() -> None:
    entry = entry_of(lane(), SESSION, None)
    with pytest.raises(FrozenInstanceError):
        entry.suspended = True  # type: ignore[misc]
