"""Lanes and what waits in them as cells of tables. Nothing here prints."""

from typing import Any

from segue.cli.output import Column, excerpt
from segue.core.inbox import ERASED, Entry
from segue.core.lifecycle import Phase
from segue.core.moments import ago, instant
from segue.core.outbox import Letter
from segue.core.policy import ResetMode
from segue.core.text import one_line
from segue.core.titles import shorten_title
from segue.facade.lane_rows import entry_row

_NAME = 60
_TEXT = 200
_REMOVED = "(removed for good)"

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


Row = dict[str, Any]
"""Something as programs are told of it."""


def lane_cells(row: Row, now: float) -> list[str]:
    return [
        row["key"],
        row["phase"],
        name_of(row),
        str(row["waiting"]),
        str(row["running"]),
        "yes" if row["at_work"] else "no",
        next_reset(row, now),
        policy_words(row["policy"]),
        ago(row["last_person_at"], now),
        row["session_id"] or "—",
    ]


def name_of(row: Row) -> str:
    """The conversation that a lane is in, as a list names it."""
    return shorten_title(one_line(row["title"] or row["first_line"] or ""), _NAME) or "—"


def next_reset(row: Row, now: float) -> str:
    """When the next message begins a new conversation."""
    if row["phase"] == Phase.SUSPENDED:
        return "next message"
    if row["next_reset_at"] is None:
        return "never" if row["session_id"] else "—"
    return "next message" if row["next_reset_at"] <= now else moment(row["next_reset_at"])


def policy_words(policy: Row | None) -> str:
    """A policy as people say it: `after 24h, at 4:00`."""
    if policy is None:
        return "unknown"
    idle, daily = f"after {_span(policy['idle_minutes'])}", f"at {policy['at_hour']}:00 ({policy['timezone']})"
    match policy["mode"]:
        case ResetMode.NONE:
            return "never"
        case ResetMode.IDLE:
            return idle
        case ResetMode.DAILY:
            return daily
    return f"{idle} or {daily}"


def worker_words(run: Row | None) -> str:
    return f"{run['program']}, process {run['pid']} on {run['host']}" if run else "nobody"


def moment(at: float) -> str:
    """A moment by the clock of this machine."""
    return instant(at).astimezone().strftime("%Y-%m-%d %H:%M")


def entry_cells(entry: Entry, now: float) -> list[str]:
    return entry_row_cells(entry_row(entry), now)


def entry_row_cells(row: Row, now: float) -> list[str]:
    text = _REMOVED if row["text"] is None else excerpt(row["text"], _TEXT)
    who, age = row["author"] or row["person"], ago(row["admitted_at"], now)
    return [str(row["id"]), row["state"], age, who, row["lane_key"], text, row["reason"] or ""]


def entry_text(entry: Entry) -> str:
    return _REMOVED if entry.origin == ERASED else entry.text


def entry_facts(entry: Entry, now: float) -> list[tuple[str, str]]:
    """What is known of a message but for what it says, each with its name."""
    facts = [
        ("From", f"{entry.author} ({entry.person})" if entry.author else entry.person),
        ("State", entry.state if entry.reason is None else f"{entry.state}: {entry.reason}"),
        ("Accepted", f"{moment(entry.admitted_at)} ({ago(entry.admitted_at, now)})"),
        ("Came as", f"{entry.message_id} on {entry.platform}"),
        ("Lane", entry.lane_key),
        ("Conversation", entry.session_id or "none yet"),
    ]
    return [(name, one_line(text)) for name, text in facts]


def letter_cells(letter: Letter, now: float) -> list[str]:
    age, text = ago(letter.created_at, now), excerpt(letter.text, _TEXT)
    where = one_line(f"{letter.platform}:{letter.chat}")
    return [str(letter.id), letter.state, age, letter.what, where, letter.lane_key, text, letter.reason or ""]


def _span(minutes: int) -> str:
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
