"""What of a text answers a question, and what of a conversation tells the whole: sentences as they were written.

A word is recognised by its root, so that `climb` finds `climbing`. How much a sentence says about a question is the
share of the question's roots that it has; how much it says about its conversation, the weight of the words it has that
come back there.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log, sqrt
from typing import NamedTuple

from segue.core.stopwords import is_telling
from segue.core.text import cut, one_line, shorten
from segue.core.tokens import fold, is_dense, tokens_of

_LOOKED_AT = 50_000  # characters of a message
_LONGEST_SENTENCE = 280
_SHORTEST_SENTENCE = 12
_OF_THE_QUESTION = 0.4
"""What it adds to an answer that the words stand in the question before it."""
_CLEAR = 0.6
_SHORTEST_ROOT = 4
_KEY_SENTENCES = 3

_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])(?![」』）”])|\n+")
_QUESTION = re.compile(r"[?？]\W*$")
_MARKUP = re.compile(r"^[\s#>*+|-]+|[*`|]+|^\d+[.)]\s")


class Spoken(NamedTuple):
    """A message, as far as people read it."""

    role: str
    text: str


class Extract(NamedTuple):
    """A sentence and what is around it, and how much of what was asked it says."""

    text: str
    share: float

    @property
    def is_clear(self) -> bool:
        return self.share >= _CLEAR


class Summary(NamedTuple):
    request: str
    sentences: tuple[str, ...]
    answer: str


def roots_of(words: Iterable[str]) -> tuple[str, ...]:
    """The beginnings that words are recognised by; of a script without spaces, pairs of characters."""
    return tuple(dict.fromkeys(_root(token) for word in words for token in _tokens(word)))


def share_of(roots: Sequence[str], text: str) -> float:
    """How much of what is asked a text has, from nothing to 1."""
    return len(_found(roots, text)) / len(roots) if roots else 0.0


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line and without the signs of Markdown around it."""
    lines = (one_line(_MARKUP.sub("", piece)) for piece in _ENDS.split(text[:_LOOKED_AT]))
    return [line for line in lines if any(sign.isalnum() for sign in line)]


def answering(said: Sequence[Spoken], roots: Sequence[str]) -> Extract:
    """The passage that says most about what is asked: no question, if there is anything else."""
    best = Extract("", -1.0)
    before = Spoken("", "")
    for message in said:
        asked = _found(roots, before.text) if (before.role, message.role) == ("user", "assistant") else set()
        lines = sentences(message.text)
        for at, line in enumerate(lines):
            share = _worth(_found(roots, line), asked, roots) * (0.5 if _QUESTION.search(line) else 1.0)
            if share > best.share:
                best = Extract(_in_context(lines, at, roots), share)
        before = message
    return best._replace(share=max(best.share, 0.0))


def _worth(found: set[str], asked: set[str], roots: Sequence[str]) -> float:
    """What a sentence has of the roots; those that only the question before it has count less."""
    return (len(found) + _OF_THE_QUESTION * len(asked - found)) / len(roots) if roots else 0.0


def summary_of(said: Sequence[Spoken]) -> Summary:
    """A conversation in a few of its own sentences: how it began, what it was about, how it ended."""
    requests = [one.text for one in said if one.role == "user"]
    answers = [one.text for one in said if one.role == "assistant"]
    request = _opening(requests[0] if requests else "")
    answer = _opening(answers[-1] if answers else "")
    lines = list(dict.fromkeys(line for one in said for line in sentences(one.text)))
    middle = [line for line in lines if line not in request and line not in answer]
    return Summary(request, tuple(_key_sentences(middle, lines)), answer)


def excerpt_of(said: Sequence[Spoken], most: int, around: int | None = None) -> list[Spoken | None]:
    """The messages next to one, or the first and last ones; each cut, and None where some are left out."""
    longest = max(most // 4, 1)
    near = [0, len(said) - 1] if around is None else [around]
    chosen: list[int] = []
    for at in sorted(range(len(said)), key=lambda at: min(abs(at - one) for one in near)):
        most -= min(len(said[at].text), longest)
        if chosen and most < 0:
            break
        chosen.append(at)
    return _with_gaps(said, sorted(chosen), longest)


def _with_gaps(said: Sequence[Spoken], chosen: Sequence[int], longest: int) -> list[Spoken | None]:
    shown: list[Spoken | None] = [None] if chosen and chosen[0] > 0 else []
    for at, following in pairwise([*chosen, len(said)]):
        shown.append(said[at]._replace(text=shorten(said[at].text, longest)))
        if following > at + 1:
            shown.append(None)
    return shown


def _key_sentences(candidates: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The sentences with the most characteristic words, in reading order."""
    counts = Counter(word for line in lines for word in set(_telling_tokens(line)))

    def weight(line: str) -> float:
        words = set(_telling_tokens(line))
        weights = sum(1 + log(counts[word]) for word in words)
        return weights / sqrt(len(words) + 3) * (0.5 if _QUESTION.search(line) else 1.0)

    long_enough = [line for line in candidates if len(line) >= _SHORTEST_SENTENCE] or list(candidates)
    best = sorted(long_enough, key=weight, reverse=True)[:_KEY_SENTENCES]
    return [shorten(line, _LONGEST_SENTENCE) for line in lines if line in best]


def _opening(text: str) -> str:
    """The first sentences of a text, as many as are read at a glance."""
    told = ""
    for line in sentences(text):
        if told and len(told) + len(line) >= _LONGEST_SENTENCE:
            break
        told = f"{told} {line}".strip()
    return shorten(told, _LONGEST_SENTENCE)


def _in_context(lines: Sequence[str], at: int, roots: Sequence[str]) -> str:
    """A sentence with the one before or behind it, when there is room; of a long one what is about the question."""
    if len(lines[at]) > _LONGEST_SENTENCE:
        return _around(lines[at], roots)
    told = lines[at]
    if at + 1 < len(lines) and len(told) + len(lines[at + 1]) < _LONGEST_SENTENCE:
        told = f"{told} {lines[at + 1]}"
    if at and len(lines[at - 1]) + len(told) < _LONGEST_SENTENCE:
        told = f"{lines[at - 1]} {told}"
    return told


def _around(line: str, roots: Sequence[str]) -> str:
    """The window of a long sentence that begins a little before the first root that is found there."""
    folded = line.lower()
    places = [place for root in roots if (place := folded.find(root)) >= 0]
    start = max(min(places, default=0) - 60, 0)
    if start:
        start = line.rfind(" ", 0, start) + 1
    return ("…" if start else "") + shorten(cut(line[start:], 2 * _LONGEST_SENTENCE), _LONGEST_SENTENCE)


def _found(roots: Sequence[str], text: str) -> set[str]:
    words = set(tokens_of(fold(text[:_LOOKED_AT])))
    return {
        root for root in roots if root in words or (_is_open(root) and any(word.startswith(root) for word in words))
    }


def _tokens(word: str) -> list[str]:
    tokens = tokens_of(fold(word))
    pairs = [token for token in tokens if len(token) > 1 or not is_dense(token)]
    return pairs or tokens


def _telling_tokens(line: str) -> list[str]:
    return [_root(token) for token in _tokens(line) if is_telling(token)]


def _root(token: str) -> str:
    """The beginning of a word without what its forms differ by."""
    if len(token) <= _SHORTEST_ROOT or is_dense(token[0]) or not token.isalpha():
        return token
    ending = 3 if len(token) > 7 else 2 if len(token) > 5 else 1
    return token[: max(_SHORTEST_ROOT, len(token) - ending)]


def _is_open(root: str) -> bool:
    return len(root) >= _SHORTEST_ROOT and root.isalpha() and not is_dense(root[0])
