"""What people and restarts do to a lane besides talking in it: reset, switch, suspend, interrupt, forget."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from segue.core.errors import LaneNotFound
from segue.core.ids import SessionId
from segue.core.lifecycle import Interruption, Lane, Phase, Suspension, interrupt
from segue.core.policy import ResetReason
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.finding import find_conversation, find_tip, get_session
from segue.sessions.opening import reset_lane, save_lane
from segue.sessions.titling import free_title


def get_lane(tx: Transaction, key: str) -> Lane:
    lane = tx.lanes.find(key)
    if lane is None:
        raise LaneNotFound(key)
    return lane


def reset_on_request(
    tx: Transaction, key: str, fresh_id: str, now: datetime, who: str, display_name: str | None = None
) -> Lane:
    """`/new` and `/reset`: a new session in the same lane."""
    lane = get_lane(tx, key)
    if display_name and lane.origin:
        lane = lane._replace(origin=replace(lane.origin, chat_name=display_name))
    lane = reset_lane(tx, lane, fresh_id, ResetReason.ASKED, now, who=who)
    return save_lane(tx, lane._replace(updated_at=now, last_person_at=now, finalised_at=None))


def switch_session(tx: Transaction, key: str, target_id: str, now: datetime) -> Lane:
    """`/resume`: the lane goes on with another session, which leaves the lane it was in and belongs here now."""
    lane = get_lane(tx, key)
    target = get_session(tx, find_tip(tx, get_session(tx, target_id).id))
    if lane.session_id and lane.session_id != target.id:
        tx.sessions.change(lane.session_id, ended_at=now.timestamp(), end_reason="session_switch")
    adopt(tx, target, lane)
    active = lane._replace(session_id=SessionId(target.id), phase=Phase.ACTIVE, phase_reason=None, phase_since=None)
    return save_lane(tx, active._replace(updated_at=now, last_person_at=now, finalised_at=None))


def adopt(tx: Transaction, session: Session, lane: Lane) -> None:
    """Let a session go on in a lane, and its conversation, with all its parts, belong to whom the lane belongs to."""
    tx.sessions.change(session.id, ended_at=None, end_reason=None, lane_key=lane.key)
    if (session.principal, session.audience) == (lane.principal, lane.audience):
        return
    for part in [get_session(tx, one) for one in find_conversation(tx, session.id)]:
        title = part.title
        if title and part.principal != lane.principal and tx.sessions.holder_of(lane.principal, title):
            title = free_title(tx, lane.principal, title)
        tx.sessions.change(part.id, title=title, principal=lane.principal, audience=lane.audience)


def suspend_lane(tx: Transaction, key: str, now: datetime, reason: str = Suspension.STOPPED) -> Lane:
    """The next message starts a new session, whatever the policy says."""
    return save_lane(tx, get_lane(tx, key)._replace(phase=Phase.SUSPENDED, phase_reason=reason, phase_since=now))


def interrupt_lane(tx: Transaction, key: str, reason: Interruption, now: datetime) -> Lane:
    """A turn was cut off: the next message continues the same session. Never replaces a suspension."""
    lane = get_lane(tx, key)
    if interrupt(lane.phase) is Phase.SUSPENDED:
        return lane
    return save_lane(tx, lane._replace(phase=Phase.INTERRUPTED, phase_reason=reason, phase_since=now))


def complete_turn(tx: Transaction, key: str) -> Lane:
    """A turn ended well: only this returns an interrupted lane to active."""
    lane = get_lane(tx, key)
    if lane.phase is not Phase.INTERRUPTED:
        return lane
    return save_lane(tx, lane._replace(phase=Phase.ACTIVE, phase_reason=None, phase_since=None))


def touch_lane(tx: Transaction, key: str, now: datetime, context_tokens: int | None = None) -> Lane:
    """Note an interaction. The clock that resets go by moves only when a person speaks."""
    lane = get_lane(tx, key)
    if context_tokens is not None and lane.session_id:
        tx.sessions.change(lane.session_id, context_tokens=context_tokens)
    return save_lane(tx, lane._replace(updated_at=now))


def interrupt_recent(tx: Transaction, now: datetime, max_age: timedelta) -> int:
    """After an unclean stop: every active lane that was in use a moment ago is interrupted."""
    in_use = [lane for lane in tx.lanes.listed(active_since=now - max_age) if lane.session_id]
    recent = [lane for lane in in_use if lane.phase is Phase.ACTIVE]
    for lane in recent:
        interrupt_lane(tx, lane.key, Interruption.RESTART, now)
    return len(recent)


def delete_lane(tx: Transaction, key: str, now: datetime) -> None:
    """Forget a lane: its session ends and keeps its transcript; the next message starts afresh."""
    lane = get_lane(tx, key)
    if lane.session_id and (session := tx.sessions.find(lane.session_id)) and session.is_open:
        tx.sessions.change(session.id, ended_at=now.timestamp(), end_reason="lane_deleted")
    tx.lanes.delete(key)


def prune_lanes(tx: Transaction, now: datetime, max_age: timedelta, busy: Collection[str] = ()) -> int:
    """Forget lanes that nobody used for long; suspended ones and those with background work stay."""
    old = [
        lane
        for lane in tx.lanes.listed()
        if (lane.updated_at or lane.last_person_at) < now - max_age
        and lane.phase is not Phase.SUSPENDED
        and lane.key not in busy
    ]
    for lane in old:
        delete_lane(tx, lane.key, now)
    return len(old)
