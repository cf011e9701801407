"""One incarnation of a conversation: everything that is known of it without reading its messages."""

from enum import StrEnum
from typing import Any, NamedTuple

from segue.core.text import one_line, shorten, storable


class Kind(StrEnum):
    """Who the conversation is for."""

    INTERACTIVE = "interactive"
    AUTOMATION = "automation"
    SUBAGENT = "subagent"


class TitleSource(StrEnum):
    USER = "user"
    MODEL = "model"
    FIRST_WORDS = "first_words"
    """Cut from the first user message, because no model gave a title."""
    LINEAGE = "lineage"
    IMPORT = "import"


COMPRESSION = "compression"
"""The end reason of a session that goes on in a child."""

MAX_PREVIEW = 60
"""Characters of a first line that lists show."""

AUTOMATION_SOURCES = frozenset({"batch", "cron", "hook", "webhook"})


class Session(NamedTuple):
    """A stored session, every column."""

    id: str
    source: str
    user_id: str | None = None
    model: str | None = None
    parent_session_id: str | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    end_reason: str | None = None
    message_count: int = 0
    tool_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None
    title: str | None = None
    api_call_count: int = 0
    title_source: str | None = None
    kind: str = Kind.INTERACTIVE
    agent: str = "main"
    start_reason: str | None = None
    lane_key: str | None = None
    principal: str = "owner"
    audience: str = ""
    last_active_at: float = 0.0
    first_line: str = ""
    archived: int = 0
    pinned: int = 0
    cwd: str | None = None
    branched_from: str | None = None
    reset_from: str | None = None
    spawned_by: str | None = None
    kept_session_id: str | None = None
    kept_seq: int | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    model_config: str | None = None
    system_prompt: str | None = None

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class Listed(NamedTuple):
    """A session as a list shows it: nothing here needs its messages, its prompt or its configuration."""

    id: str
    title: str | None
    title_source: str | None
    first_line: str
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
    estimated_cost_usd: float | None
    context_tokens: int | None
    context_window: int | None
    archived: int
    pinned: int
    parent_session_id: str | None
    spawned_by: str | None
    lane_key: str | None
    cwd: str | None


def listed_from(row: dict[str, Any]) -> Listed:
    """A session as a list shows it, from the dictionary that programs are shown."""
    return Listed._make(row[name] for name in Listed._fields)


def kind_of(source: str) -> Kind:
    """What a session is when its creator did not say."""
    if source == "subagent":
        return Kind.SUBAGENT
    return Kind.AUTOMATION if source in AUTOMATION_SOURCES else Kind.INTERACTIVE


def storable_session(session: Session) -> Session:
    """The session with what no database can hold replaced in every text."""
    return Session._make(storable(value) if isinstance(value, str) else value for value in session)


def as_child(session: Session, parent: Session, title: str | None, *, is_lane_free: bool) -> Session:
    """A session that carries another one on: its owner, its audience, its lane, its name and how it began."""
    return session._replace(
        parent_session_id=parent.id,
        principal=parent.principal,
        audience=parent.audience,
        lane_key=parent.lane_key if is_lane_free else None,
        title=title,
        title_source=TitleSource.LINEAGE if title else None,
        first_line=parent.first_line,
        start_reason=COMPRESSION,
    )


def standing(session: Session | Listed) -> str:
    """The state of a session in a word or two, for messages to people."""
    if session.archived:
        return "archived"
    return "open" if session.ended_at is None else f"ended: {session.end_reason or 'no reason given'}"


def preview_of(first_line: str) -> str:
    """Return the beginning of a conversation on one line, short enough for a list."""
    return shorten(one_line(first_line), MAX_PREVIEW)


def flags_of(record: Session | Listed) -> dict[str, bool]:
    """Return the columns that are true or false, which rows keep as numbers."""
    return {"archived": bool(record.archived), "pinned": bool(record.pinned)}


def as_row(record: Session | Listed) -> dict[str, Any]:
    """A record as the dictionary that the Python API and `--json` show."""
    total = record.input_tokens + record.output_tokens
    return record._asdict() | flags_of(record) | {"total_tokens": total, "preview": preview_of(record.first_line)}
