"""Conversations as documents for people: what is shown of them, whatever the format.

Everything that somebody wrote passes `printable` and then the mask here, in that order: a control character inside a
secret would otherwise hide it from the mask. A format sees only what comes out, and still escapes all of it.
Undone messages and reasoning are left out; an export as JSON lines has them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, Protocol

from segue.core.messages import SUMMARY_SEQ, Message, State, called, decode
from segue.core.moments import instant
from segue.core.policy import ResetReason
from segue.core.sessions import Session, standing
from segue.core.text import count, one_line, printable, shorten

Mask = Callable[[Any], Any]
"""Shown a text, or a JSON value with texts in it; gives back what may be seen of it."""

WHY_ANEW = {
    ResetReason.IDLE: "after a long silence",
    ResetReason.DAILY: "at the daily hour",
    ResetReason.SUSPENDED: "after a stop",
    ResetReason.CRASHED: "after crashes",
    ResetReason.ASKED: "on request",
}
_TITLE = 100
_FIRST_LINE = 200
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


class Entry(NamedTuple):
    """A conversation, as a table of contents and a heading show it."""

    number: int
    title: str
    facts: tuple[str, ...]
    began_at: datetime


class Call(NamedTuple):
    """A tool that was called, and with what."""

    name: str
    arguments: str


class Said(NamedTuple):
    """A message as a document shows it."""

    anchor: str
    voice: str
    """The role of its author, or `summary`."""
    name: str
    at: datetime
    seq: int
    text: str
    calls: tuple[Call, ...] = ()
    note: str = ""


class Block(NamedTuple):
    """A stretch of a message: words, or code as it was fenced."""

    text: str
    is_code: bool = False
    language: str = ""


class Format(Protocol):
    """How a document is written, piece by piece. Each piece can stand on its own behind the one before it."""

    def begin(self, contents: Iterator[Entry], total: int) -> Iterator[str]: ...
    def conversation(self, entry: Entry) -> str: ...
    def break_(self, text: str) -> str: ...
    def message(self, said: Said) -> str: ...
    def close_conversation(self) -> str: ...
    def end(self) -> str: ...


def entry_of(number: int, parts: Sequence[Session], mask: Mask, zone: tzinfo | None = None) -> Entry:
    """A conversation from its parts, oldest first."""
    first, last = parts[0], parts[-1]
    facts = [last.id, last.source, *filter(None, [last.model])]
    facts += [count(sum(part.message_count for part in parts), "message"), standing(last)]
    title = shorten(_shown(last.title or _whole_words(last.first_line), mask) or last.id, _TITLE)
    return Entry(number, title, tuple(_shown(fact, mask) for fact in facts), _local(first.started_at, zone))


def said(message: Message, number: int, part: int, mask: Mask, zone: tzinfo | None = None) -> Said:
    """A message of a part of a conversation. A message that is not shown has no `Said`: see `is_shown`."""
    is_summary = message.seq == SUMMARY_SEQ
    return Said(
        anchor=f"c{number}-{part}-{message.seq}",
        voice="summary" if is_summary else message.role,
        name=_shown(_name(message), mask),
        at=_local(message.timestamp, zone),
        seq=message.seq,
        text=str(mask(printable(message.content or ""))).strip("\n"),
        calls=tuple(Call(_shown(called(call), mask), _arguments(call, mask)) for call in message.calls),
        note=message.note,
    )


def is_shown(message: Message) -> bool:
    return message.state != State.UNDONE


def blocks(text: str) -> Iterator[Block]:
    """The words and the fenced code of a message, in order. A fence that nobody closed goes on to the end."""
    words: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        opening = _FENCE.fullmatch(line)
        if opening is None:
            words.append(line)
            continue
        if words:
            yield Block("\n".join(words))
            words = []
        closing = re.compile(rf"[ \t]*{opening['fence'][0]}{{{len(opening['fence'])},}}[ \t]*")
        indent = opening.start("fence")
        code = []
        for inner in lines:
            if closing.fullmatch(inner):
                break
            code.append(_dedented(inner, indent))
        language = _LANGUAGE.match(opening["info"])
        yield Block("\n".join(code), is_code=True, language=language[0] if language else "")
    if words:
        yield Block("\n".join(words))


def continued(part: Session, mask: Mask) -> str:
    """What stands where one part of a conversation ends and the next begins."""
    return f"compressed, and continued as {_shown(part.id, mask)}"


def begun_anew(reason: ResetReason, at: datetime, before: str | None, mask: Mask, zone: tzinfo | None = None) -> str:
    """What stands where a part began because its lane got a new session."""
    after = f"; before it: {_shown(before, mask)}" if before else ""
    return f"begun anew {WHY_ANEW[reason]} on {at.astimezone(zone):%Y-%m-%d %H:%M}{after}"


def _name(message: Message) -> str:
    if message.seq == SUMMARY_SEQ:
        return "Summary of what came before"
    return {
        "user": message.author or "You",
        "assistant": "Assistant",
        "system": "System",
        "tool": message.tool_name or "tool",
    }.get(message.role, message.role)


def _arguments(call: Mapping[str, Any], mask: Mask) -> str:
    function = call.get("function")
    given = function.get("arguments") if isinstance(function, Mapping) else call.get("arguments", call.get("input"))
    value = decode(given) if isinstance(given, str) else given
    if value in (None, "", {}):
        return ""
    try:
        shown = mask(_printable(value))
        return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)
    except RecursionError:
        return str(mask(printable(str(given))))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(name): _printable(one) for name, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, list) else value


def _shown(text: str, mask: Mask) -> str:
    return str(mask(one_line(text)))


def _whole_words(line: str) -> str:
    """The beginning of a message without a last word that was cut: half a secret looks like none."""
    return line if len(line) < _FIRST_LINE else line.rpartition(" ")[0] or line


def _dedented(line: str, indent: int) -> str:
    """A line of fenced code without the indent that its fence had."""
    return line[min(indent, len(line) - len(line.lstrip(" \t"))) :]


def _local(moment: float, zone: tzinfo | None) -> datetime:
    return instant(moment).astimezone(zone)
