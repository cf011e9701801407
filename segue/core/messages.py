"""One row of a transcript, and how a message of any shape becomes one and comes back equal.

`content` is always the text of the message: what people search, preview and read with any SQL tool. When the text is
not the whole message (a list of parts, a NUL), `content_json` holds the original beside it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from segue.core.errors import InvalidMessage
from segue.core.json_text import dump_json, parse_json
from segue.core.moments import is_moment
from segue.core.text import storable

_LARGEST_INTEGER = 2**63 - 1
ROLES = ("system", "user", "assistant", "tool")
LARGEST_SEQ = 2**53  # what JSON readers can count to
FAILED = "failed"
SUMMARY_SEQ = 0
"""Ordinary messages count from 1; the summary a compressed conversation continues from stands before them."""


class Spot(NamedTuple):
    """What names a message for ever: its session, and its place there."""

    session_id: str
    seq: int


class State(StrEnum):
    """Whether a message still speaks."""

    LIVE = "live"
    UNDONE = "undone"
    COMPACTED = "compacted"


class Draft(NamedTuple):
    """A message before it has a place in a session: exactly the columns that its author decides."""

    role: str
    content: str | None = None
    content_json: str | None = None
    tool_call_id: str | None = None
    tool_calls: str | None = None
    tool_name: str | None = None
    timestamp: float = 0.0
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: str | None = None
    codex_reasoning_items: str | None = None
    codex_message_items: str | None = None
    provider: str | None = None
    author: str | None = None
    platform_message_id: str | None = None
    attachments: str | None = None
    extra: str | None = None
    outcome: str | None = None
    pruned: str | None = None


_CUT_OFF = {
    "stopped": "stopped",
    "error": "cut off by an error",
    "length": "cut off at the length limit",
    "content_filter": "cut off by a content filter",
}
"""Finish reasons of answers that are not whole."""


class Message(NamedTuple):
    """A stored message; (session_id, seq) names it for ever."""

    id: int
    session_id: str
    seq: int
    state: str
    role: str
    content: str | None
    content_json: str | None
    tool_call_id: str | None
    tool_calls: str | None
    tool_name: str | None
    timestamp: float
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: str | None
    codex_reasoning_items: str | None
    codex_message_items: str | None
    provider: str | None
    author: str | None
    platform_message_id: str | None
    attachments: str | None
    extra: str | None
    outcome: str | None = None
    """`failed` of a tool's result that says what went wrong."""
    pruned: str | None = None
    """How much of a tool's result a model is still shown: see `core/pruning.py`."""

    @property
    def is_live(self) -> bool:
        return self.state == State.LIVE

    @property
    def note(self) -> str:
        """What people are told beside it: that it is not live, or an answer that did not come to its end."""
        ending = _CUT_OFF.get(self.finish_reason or "", "") if self.role == "assistant" else ""
        return ", ".join(filter(None, ["" if self.is_live else self.state, ending]))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls of an assistant message."""
        return calls_in(self.tool_calls)

    @property
    def original(self) -> Any:
        """The content as it was given."""
        return self.content if self.content_json is None else decode(self.content_json)


class Said(NamedTuple):
    """A stored message as far as a model is told of it: reading a long conversation, every column counts."""

    seq: int
    state: str
    role: str
    content: str | None
    content_json: str | None
    tool_call_id: str | None
    tool_calls: str | None
    tool_name: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: str | None
    codex_reasoning_items: str | None
    codex_message_items: str | None
    provider: str | None
    author: str | None
    extra: str | None
    outcome: str | None = None
    pruned: str | None = None

    @property
    def calls(self) -> list[dict[str, Any]]:
        return calls_in(self.tool_calls)

    @property
    def original(self) -> Any:
        return self.content if self.content_json is None else decode(self.content_json)


def said(message: Draft, seq: int) -> Said:
    """A message as it will be read back."""
    values = message._asdict() | {"seq": seq, "state": str(State.LIVE)}
    return Said._make(values[name] for name in Said._fields)


JSON_COLUMNS = (
    "tool_calls",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "attachments",
    "extra",
)
_TEXT_COLUMNS = (
    "tool_call_id",
    "tool_name",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "provider",
    "author",
    "platform_message_id",
    "outcome",
    "pruned",
)
_AUTHORED = frozenset(Draft._fields) - {"content_json"}


def draft(role: str, content: Any, timestamp: Any, **fields: Any) -> Draft:
    """A message ready to be stored. `fields` are the other columns of `Draft`, JSON ones as Python values."""
    if role not in ROLES:
        raise InvalidMessage(f"{role!r} is no role: use {', '.join(ROLES)}.")
    if not is_moment(timestamp):
        raise InvalidMessage(f"{timestamp!r:.60} is no moment: use Unix seconds.")
    text, original = _split(content)
    values: dict[str, Any] = {"token_count": _integer("token_count", fields.pop("token_count", None))}
    for name in JSON_COLUMNS:
        value = fields.pop(name, None)
        values[name] = None if value is None else encode(value)
    for name in _TEXT_COLUMNS:
        values[name] = _text(name, fields.pop(name, None))
    if fields:
        raise InvalidMessage(f"A message has no field {next(iter(fields))!r}.")
    return Draft(role, text, original, timestamp=float(timestamp), **values)


def draft_from(message: Mapping[str, Any], timestamp: float) -> Draft:
    """A message in chat format; fields that we have no column for are kept in `extra` and come back."""
    known = {name: message[name] for name in _AUTHORED & message.keys()}
    extra = known.pop("extra", None) or {}
    if not isinstance(extra, Mapping):
        raise InvalidMessage("The field 'extra' of a message must be an object.")
    extra = {**extra, **{name: value for name, value in message.items() if name not in _AUTHORED}}
    if "name" in message and known.get("role") == "tool" and "tool_name" not in known:
        known["tool_name"] = extra.pop("name")
    role, content = known.pop("role", None), known.pop("content", None)
    if not isinstance(role, str):
        raise InvalidMessage("A message needs a role.")
    said_at = known.pop("timestamp", None)
    return draft(role, content, timestamp if said_at is None else said_at, extra=extra or None, **known)


def encode(value: Any) -> str:
    """Compact JSON that any database can hold."""
    try:
        return storable(dump_json(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"A message can only hold what JSON can: {error}.") from error


def decode(text: str | None) -> Any:
    """The inverse of `encode`; what is no JSON (written by another hand) comes back as the text it is."""
    if text is None:
        return None
    try:
        return parse_json(text)
    except ValueError:
        return text


def calls_in(tool_calls: str | None) -> list[dict[str, Any]]:
    """The tool calls that a column holds; what is no call is passed over."""
    decoded = decode(tool_calls)
    return [call for call in decoded if isinstance(call, dict)] if isinstance(decoded, list) else []


def text_of(content: Any) -> str | None:
    """What a message says in words: its text parts, and a mark for each part that is no text."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        kind = str(content.get("type", "data"))
        text = content.get("text")
        return text if isinstance(text, str) else f"[{kind.removesuffix('_url').removeprefix('input_')}]"
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(text_of, content)))
    return str(content)


def count_calls(tool_calls: str | None) -> int:
    """How many tools a message calls, from its stored form."""
    calls = decode(tool_calls)
    return len(calls) if isinstance(calls, list) else 0


def called(call: Mapping[str, Any]) -> str:
    """The name of the tool that a call calls."""
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else call.get("name")
    return str(name or "?")


def first_line_of(content: str | None, most: int = 200) -> str:
    """The beginning of a message on one line, for lists."""
    return " ".join((content or "")[: most * 4].split())[:most]


def _split(content: Any) -> tuple[str | None, str | None]:
    is_whole = content is None or (isinstance(content, str) and "\x00" not in content)
    encoded = None if is_whole else encode(content)  # first, for it refuses what is nested too deeply to be walked
    text = text_of(content)
    return None if text is None else storable(text), encoded


def _integer(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_INTEGER):
        return value
    raise InvalidMessage(f"The field {name!r} of a message must be a number.")


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else storable(value)
    raise InvalidMessage(f"The field {name!r} of a message must be text.")
