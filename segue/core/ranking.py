"""How well a message answers a query: its words, how rare they are, how much else there is, and how long ago it was."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from segue.core.matching import Found, Needle
from segue.core.moments import DAY

_SATURATION = 1.2
_LENGTH_MATTERS = 0.6
_ORDINARY_LENGTH = 500  # characters
_FRESHNESS = 0.35
_HALF_LIFE = 180 * DAY
_TITLE = 0.5
_AUTOMATION = 0.5


class Weighed(NamedTuple):
    """A term and how much it says: the rarer, the more."""

    needle: Needle
    weight: float


def rarity(frequency: int, messages: int) -> float:
    """What it says that a message has a term which so many of all have."""
    return math.log(1 + (messages - frequency + 0.5) / (frequency + 0.5)) if messages > frequency else 0.1


def score(found: Found, folded: str, folded_title: str, terms: Sequence[Weighed], now: float) -> float:
    """The score of one message; only compared with others of the same query."""
    words = 0.0
    for term in terms:
        words += term.weight * worth(term, folded)
        if folded_title and _occurrences(term.needle, folded_title):
            words += term.weight * _TITLE
    fresh: float = 0.5 ** (max(now - found.timestamp, 0.0) / _HALF_LIFE)
    return words * (1 + _FRESHNESS * fresh) * (1.0 if found.kind == "interactive" else _AUTOMATION)


def worth(term: Weighed, folded: str) -> float:
    """How much a message makes of a term, between nothing and a little more than 2."""
    times = _occurrences(term.needle, folded)
    if not times:
        return 0.0
    length = 1 - _LENGTH_MATTERS + _LENGTH_MATTERS * len(folded) / _ORDINARY_LENGTH
    return times * (_SATURATION + 1) / (times + _SATURATION * length)


def _occurrences(needle: Needle, folded: str) -> int:
    """How often a term stands there, as far as that can be told quickly."""
    if needle.part:
        return folded.count(needle.part)
    sought = needle.literals or needle.tokens.words
    return min(map(folded.count, sought), default=0)
