"""What was said last, in a few lines, for somebody who comes back to a conversation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from segue.core.messages import SUMMARY_SEQ, Message, called
from segue.core.text import ELLIPSIS, cut, one_line, printable

_EXCHANGES = 10
_USER_CHARACTERS = 300
_REPLY_CHARACTERS = 200
_REPLY_LINES = 3


_CODE = re.compile(r"(?<![\\`])`([^`\n]+)`(?!`)")
_LINE_MARKS = re.compile(r"^ {0,3}(?:#{1,6} +|(?:`{3}|~{3})[\w+-]*[ \t]*(?:\n|\Z))", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*\\])(?P<sign>\*{1,3})(?=\S)(?P<words>[^*\n]+?)(?<=[^\s\\])(?P=sign)(?![\w*])")
_ESCAPING = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_EMPTY_LINES = re.compile(r"\n{3,}")


class Voice(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOLS = "tools"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Line:
    voice: Voice
    text: str


@dataclass(frozen=True, slots=True)
class Recap:
    """The last exchanges, and how many messages came before them."""

    earlier: int
    lines: tuple[Line, ...]


def recap(messages: Sequence[Message]) -> Recap:
    """The last ten exchanges without system messages, tool results or reasoning."""
    spoken = [m for m in messages if m.is_live and m.role in ("user", "assistant") and (m.content or m.calls)]
    starts = [at for at, message in enumerate(spoken) if message.role == "user" and message.seq != SUMMARY_SEQ]
    first = starts[-_EXCHANGES] if len(starts) > _EXCHANGES else 0
    return Recap(first, tuple(line for message in spoken[first:] for line in _lines(message)))


def _lines(message: Message) -> list[Line]:
    text = printable(message.content or "").strip()
    if message.role == "user":
        voice = Voice.SUMMARY if message.seq == SUMMARY_SEQ else Voice.USER
        return [Line(voice, _cut(text, _USER_CHARACTERS))] if text else []
    plain = without_marks(text)
    lines = [Line(Voice.ASSISTANT, _cut(_first_lines(plain), _REPLY_CHARACTERS))] if plain else []
    if calls := message.calls:
        names = dict.fromkeys(map(called, calls))
        noun = "tool call" if len(calls) == 1 else "tool calls"
        lines.append(Line(Voice.TOOLS, f"[{len(calls)} {noun}: {one_line(', '.join(names))}]"))
    return lines


def without_marks(text: str) -> str:
    """What Markdown says at a glance, without the signs that are there to be laid out."""
    spans = _CODE.split(text)  # every second one is code, and stays as it is written
    words = [span if at % 2 else _plain(span) for at, span in enumerate(spans)]
    return _EMPTY_LINES.sub("\n\n", "".join(words)).strip()


def _plain(text: str) -> str:
    bare = _EMPHASIS.sub(r"\g<words>", _LINE_MARKS.sub("", text))
    return _ESCAPING.sub("", bare)


def _first_lines(text: str) -> str:
    lines = text.split("\n")
    return text if len(lines) <= _REPLY_LINES else "\n".join(lines[:_REPLY_LINES]) + f" {ELLIPSIS}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else cut(text, most).rstrip() + ELLIPSIS
