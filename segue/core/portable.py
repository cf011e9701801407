"""A session as one JSON object, complete and the same on every machine: what exports hold and imports take.

A message is named by its `seq`; the number it happens to have in one database is left out. Empty message fields are
left out too. Reading an object back checks every field, so that nothing malformed reaches the store.
"""

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple, get_args, get_type_hints

from segue.core.errors import Invalid, InvalidSession
from segue.core.ids import LONGEST_ID
from segue.core.json_text import TooDeep, parse_json
from segue.core.messages import (
    JSON_COLUMNS,
    LARGEST_SEQ,
    SUMMARY_SEQ,
    Draft,
    Message,
    State,
    count_calls,
    decode,
    draft_from,
    first_line_of,
)
from segue.core.moments import is_moment
from segue.core.sessions import Kind, Session, flags_of, kind_of
from segue.core.spelling import dumps
from segue.core.text import storable
from segue.core.titles import fitted_title
from segue.core.usage import MOST_DOLLARS, MOST_TOKENS, Spent, entries_for, used_in

FORMAT = "segue_session"
FORMAT_VERSION = 1
_LARGEST_INTEGER = 2**63 - 1
_WORDS = ("title", "first_line", "system_prompt", "model_config", "cwd")
"""The columns of a session that hold what somebody wrote."""
_FLAGS = frozenset({"archived", "pinned"})
"""Columns that are true or false; 0 and 1 are taken as well."""
_MEASURES = frozenset({"seq", "state", "role", "timestamp", "token_count"})
"""The fields of a message that cannot hold what somebody wrote."""
_DATABASE_ONLY = frozenset({"id", "session_id", "active", "compacted"})
_NOT_CARRIED = ("id", "session_id", "content", "content_json")
_TYPES = get_type_hints(Session)
_SPENT = {name: kind for name, kind in get_type_hints(Spent).items() if name != "session_id"}


Mask = Callable[[Any, str], Any]


class PortableMessage(NamedTuple):
    seq: int
    state: str
    draft: Draft


class PortableSession(NamedTuple):
    """A session on its way between two stores."""

    session: Session
    tags: tuple[str, ...]
    messages: tuple[PortableMessage, ...]
    usage: tuple[Spent, ...]
    unknown: tuple[str, ...]
    """Fields that this program has no place for."""
    is_undated: bool = False
    """True if it came without any time; then its times are 0 until `dated` sets them."""


class _Read(NamedTuple):
    """A message as it stands in a file."""

    message: PortableMessage
    has_time: bool


def has_own_preview(portable: PortableSession) -> bool:
    """True for a later part of a conversation that does not show how that began, but nothing or its own words."""
    session = portable.session
    is_part = bool(session.parent_session_id)
    return is_part and session.first_line in ("", own_preview(portable.messages, is_part=is_part))


def session_to_json(session: Session, tags: list[str]) -> dict[str, Any]:
    """Everything but the messages."""
    return {FORMAT: FORMAT_VERSION, **session._asdict(), **flags_of(session), "tags": tags}


def message_to_json(message: Message) -> dict[str, Any]:
    fields = {name: value for name, value in message._asdict().items() if name not in _NOT_CARRIED}
    fields |= {name: decode(fields[name]) for name in JSON_COLUMNS}
    said = {name: value for name, value in fields.items() if value is not None}
    return said if message.content is None else said | {"content": message.original}


def usage_to_json(entries: Iterable[Spent]) -> dict[str, Any]:
    """What model calls used, or nothing when there were none."""
    listed = [{name: value for name in _SPENT if (value := getattr(entry, name)) is not None} for entry in entries]
    return {"usage": listed} if listed else {}


def pieces(
    session: Session, tags: list[str], messages: Iterator[Message], usage: Iterable[Spent], mask: Mask | None = None
) -> Iterator[str]:
    """A session's line in an export, a piece at a time, so that no session need fit in memory twice.

    A `mask` is shown everything that somebody wrote, with the name it stands under, and gives back what may be seen.
    """
    heading = session_to_json(session, tags)
    if mask:
        heading |= {name: mask(heading[name], "") for name in _WORDS}
    yield dumps(heading)[:-1] + ',"messages":['
    separator = ""
    for message in messages:
        said = message_to_json(message)
        if mask:
            said = {name: value if name in _MEASURES else mask(value, name) for name, value in said.items()}
        yield separator + dumps(said)
        separator = ","
    spent = dumps(usage_to_json(usage))[1:-1]
    yield f"],{spent}}}" if spent else "]}"


def from_json(line: str | bytes) -> PortableSession:
    """One line of an export, checked."""
    try:
        data = parse_json(line, object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except TooDeep:
        raise InvalidSession("it is nested too deeply") from None
    except Invalid:
        raise
    except ValueError as error:
        reason = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
        raise InvalidSession(f"it is no JSON ({reason})") from None
    return from_mapping(data)


def from_mapping(data: Any) -> PortableSession:
    """A session from the object of `session_to_json` with its `messages`."""
    if not isinstance(data, Mapping):
        raise InvalidSession("it is no JSON object")
    if data.get(FORMAT, FORMAT_VERSION) != FORMAT_VERSION:
        raise InvalidSession(f"it is in format {data[FORMAT]!r}, which this version does not know")
    if not all(isinstance(name, str) for name in data):
        raise InvalidSession("its fields have no names")
    found = sorted(_messages(data.get("messages", [])), key=lambda one: one.message.seq)
    begin = _first_time(data, found)
    messages = tuple(_in_time(found, begin or 0.0))
    session = _session(data, messages, begin or 0.0)
    tags = data.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidSession("its tags are no list of words")
    entries, strange = _usage(session, data.get("usage", []))
    unknown = tuple(sorted((data.keys() - {FORMAT, "tags", "messages", "usage", *Session._fields}) | strange))
    words = tuple(sorted(set(map(storable, tags))))
    return PortableSession(session, words, messages, entries, unknown, is_undated=begin is None)


def dated(portable: PortableSession, at: float) -> PortableSession:
    """Return the session with one time for everything in it if it came without any."""
    if not portable.is_undated:
        return portable
    return portable._replace(
        session=portable.session._replace(started_at=at, last_active_at=at),
        messages=tuple(one._replace(draft=one.draft._replace(timestamp=at)) for one in portable.messages),
        usage=tuple(entry._replace(at=at) for entry in portable.usage),
        is_undated=False,
    )


def _first_time(data: Mapping[str, Any], messages: Iterable[_Read]) -> float | None:
    """Return when a session began as far as its fields, messages or model calls tell."""
    said = (one.message.draft.timestamp for one in messages if one.has_time)
    usage = data.get("usage")
    used = (item.get("at") for item in usage if isinstance(item, Mapping)) if isinstance(usage, list) else ()
    times = (data.get("started_at"), *said, data.get("last_active_at"), data.get("ended_at"), *used)
    return next((float(at) for at in times if is_moment(at)), None)


def _in_time(messages: Iterable[_Read], begin: float) -> Iterator[PortableMessage]:
    """Give a message without a time that of the one before it, and the first ones that of the session."""
    at = begin
    for message, has_time in messages:
        at = message.draft.timestamp if has_time else at
        yield message._replace(draft=message.draft._replace(timestamp=at))


def _session(data: Mapping[str, Any], messages: tuple[PortableMessage, ...], begin: float) -> Session:
    data = {name: int(said) if name in _FLAGS and isinstance(said, bool) else said for name, said in data.items()}
    fields = {name: _checked(name, data[name], _TYPES[name]) for name in Session._fields if data.get(name) is not None}
    _check_identity(fields)
    live = [message.draft for message in messages if message.state == State.LIVE]
    times = [message.draft.timestamp for message in messages]
    started_at = fields.setdefault("started_at", min(times, default=begin))
    fields.setdefault("last_active_at", max([started_at, *times]))
    fields.setdefault("first_line", own_preview(messages, is_part=bool(fields.get("parent_session_id"))))
    fields["title"] = fitted_title(fields.get("title"))
    fields["message_count"] = len(live)
    fields["tool_call_count"] = sum(count_calls(message.tool_calls) for message in live)
    return Session(**fields)


def own_preview(messages: Iterable[PortableMessage], *, is_part: bool) -> str:
    """Return the first line that a person said; the summary that a later part of a conversation begins with is none."""
    said = [one for one in messages if one.state == State.LIVE and one.draft.role == "user"]
    lines = (first_line_of(one.draft.content) for one in said if not (is_part and one.seq == SUMMARY_SEQ))
    return next(filter(None, lines), "")


def _check_identity(fields: dict[str, Any]) -> None:
    if not fields.get("id") or len(fields["id"]) > LONGEST_ID:
        raise InvalidSession(f"its id is missing or longer than {LONGEST_ID} characters")
    if not fields.get("source"):
        raise InvalidSession("it has no source")
    if fields["id"] in (fields.get("parent_session_id"), fields.get("spawned_by")):
        raise InvalidSession("it would be its own parent")
    if fields.setdefault("kind", kind_of(fields["source"])) not in set(Kind):
        raise InvalidSession(f"its kind cannot be {fields['kind']!r}")
    if not {fields.get("archived", 0), fields.get("pinned", 0)} <= {0, 1}:
        raise InvalidSession("archived and pinned are true or false")
    for name in ("started_at", "ended_at", "last_active_at"):
        if not is_moment(fields.get(name, 0.0)):
            raise InvalidSession(f"its {name} cannot be {fields[name]!r}")


def _messages(data: Any) -> Iterator[_Read]:
    if not isinstance(data, list):
        raise InvalidSession("its messages are no list")
    seen: set[int] = set()
    for number, item in enumerate(data, 1):
        if not isinstance(item, Mapping):
            raise InvalidSession(f"its message {number} is no JSON object")
        fields = dict(item)
        seq, state = fields.pop("seq", number), fields.pop("state", State.LIVE)
        if not _is_integer(seq) or not 0 <= seq < LARGEST_SEQ or seq in seen:
            raise InvalidSession(f"its message {number} has no place of its own (seq {seq!r})")
        if not isinstance(state, str) or state not in set(State):
            raise InvalidSession(f"its message {number} is in no state that a message can be in ({state!r})")
        seen.add(seq)
        has_time = fields.get("timestamp") is not None
        yield _Read(PortableMessage(seq, state, _draft(fields, number)), has_time)


def _draft(fields: dict[str, Any], number: int) -> Draft:
    for name in _DATABASE_ONLY & fields.keys():
        del fields[name]
    if "content_json" in fields:
        raise InvalidSession(f"its message {number} has a field 'content_json', which only the database has")
    try:
        return draft_from({"role": "", **fields}, 0.0)
    except Invalid as error:
        raise InvalidSession(f"its message {number} cannot be taken: {error}") from error


def _usage(session: Session, data: Any) -> tuple[tuple[Spent, ...], set[str]]:
    """An entry for whatever the session used, and the names of fields that an entry has no place for."""
    if not isinstance(data, list):
        raise InvalidSession("its usage is no list")
    noted = [_entry(session.id, item, number) for number, item in enumerate(data, 1)]
    entries = entries_for(session, noted)
    for used in map(used_in, entries):
        if any(abs(cost or 0.0) > MOST_DOLLARS for cost in used.costs) or max(map(abs, used.counters)) > MOST_TOKENS:
            raise InvalidSession("nothing uses or costs that much")
    return entries, {f"usage.{name}" for item in data for name in item.keys() - _SPENT.keys()}


def _entry(session_id: str, item: Any, number: int) -> Spent:
    if not isinstance(item, Mapping):
        raise InvalidSession(f"its usage {number} is no JSON object")
    given = {name: item[name] for name in _SPENT if item.get(name) is not None}
    said = {name: _checked(f"{name} of usage {number}", value, _SPENT[name]) for name, value in given.items()}
    if not is_moment(said.get("at")) or not said.get("purpose"):
        raise InvalidSession(f"its usage {number} has no moment or no purpose")
    nothing = {name: 0 if kind is int else None for name, kind in _SPENT.items()}
    return Spent(session_id=session_id, **(nothing | said))


def _checked(name: str, value: Any, wanted: Any) -> Any:
    kinds = set(get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,))
    if isinstance(value, str) and str in kinds:
        return storable(value)
    if _is_integer(value) and int in kinds:
        return value
    if (_is_integer(value) or isinstance(value, float)) and float in kinds and isfinite(value):
        return float(value)
    raise InvalidSession(f"its {name} cannot be {value!r:.60}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_INTEGER


def _no_number(name: str) -> None:
    raise InvalidSession(f"{name} is no number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidSession("it says the same thing twice (a repeated key)")
    return found
