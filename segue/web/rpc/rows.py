"""Sessions, messages and lanes as programs are told of them. What nobody knows is null."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from segue.core.messages import Message, Spot
from segue.core.sessions import Listed
from segue.sessions.following import cursor_text
from segue.web.rpc.method import Closed


class SessionRow(Closed):
    """A session as lists show it."""

    id: str
    title: str | None
    title_source: str | None
    first_line: str
    preview: str = Field(description="The first line, short enough for a list.")
    source: str
    kind: str
    agent: str
    model: str | None
    principal: str
    started_at: float
    ended_at: float | None
    end_reason: str | None
    last_active_at: float
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    estimated_cost_usd: float | None
    context_tokens: int | None
    context_window: int | None
    archived: bool
    pinned: bool
    parent_session_id: str | None
    spawned_by: str | None
    lane_key: str | None
    cwd: str | None
    tags: list[str]


class MessageRow(Closed):
    """A message; its cursor is where reading on begins."""

    cursor: str
    session_id: str
    seq: int
    state: str
    role: str
    content: Any
    tool_calls: Any
    tool_call_id: str | None
    tool_name: str | None
    timestamp: float
    author: str | None
    finish_reason: str | None


class LaneRow(Closed):
    """A lane, and everything that bears on its next message."""

    key: str
    phase: str
    phase_reason: str | None
    phase_since: float | None
    session_id: str | None
    title: str | None
    first_line: str | None
    waiting: int
    running: int
    at_work: dict[str, Any] | None
    policy: dict[str, Any] | None
    next_reset_at: float | None
    last_person_at: float | None
    updated_at: float | None
    principal: str
    audience: str


class LaneWhole(LaneRow):
    """A lane in full; the latest of each kind, in the order in which it happened."""

    created_at: float | None
    finalised_at: float | None
    origin: dict[str, Any] | None
    source: dict[str, Any] | None
    overrides: dict[str, str | None]
    background_work: bool
    resets: list[dict[str, Any]]
    inbox: list[dict[str, Any]]
    outbox: list[dict[str, Any]] = Field(description="What has not been delivered.")


_OF_OWNERS = ("host", "pid")
_SHOWN = (*Listed._fields, "preview", "total_tokens", "tags")


def session_row(row: dict[str, Any]) -> SessionRow:
    """A session from its columns."""
    return SessionRow(**{name: row[name] for name in _SHOWN})


def message_row(message: Message) -> MessageRow:
    return MessageRow(
        cursor=cursor_text(Spot(message.session_id, message.seq)),
        session_id=message.session_id,
        seq=message.seq,
        state=message.state,
        role=message.role,
        content=message.original,
        tool_calls=message.calls or None,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        timestamp=message.timestamp,
        author=message.author,
        finish_reason=message.finish_reason,
    )


def public_run(run: dict[str, Any]) -> dict[str, Any]:
    """A process for people who are not owners: without where it runs."""
    return _without(run, _OF_OWNERS)


def public_gateway(row: dict[str, Any]) -> dict[str, Any]:
    """How the gateway stands for people who are not owners: without machines, and what platforms say of failures."""
    platforms = [public_run(link) | {"trouble": None} for link in row["platforms"]]
    return row | {"runs": [public_run(run) for run in row["runs"]], "platforms": platforms}


def public_lane(row: dict[str, Any]) -> dict[str, Any]:
    """A lane for people who are not owners: without where its worker runs, and what platforms say of failures."""
    public = row | {"at_work": public_run(row["at_work"]) if row["at_work"] else None}
    if "outbox" in row:
        public["outbox"] = [letter | {"reason": None} for letter in row["outbox"]]
    return public


def public_session(row: dict[str, Any]) -> dict[str, Any]:
    """An exported session for people who are not owners: without who was paid for it, and where."""
    public = row | {name: None for name in ("billing_provider", "billing_base_url") if name in row}
    rows = {name: row[name] for name in ("messages", "usage") if name in row}
    return public | {name: [_without(one, ("provider",)) for one in many] for name, many in rows.items()}


def _without(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
