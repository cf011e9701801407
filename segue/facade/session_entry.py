"""A lane's current session as one record, with the flags that programs ask for. Everything is derived from rows."""

from dataclasses import dataclass
from datetime import datetime

from segue.core.lifecycle import Lane, Phase
from segue.core.moments import instant
from segue.core.policy import ResetReason
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import ResetRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource | None
    display_name: str | None
    platform: str | None
    chat_type: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int
    estimated_cost_usd: float
    cost_status: str
    last_prompt_tokens: int
    was_auto_reset: bool
    auto_reset_reason: str | None
    reset_had_activity: bool
    is_fresh_reset: bool
    expiry_finalized: bool
    suspended: bool
    resume_pending: bool
    resume_reason: str | None
    last_resume_marked_at: datetime | None


def entry_of(lane: Lane, session: Session, reset: ResetRow | None) -> SessionEntry:
    """The record of a lane. A reset is news until the session's first message."""
    news = reset if session.message_count == 0 else None
    asked = news is not None and news.reason is ResetReason.ASKED
    is_pending = lane.phase is Phase.INTERRUPTED
    return SessionEntry(
        session_key=lane.key,
        session_id=session.id,
        created_at=instant(session.started_at),
        updated_at=lane.updated_at or lane.last_person_at,
        origin=lane.origin,
        display_name=lane.origin.chat_name if lane.origin else None,
        platform=lane.origin.platform if lane.origin else None,
        chat_type=lane.origin.chat_type if lane.origin else "dm",
        input_tokens=session.input_tokens,
        output_tokens=session.output_tokens,
        cache_read_tokens=session.cache_read_tokens,
        cache_write_tokens=session.cache_write_tokens,
        total_tokens=session.input_tokens + session.output_tokens,
        estimated_cost_usd=session.estimated_cost_usd or 0.0,
        cost_status=session.cost_status or "unknown",
        last_prompt_tokens=session.context_tokens or 0,
        was_auto_reset=news is not None and not asked,
        auto_reset_reason=None if news is None or asked else news.reason.value,
        reset_had_activity=news is not None and news.had_activity,
        is_fresh_reset=asked,
        expiry_finalized=lane.finalised_at is not None,
        suspended=lane.phase is Phase.SUSPENDED,
        resume_pending=is_pending,
        resume_reason=lane.phase_reason if is_pending else None,
        last_resume_marked_at=lane.phase_since if is_pending else None,
    )
