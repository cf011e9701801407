"""A past conversation as it is told to somebody who asks about something in it: whole if short, else around it.

One rule holds for a conversation and for a long message in it: first what was asked for, then what stands nearest, as
far as there is room; what is left out is marked.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from segue.core.matching import Needle, Page, calls_of, is_found, needle_of
from segue.core.messages import Message, called
from segue.core.query import Term
from segue.core.text import ELLIPSIS, cut, shorten
from segue.core.tokens import LONGEST, fold, tokens_of

MOST_CHARACTERS = 100_000
FEW_CHARACTERS = 4_000
"""Enough to look at, where no model makes a summary."""
_LONGEST_MESSAGE = 8_000
_LONGEST_NAME = 60
_SHORT = 300  # characters of what a tool was told, or answered, when nobody asked about it
_PIECE = 400
_SMALLEST_PASSAGE = 40
_SMALLEST_SHARE = 200  # characters that a message may have, however many match
_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


def retold(
    messages: Sequence[Message], matches: Sequence[int], most: int = MOST_CHARACTERS, *, terms: Sequence[Term] = ()
) -> str:
    """The words of a conversation, at most so many characters, nearest to the messages that match first.

    `matches` are positions in `messages`, the best first; `terms` are what they were found by.
    """
    share = max(most // (len(matches) + 1), most // 10, _SMALLEST_SHARE)
    longest = min(_LONGEST_MESSAGE, most // 2, share)
    asked = frozenset(matches)
    lines: list[str] = []
    line_of: dict[int, int] = {}
    for at, message in enumerate(messages):
        if line := _told(message, longest, terms, is_match=at in asked):
            line_of[at] = len(lines)
            lines.append(line)
    return _fitted(lines, [line_of[at] for at in matches if at in line_of], most, "\n")


def told(message: Message, most: int) -> str:
    """A message by itself, at most so many characters."""
    return _told(message, most, (), is_match=False)


def passage(text: str, most: int, terms: Sequence[Term] = ()) -> str:
    """What of a text is about the terms, at most so many characters; without any, its beginning."""
    if len(text) <= most:
        return text
    around = _around(text, most, terms) if terms and most >= _SMALLEST_PASSAGE else ""
    return around or (shorten(text, most) if most > 0 else "")


def _around(text: str, most: int, terms: Sequence[Term]) -> str:
    pieces = list(_pieces(text, min(_PIECE, most // 4)))
    telling = _telling(pieces, terms)
    return _fitted(pieces, telling, most, "") if telling else ""


def _told(message: Message, most: int, terms: Sequence[Term], *, is_match: bool) -> str:
    """A message as a line of a transcript; what a system said, and what is empty, is none."""
    content = (message.content or "").strip()
    calls = message.calls
    if message.role not in _NAMES or not (content or calls):
        return ""
    is_tool = message.role == "tool"
    name = shorten((is_tool and message.tool_name) or _NAMES[message.role], _LONGEST_NAME)
    room = most - len(f"{name}: ")
    about, brief = (terms, room) if is_match else ((), min(room, _SHORT))
    made = [_call(call, min(brief, room // (len(calls) + 1)), about) for call in calls]
    left = room - sum(len(call) + 1 for call in made)
    said = passage(content, min(left, brief) if is_tool else left, about)
    line = f"{name}: " + "\n".join(filter(None, [said, *made]))
    return shorten(line, most) if room > 0 else ""


def _call(call: dict[str, Any], most: int, terms: Sequence[Term]) -> str:
    """The call of a tool: its name, and of the arguments what there is room for."""
    name = called(call)
    arguments = calls_of(json.dumps([call])).removeprefix(name).strip()
    shown = shorten(name, _LONGEST_NAME)
    given = passage(arguments, most - len(f"[calls {shown} ]"), terms)
    return f"[calls {shown} {given}]" if given else f"[calls {shown}]"


def _fitted(pieces: Sequence[str], matches: Sequence[int], most: int, between: str) -> str:
    """The pieces that there is room for, those nearest to the matches first, in their order."""
    if sum(map(len, pieces)) + len(between) * (len(pieces) - 1) <= most:
        return between.join(pieces)
    gap = between or " "
    cost = len(gap + ELLIPSIS + gap)
    shown: list[str] = []
    following = 0
    for first, end in _runs(_nearest([len(piece) + cost for piece in pieces], matches, most - len(ELLIPSIS))):
        if first > following:
            shown.append(ELLIPSIS)
        shown.append(between.join(pieces[first:end]).strip())
        following = end
    if shown and following < len(pieces):
        shown.append(ELLIPSIS)
    return gap.join(shown)


def _nearest(costs: Sequence[int], matches: Sequence[int], room: int) -> list[int]:
    """The positions that there is room for, by their distance from a match; of equal ones, from the better match."""
    rank = {at: number for number, at in enumerate(matches)}
    places = sorted(rank)

    def distance(at: int) -> tuple[int, int]:
        behind = bisect_left(places, at)
        return min(((abs(at - one), rank[one]) for one in places[max(behind - 1, 0) : behind + 1]), default=(at, 0))

    chosen: list[int] = []
    for at in sorted(range(len(costs)), key=distance):
        room -= costs[at]
        if room < 0:
            break
        chosen.append(at)
    return sorted(chosen)


def _runs(positions: Iterable[int]) -> list[tuple[int, int]]:
    """Positions that follow each other: of each run the first, and the end behind the last."""
    runs: list[tuple[int, int]] = []
    for at in positions:
        if runs and runs[-1][1] == at:
            runs[-1] = (runs[-1][0], at + 1)
        else:
            runs.append((at, at + 1))
    return runs


def _pieces(text: str, size: int) -> Iterator[str]:
    """The whole text in pieces of at most that size, cut between words where there are any."""
    at = 0
    while at < len(text):
        piece = cut(text[at : at + 2 * size], size) or text[at : at + size]
        if at + len(piece) < len(text):
            piece = piece[: max(piece.rfind(" "), piece.rfind("\n")) + 1] or piece
        yield piece
        at += len(piece)


def _telling(pieces: Sequence[str], terms: Sequence[Term]) -> list[int]:
    """The pieces that say at least half as much about the terms as the best one does, the best first.

    A sign of a term says the more, the fewer pieces have it: words that stand everywhere lead nowhere.
    """
    following = [*pieces[1:], ""]  # what begins in a piece may end in the next
    pages = [Page(piece + after[:LONGEST]) for piece, after in zip(pieces, following, strict=True)]
    worth = [0.0] * len(pieces)
    for is_there in _signs(terms):
        places = [at for at, page in enumerate(pages) if is_there(page)]
        for at in places:
            worth[at] += 1 / len(places)
    best = max(worth, default=0.0)
    return sorted((at for at, one in enumerate(worth) if best and one >= best / 2), key=lambda at: (-worth[at], at))


def _signs(terms: Sequence[Term]) -> Iterator[Callable[[Page], bool]]:
    """What terms are recognised by: each as it is meant, and each of its words, be it a part of another."""
    for term in dict.fromkeys(terms):
        yield partial(_has, needle_of(term))
    for word in dict.fromkeys(word for term in terms for word in tokens_of(fold(term.text))):
        yield partial(_mentions, word)


def _has(needle: Needle, page: Page) -> bool:
    return all(word in page.folded for word in needle.tokens.words) and is_found(needle, page)


def _mentions(word: str, page: Page) -> bool:
    return word in page.folded
