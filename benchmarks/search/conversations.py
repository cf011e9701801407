"""The conversations that are searched: those of the corpus with shorter outputs, more CJK, and names said only once.

They are written to a file once and read from it in pieces: a million messages are never in memory.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus import DAY, Corpus, Message, Session, text_bytes, write
from benchmarks.quality.distractors import make_distractors

PER_SESSION = 40  # messages
DAYS = 300
_LONGEST_OUTPUT = 1200  # characters
_NAMED = 0.25  # of the messages
_CJK = 0.1  # of the messages
_CJK_LANGUAGES = ("zh-Hans", "zh-Hant", "ja", "ko")
_SYLLABLES = "bra cle dro fin gam hol jes kip lor mav nep osk pru ris tam ulv wex yar zol"


class Library(NamedTuple):
    """A file of conversations, one a line."""

    file: Path
    messages: int
    text: int
    """Bytes of what they say."""
    places: list[int]
    """Where each begins in the file."""

    def session(self, number: int) -> Session:
        with self.file.open("rb") as lines:
            lines.seek(self.places[number])
            found: Session = json.loads(lines.readline())
        return found

    def sample(self, count: int) -> Iterator[Session]:
        """So many of them, spread over all."""
        step = max(1, len(self.places) // count)
        return (self.session(number) for number in range(0, len(self.places), step))


def written(file: Path, messages: int, seed: int, now: float) -> Library:
    """Conversations of so many messages in all, the newest of them a little before `now`."""
    said = 0

    def counted() -> Iterator[Session]:
        nonlocal said
        for session in conversations(messages // PER_SESSION, seed, now):
            said += sum(map(text_bytes, session["messages"]))
            yield session

    write(file, counted())
    return Library(file, messages, said, _places(file))


def conversations(count: int, seed: int, now: float) -> Iterator[Session]:
    source = random.Random(seed)
    foreign = list(_foreign(seed))
    begin, gap = now - DAYS * DAY, DAYS * DAY / (count + 1)
    for number, session in enumerate(Corpus(seed, begin).sessions(count, PER_SESSION)):
        later = begin + number * gap - session["started_at"]
        yield session | {
            "started_at": session["started_at"] + later,
            "ended_at": session["ended_at"] + later,
            "messages": [_altered(message, source, foreign, later) for message in session["messages"]],
        }


def _altered(message: Message, source: random.Random, foreign: list[str], later: float) -> Message:
    content = message["content"]
    if message["role"] == "tool":
        content = content[:_LONGEST_OUTPUT].strip()
    if source.random() < _NAMED:
        content += " " + "".join(source.choices(_SYLLABLES.split(), k=4))
    if source.random() < _CJK:
        content += " " + source.choice(foreign)
    return message | {"content": content, "timestamp": message["timestamp"] + later}


def _foreign(seed: int) -> Iterator[str]:
    for conversation in make_distractors(3000, seed):
        if conversation.language in _CJK_LANGUAGES:
            yield from (message.content for message in conversation.messages)


def _places(file: Path) -> list[int]:
    places = [0]
    with file.open("rb") as lines:
        for line in lines:
            places.append(places[-1] + len(line))
    return places[:-1]
