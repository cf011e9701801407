"""The facts and the questions, read and checked.

A fact is a short conversation that holds an answer. A question names the facts that answer it; `outdated` are facts
that a newer one replaced, which should come after those wanted. A file that breaks a rule of the set is `BadData`.
"""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
FACTS = FOLDER / "facts.jsonl"
QUESTIONS = FOLDER / "questions.jsonl"

FEWEST_FACTS = 120
FEWEST_QUESTIONS = 210
OLDEST = 1500  # days
LANGUAGES = ("en", "zh-Hans", "zh-Hant", "ja", "ko", "de", "fr", "es", "ru", "ar", "th", "hi")

# Kana, the ideographs and their first extension, and the syllables of Korean.
_CJK = (("\u3040", "\u30ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7a3"))


class BadData(ValueError):
    """A file of the set breaks one of its own rules."""


class Kind(StrEnum):
    KEYWORD = "keyword"  # a few words as people type them
    NATURAL = "natural"  # a whole question
    PARAPHRASE = "paraphrase"  # partly other words, or other forms of the same
    PHRASE = "phrase"  # in quotation marks
    IDENTIFIER = "identifier"  # paths, error codes, addresses, numbers of orders
    SHORT_CJK = "short_cjk"  # one or two characters
    MIXED = "mixed"  # two scripts in one query
    DIACRITICS = "diacritics"  # accents left out
    PREFIX = "prefix"  # a star at the end
    HARD = "hard"  # no word in common with the fact


class Message(NamedTuple):
    role: str
    content: str


class Conversation(NamedTuple):
    id: str
    language: str
    days_ago: int
    title: str
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        return "\n".join(message.content for message in self.messages)


class Question(NamedTuple):
    id: str
    query: str
    language: str
    kind: Kind
    wanted: tuple[str, ...]
    outdated: tuple[str, ...] = ()
    note: str = ""


def load_facts(path: Path = FACTS) -> list[Conversation]:
    facts = [_fact(row) for row in _rows(path)]
    _check_ids(fact.id for fact in facts)
    _demand(len(facts) >= FEWEST_FACTS, f"{path.name} has {len(facts)} facts, fewer than {FEWEST_FACTS}")
    return facts


def load_questions(facts: Iterable[Conversation], path: Path = QUESTIONS) -> list[Question]:
    questions = [_question(row) for row in _rows(path)]
    _check_ids(question.id for question in questions)
    _check_ids(f"{question.kind} {question.query}" for question in questions)
    days_ago = {fact.id: fact.days_ago for fact in facts}
    for question in questions:
        _check_answers(question, days_ago)
    _demand(len(questions) >= FEWEST_QUESTIONS, f"{len(questions)} questions, fewer than {FEWEST_QUESTIONS}")
    cjk = sum(has_cjk(question.query) for question in questions)
    _demand(cjk * 3 >= len(questions), f"{cjk} of {len(questions)} questions have CJK, less than a third")
    return questions


def has_cjk(text: str) -> bool:
    return any(first <= sign <= last for sign in text for first, last in _CJK)


def _fact(row: dict[str, Any]) -> Conversation:
    try:
        said = tuple(Message(**message) for message in row["messages"])
        fact = Conversation(**{**row, "messages": said})
    except (KeyError, TypeError) as error:
        raise BadData(f"{row.get('id')}: {error}") from error
    _check_language(fact.id, fact.language)
    _demand(0 <= fact.days_ago <= OLDEST, f"{fact.id}: {fact.days_ago} days ago")
    _demand(2 <= len(said) <= 6, f"{fact.id}: {len(said)} messages")
    _demand(all(message.role in ("user", "assistant") for message in said), f"{fact.id}: a role that nobody has")
    _demand(bool(fact.title) and all(message.content.strip() for message in said), f"{fact.id}: an empty text")
    return fact


def _question(row: dict[str, Any]) -> Question:
    try:
        answers = {"wanted": tuple(row["wanted"]), "outdated": tuple(row.get("outdated", ()))}
        question = Question(**{**row, **answers, "kind": Kind(row["kind"])})
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{row.get('id')}: {error}") from error
    _check_language(question.id, question.language)
    _demand(bool(question.query.strip()), f"{question.id}: an empty query")
    return question


def _check_answers(question: Question, days_ago: dict[str, int]) -> None:
    named = question.wanted + question.outdated
    _demand(bool(question.wanted), f"{question.id}: nothing is wanted")
    _demand(len(set(named)) == len(named), f"{question.id}: a fact is named twice")
    unknown = [name for name in named if name not in days_ago]
    _demand(not unknown, f"{question.id}: no such fact: {', '.join(unknown)}")
    if question.outdated:
        newest = min(days_ago[name] for name in question.outdated)
        is_replaced = max(days_ago[name] for name in question.wanted) < newest
        _demand(is_replaced, f"{question.id}: what is outdated is not the older")


def _check_ids(ids: Iterable[str]) -> None:
    seen = set[str]()
    for one in ids:
        _demand(one not in seen, f"twice: {one}")
        seen.add(one)


def _check_language(owner: str, language: str) -> None:
    _demand(language in LANGUAGES, f"{owner}: unknown language {language}")


def _demand(is_so: bool, complaint: str) -> None:
    if not is_so:
        raise BadData(complaint)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
