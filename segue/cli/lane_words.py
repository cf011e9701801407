"""Lanes and what waits in them as cells of tables. Nothing here prints."""

from datetime import datetime, timedelta

from segue.cli.output import Column
from segue.core.inbox import ERASED, Entry
from segue.core.leases import Run
from segue.core.lifecycle import Phase
from segue.core.moments import ago, instant
from segue.core.outbox import Letter
from segue.core.policy import ResetMode, ResetPolicy
from segue.core.text import one_line, shorten
from segue.sessions.overseeing import LaneView

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


def _span(span: timedelta) -> str:
    minutes = span // timedelta(minutes=1)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
