"""Lanes and what waits in them as cells of tables and as data for programs. Nothing here prints."""

from datetime import datetime, timedelta
from typing import Any

from segue.cli.output import Column
from segue.core.inbox import ERASED, Entry
from segue.core.leases import Run
from segue.core.lifecycle import Phase
from segue.core.moments import ago, instant
from segue.core.origins import origin_of
from segue.core.outbox import Letter
from segue.core.policy import ResetMode, ResetPolicy
from segue.core.preferences import Preferences
from segue.core.text import one_line, shorten
from segue.ports.store import ResetRow
from segue.sessions.overseeing import LaneDetail, LaneView

_NAME = 60
_TEXT = 200

LANES = [
    Column("Lane"),
    Column("Phase"),
    Column("Conversation", 2, yields=4),
    Column("Waiting", yields=1),
    Column("Running", yields=2),
    Column("At work", yields=5),
    Column("Next reset", yields=6),
    Column("Policy", yields=8),
    Column("Last message", yields=3),
    Column("ID", yields=7),
]
MESSAGES = [
    Column("ID"),
    Column("State"),
    Column("Age", yields=1),
    Column("From", yields=2),
    Column("Lane", 2, yields=3),
    Column("Text", 3),
    Column("Reason", 2, yields=4),
]
LETTERS = [
    Column("ID"),
    Column("State"),
    Column("Age", yields=1),
    Column("What", yields=2),
    Column("To", yields=5),
    Column("Lane", 2, yields=3),
    Column("Text", 3),
    Column("Reason", 2, yields=4),
]


def lane_cells(view: LaneView, now: float) -> list[str]:
    lane, session = view.lane, view.session
    return [
        lane.key,
        lane.phase,
        name_of(view),
        str(view.standing.waiting),
        str(view.standing.running),
        "yes" if view.worker else "no",
        next_reset(view, now),
        policy_words(view.policy),
        ago(lane.last_person_at.timestamp(), now),
        session.id if session else "—",
    ]


def name_of(view: LaneView) -> str:
    """The conversation that a lane is in, as a list names it."""
    session = view.session
    return shorten(one_line(session.title or session.first_line), _NAME) or "—" if session else "—"


def next_reset(view: LaneView, now: float) -> str:
    """When the next message begins a new conversation."""
    if view.lane.phase is Phase.SUSPENDED:
        return "next message"
    if view.next_reset is None:
        return "never" if view.session else "—"
    return "next message" if view.next_reset.timestamp() <= now else moment(view.next_reset)


def policy_words(policy: ResetPolicy | None) -> str:
    """A policy as people say it: `after 24h, at 4:00`."""
    if policy is None:
        return "unknown"
    idle, daily = f"after {_span(policy.idle)}", f"at {policy.at_hour}:00 ({policy.zone})"
    match policy.mode:
        case ResetMode.NONE:
            return "never"
        case ResetMode.IDLE:
            return idle
        case ResetMode.DAILY:
            return daily
    return f"{idle} or {daily}"


def worker_words(run: Run | None) -> str:
    return f"{run.program}, process {run.pid} on {run.host}" if run else "nobody"


def moment(at: datetime) -> str:
    """A moment by the clock of this machine."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def entry_cells(entry: Entry, now: float) -> list[str]:
    text = shorten(one_line(entry_text(entry)), _TEXT)
    who = entry.author or entry.person
    age = ago(entry.admitted_at, now)
    return [str(entry.id), entry.state, age, who, entry.lane_key, text, entry.reason or ""]


def entry_text(entry: Entry) -> str:
    return "(removed for good)" if entry.origin == ERASED else entry.text


def entry_facts(entry: Entry, now: float) -> list[tuple[str, str]]:
    """What is known of a message but for what it says, each with its name."""
    said = instant(entry.admitted_at)
    facts = [
        ("From", f"{entry.author} ({entry.person})" if entry.author else entry.person),
        ("State", entry.state if entry.reason is None else f"{entry.state}: {entry.reason}"),
        ("Accepted", f"{moment(said)} ({ago(entry.admitted_at, now)})"),
        ("Came as", f"{entry.message_id} on {entry.platform}"),
        ("Lane", entry.lane_key),
        ("Conversation", entry.session_id or "none yet"),
    ]
    return [(name, one_line(text)) for name, text in facts]


def letter_cells(letter: Letter, now: float) -> list[str]:
    age, text = ago(letter.created_at, now), shorten(one_line(letter.text), _TEXT)
    where = one_line(f"{letter.platform}:{letter.chat}")
    return [str(letter.id), letter.state, age, letter.what, where, letter.lane_key, text, letter.reason or ""]


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
    return {name: getattr(entry, name) for name in shown} | {"author": entry.author}


def letter_row(letter: Letter) -> dict[str, Any]:
    return {name: value for name, value in letter._asdict().items() if name != "route"}


def _policy_row(policy: ResetPolicy) -> dict[str, Any]:
    return {
        "mode": str(policy.mode),
        "at_hour": policy.at_hour,
        "idle_minutes": policy.idle // timedelta(minutes=1),
        "notify": policy.notify,
        "timezone": str(policy.zone),
    }


def _span(span: timedelta) -> str:
    minutes = span // timedelta(minutes=1)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"


def _epoch(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
