"""A past conversation as it is told to somebody who asks about something in it: whole if short, else around it."""

from collections.abc import Collection, Sequence

from segue.core.messages import Message
from segue.core.text import ELLIPSIS, cut

MOST_CHARACTERS = 100_000
_LONGEST_MESSAGE = 8_000
_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


def retold(messages: Sequence[Message], matches: Collection[int], most: int = MOST_CHARACTERS) -> str:
    """The words of a conversation, at most so many characters, nearest to the messages that match first.

    `matches` are positions in `messages`. What is left out is marked.
    """
    lines = [_line(message) for message in messages]
    chosen = _nearest(lines, matches, most)
    told: list[str] = []
    last = -1
    for at in sorted(chosen):
        if at > last + 1:
            told.append(ELLIPSIS)
        told.append(lines[at])
        last = at
    if told and last < len(lines) - 1:
        told.append(ELLIPSIS)
    return "\n".join(told)


def _nearest(lines: Sequence[str], matches: Collection[int], most: int) -> set[int]:
    by_distance = sorted(range(len(lines)), key=lambda at: (min((abs(at - one) for one in matches), default=at), at))
    chosen: set[int] = set()
    room = most
    for at in by_distance:
        if not lines[at]:
            continue
        room -= len(lines[at]) + 1
        if room < 0 and chosen:
            break
        chosen.add(at)
    return chosen


def _line(message: Message) -> str:
    """A message as a line of a transcript; what a system said, and what is empty, is none."""
    if message.role not in _NAMES or not message.content:
        return ""
    whole = message.content.strip()
    text = whole if len(whole) <= _LONGEST_MESSAGE else cut(whole, _LONGEST_MESSAGE) + ELLIPSIS
    name = message.tool_name or _NAMES["tool"] if message.role == "tool" else _NAMES[message.role]
    return f"{name}: {text}" if text else ""
