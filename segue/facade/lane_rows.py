"""Lanes and what waits in them as data for programs: the same at the command line and over the wire."""

from datetime import datetime, timedelta
from typing import Any

from segue.core.inbox import ERASED, Entry
from segue.core.leases import Run
from segue.core.origins import origin_of
from segue.core.outbox import Letter
from segue.core.policy import ResetPolicy
from segue.core.preferences import Preferences
from segue.ports.store import ResetRow
from segue.sessions.overseeing import LaneDetail, LaneView


def lane_row(view: LaneView) -> dict[str, Any]:
    lane, session = view.lane, view.session
    return {
        "key": lane.key,
        "phase": str(lane.phase),
        "phase_reason": lane.phase_reason,
        "phase_since": _epoch(lane.phase_since),
        "session_id": session.id if session else None,
        "title": session.title if session else None,
        "first_line": session.first_line if session else None,
        "waiting": view.standing.waiting,
        "running": view.standing.running,
        "at_work": None if view.worker is None else run_row(view.worker),
        "policy": None if view.policy is None else _policy_row(view.policy),
        "next_reset_at": _epoch(view.next_reset),
        "last_person_at": _epoch(lane.last_person_at),
        "updated_at": _epoch(lane.updated_at),
        "principal": lane.principal,
        "audience": lane.audience,
    }


def detail_row(detail: LaneDetail) -> dict[str, Any]:
    lane = detail.view.lane
    return lane_row(detail.view) | {
        "created_at": _epoch(lane.created_at),
        "finalised_at": _epoch(lane.finalised_at),
        "origin": origin_of(lane.origin).to_dict() if lane.origin else None,
        "source": lane.origin.to_dict() if lane.origin else None,
        "overrides": overrides_row(detail.overrides),
        "background_work": detail.has_background_work,
        "resets": [reset_row(one) for one in detail.resets],
        "inbox": [entry_row(one) for one in detail.entries],
        "outbox": [letter_row(one) for one in detail.letters],
    }


def run_row(run: Run) -> dict[str, Any]:
    return {"program": run.program, "pid": run.pid, "host": run.host, "began_at": run.began_at, "beat_at": run.beat_at}


def overrides_row(chosen: Preferences) -> dict[str, Any]:
    names = ("model", "effort", "verbose", "send", "queue")
    return {name: None if (value := getattr(chosen, name)) is None else str(value) for name in names}


def reset_row(reset: ResetRow) -> dict[str, Any]:
    return reset._asdict() | {"at": reset.at.timestamp(), "reason": str(reset.reason)}


def entry_row(entry: Entry) -> dict[str, Any]:
    shown = (
        *("id", "state", "lane_key", "principal", "audience", "person", "platform", "account", "chat", "message_id"),
        *("edit", "want", "text", "admitted_at", "turn_id", "session_id", "reason", "ended_at"),
    )
    text = None if entry.origin == ERASED else entry.text
    return {name: getattr(entry, name) for name in shown} | {"author": entry.author, "text": text}


def letter_row(letter: Letter) -> dict[str, Any]:
    row = {name: value for name, value in letter._asdict().items() if name != "route"}
    return row | {"is_repeat": bool(letter.is_repeat), "is_shown": bool(letter.is_shown)}


def _policy_row(policy: ResetPolicy) -> dict[str, Any]:
    return {
        "mode": str(policy.mode),
        "at_hour": policy.at_hour,
        "idle_minutes": policy.idle // timedelta(minutes=1),
        "notify": policy.notify,
        "timezone": str(policy.zone),
    }


def _epoch(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
