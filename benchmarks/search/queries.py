"""The queries of each row, drawn from what the conversations say; and whether a conversation answers one."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from benchmarks.corpus import Message, Session
from benchmarks.quality.loading import has_cjk
from benchmarks.search.asking import Asked

_WORD = re.compile(r"(?<![\w'])[a-z]{4,}(?![\w'])")
_CJK_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{4,}")
_COMMON = (0.08, 0.5)  # of the messages
_FREQUENT = (0.004, 0.04)
_PREFIX = Asked("deplo*")  # of a word that is common
_DRAWS = 10_000


class Kind(StrEnum):
    COMMON = "common word"
    RARE = "rare word"
    TWO = "two words"
    PHRASE = "phrase"
    PREFIX = "prefix"
    CJK_1 = "CJK, 1 character"
    CJK_2 = "CJK, 2 characters"
    CJK_4 = "CJK, 4 characters"
    PART = "part of a word"
    SOURCE = "common word, one source"
    SINCE = "common word, since a day"


def answers(session: Session, asked: Asked) -> bool:
    """Whether a message of the session is what was asked for."""
    if asked.source and session["source"] != asked.source:
        return False
    since = datetime.fromisoformat(asked.since).timestamp() if asked.since else 0.0
    fits = _judge(asked)
    return any(message["timestamp"] >= since and fits(message["content"].lower()) for message in session["messages"])


def _judge(asked: Asked) -> Callable[[str], bool]:
    text = asked.text
    if asked.is_part or has_cjk(text):
        return lambda said: text in said
    if text.endswith("*"):
        patterns = [rf"\b{re.escape(text[:-1])}"]
    elif text.startswith('"'):
        patterns = [rf"\b{re.escape(text.strip(chr(34)))}\b"]
    else:
        patterns = [rf"\b{re.escape(word)}\b" for word in text.split()]
    return lambda said: all(re.search(pattern, said) for pattern in patterns)


class Draw:
    """Queries from a sample of conversations; the same seed draws the same."""

    def __init__(self, sample: Iterable[Session], seed: int) -> None:
        self._random = random.Random(seed)
        sessions = list(sample)
        self._sources = sorted({session["source"] for session in sessions})
        self._begins = sorted(session["started_at"] for session in sessions)
        # Not every side searches the output of tools.
        said: list[Message] = [one for session in sessions for one in session["messages"] if one["role"] != "tool"]
        self._texts = [message["content"] for message in said]
        self._words = [_WORD.findall(text) for text in self._texts]
        self._shares = {
            word: count / len(said)
            for word, count in Counter(word for words in self._words for word in {*words}).items()
        }
        self._common = sorted(word for word in self._shares if self._is_within(word, _COMMON))

    def queries(self, kind: Kind, count: int) -> list[Asked]:
        """Different ones, as many as there are up to `count`."""
        drawn = dict.fromkeys([_PREFIX] if kind is Kind.PREFIX else [])
        for _ in range(_DRAWS):
            if len(drawn) == count:
                break
            drawn |= dict.fromkeys(self._drawn(kind))
        assert drawn, kind
        return list(drawn)[:count]

    def _drawn(self, kind: Kind) -> Iterator[Asked]:
        place = self._random.randrange(len(self._texts))
        match kind:
            case Kind.COMMON:
                yield Asked(self._random.choice(self._common))
            case Kind.SOURCE:
                yield Asked(self._random.choice(self._common), source=self._random.choice(self._sources))
            case Kind.SINCE:
                yield Asked(self._random.choice(self._common), since=self._day())
            case Kind.CJK_1 | Kind.CJK_2 | Kind.CJK_4:
                yield from map(Asked, self._cjk(self._texts[place], int(kind.split()[1])))
            case _:
                yield from self._by_words(kind, self._words[place])

    def _by_words(self, kind: Kind, words: list[str]) -> Iterator[Asked]:
        frequent = [word for word in words if self._is_within(word, _FREQUENT)]
        match kind:
            case Kind.RARE:
                yield from (Asked(word) for word in words[-1:] if self._shares[word] * len(self._texts) <= 1)
            case Kind.TWO if len({*frequent}) > 1:
                yield Asked(" ".join(self._random.sample(sorted({*frequent}), 2)))
            case Kind.PHRASE:
                yield from (Asked(f'"{pair}"') for pair in self._pairs(words, frequent))
            case Kind.PREFIX:
                yield from (Asked(f"{word[:5]}*") for word in frequent[:1] if len(word) > 5)
            case Kind.PART:
                yield from (Asked(word[1:], is_part=True) for word in frequent[:1] if self._is_no_word(word[1:]))

    def _pairs(self, words: list[str], frequent: list[str]) -> list[str]:
        """Two words that stand together in a text of the sample."""
        joined = [f"{one} {other}" for one, other in pairwise(words) if {one, other} <= {*frequent}]
        return [pair for pair in joined if any(f" {pair} " in text for text in self._texts)][:1]

    def _cjk(self, text: str, length: int) -> Iterator[str]:
        for run in _CJK_RUN.findall(text)[:1]:
            first = self._random.randrange(len(run) - length + 1)
            yield run[first : first + length]

    def _day(self) -> str:
        """A day in the middle of all that was said."""
        quarter = len(self._begins) // 4
        moment = self._random.choice(self._begins[quarter : 3 * quarter] or self._begins)
        return f"{datetime.fromtimestamp(moment).astimezone():%Y-%m-%d}"

    def _is_within(self, word: str, shares: tuple[float, float]) -> bool:
        return shares[0] <= self._shares[word] < shares[1]

    def _is_no_word(self, part: str) -> bool:
        return len(part) > 4 and part not in self._shares
