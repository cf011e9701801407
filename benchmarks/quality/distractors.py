"""Conversations that stand in the way: the words of the facts without their answers.

Sentences come from `templates/`, one file a language. `{city}` is one of the language's words, the same throughout a
conversation; `{n}`, `{price}`, `{time}` and `{reference}` are drawn. Two words that make a question together are in one
list, so that no conversation has both. The same seed makes the same conversations.
"""

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from benchmarks.quality.loading import FOLDER, OLDEST, Conversation, Message

# Near the mix of the facts.
SHARES = {
    "en": 42,
    "zh-Hans": 14,
    "ja": 12,
    "zh-Hant": 5,
    "ko": 5,
    "de": 4,
    "fr": 4,
    "es": 4,
    "ru": 3,
    "ar": 3,
    "th": 2,
    "hi": 2,
}
_LONGEST_TITLE = 40
_UNSPACED = ("zh-Hans", "zh-Hant", "ja")


class Topic(NamedTuple):
    user: list[str]
    assistant: list[str]  # the first answers the first of the user, and so on


class Templates(NamedTuple):
    words: dict[str, list[str]]
    topics: list[Topic]


def make_distractors(count: int, seed: int) -> Iterator[Conversation]:
    source = random.Random(seed)
    for number in range(count):
        language = source.choices(list(SHARES), list(SHARES.values()))[0]
        yield _Speaker(source, load_templates(language)).conversation(f"distractor-{number:06d}", language)


@cache
def load_templates(language: str) -> Templates:
    read = json.loads((FOLDER / "templates" / f"{language}.json").read_text("utf-8"))
    return Templates(read["words"], [Topic(**topic) for topic in read["topics"].values()])


class _Speaker:
    """One conversation's choice of words."""

    def __init__(self, source: random.Random, templates: Templates) -> None:
        self._random = source
        self._topic = source.choice(templates.topics)
        self._word = {name: source.choice(words) for name, words in templates.words.items()}
        self._word["n"] = str(source.randint(3, 19))
        self._word["price"] = str(source.randrange(30, 2000, 10))
        self._word["time"] = f"{source.randint(8, 21)}:{source.choice(('00', '10', '45'))}"
        self._word["reference"] = f"ZV{source.randint(100_000, 999_999)}"

    def conversation(self, name: str, language: str) -> Conversation:
        questions, answers = self._topic
        rounds = self._random.choices((1, 2, 3), (6, 3, 1))[0]
        messages = list[Message]()
        between = "" if language in _UNSPACED else " "
        for place in self._random.sample(range(len(questions)), min(rounds, len(questions))):
            answer = answers[place % len(answers)]
            others = [one for one in answers if one != answer]
            more = self._random.sample(others, min(self._random.choice((0, 0, 1, 2)), len(others)))
            messages.append(Message("user", self._fill(questions[place])))
            messages.append(Message("assistant", between.join(map(self._fill, [answer, *more]))))
        title = messages[0].content[:_LONGEST_TITLE].rstrip()
        return Conversation(name, language, self._random.randint(0, OLDEST), title, tuple(messages))

    def _fill(self, template: str) -> str:
        filled = template.format_map(self._word)
        return filled[0].upper() + filled[1:]
