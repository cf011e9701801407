"""The questions about search are fair: each answer is there to be found, and nowhere else."""

import json
import re
import unicodedata
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.distractors import SHARES, load_templates, make_distractors
from benchmarks.quality.loading import (
    FACTS,
    LANGUAGES,
    OLDEST,
    QUESTIONS,
    BadData,
    Conversation,
    Kind,
    Question,
    has_cjk,
    load_facts,
    load_questions,
)

SEED = 11
FACT = {fact.id: fact for fact in load_facts()}
ASKED = load_questions(FACT.values())
IN_WORDS = (Kind.KEYWORD, Kind.MIXED, Kind.DIACRITICS)
AS_A_WHOLE = (Kind.PHRASE, Kind.IDENTIFIER, Kind.SHORT_CJK, Kind.PREFIX)
LITERAL = [question for question in ASKED if question.kind in IN_WORDS + AS_A_WHOLE]
ACCENTS = re.compile(r"[\u0300-\u036f\u064b-\u0652]")  # of the alphabets, and the vowel signs of Arabic
MAIN_LANGUAGES = ("en", "zh-Hans", "ja")


def fold(text: str) -> str:
    """Without case and accents. The marks of Thai, Hindi and kana stay: they are more than accents."""
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()


SAID = {name: fold(fact.text) for name, fact in FACT.items()}


def parts(question: Question) -> list[str]:
    """What has to occur: the words of the query, or the whole of it."""
    query = fold(question.query)
    return query.split() if question.kind in IN_WORDS else [query.strip('"').removesuffix("*")]


@pytest.fixture(scope="module")
def distracting() -> list[Conversation]:
    return list(make_distractors(3000, SEED))


def changed(tmp_path: Path, original: Path, **change: Any) -> Path:
    """A copy of a file whose last row is changed."""
    *rows, last = original.read_text("utf-8").splitlines()
    copy = tmp_path / original.name
    copy.write_text("\n".join([*rows, json.dumps({**json.loads(last), **change})]), "utf-8")
    return copy


def test_every_language_and_every_kind_is_asked_about() -> None:
    assert {fact.language for fact in FACT.values()} == {question.language for question in ASKED} == set(LANGUAGES)
    assert {question.kind for question in ASKED} == set(Kind)
    assert sum(question.kind is Kind.HARD for question in ASKED) == 10


def test_a_third_of_the_facts_are_cjk() -> None:
    assert sum(has_cjk(fact.text) for fact in FACT.values()) * 3 >= len(FACT)


def test_every_fact_is_asked_about() -> None:
    assert {name for question in ASKED for name in question.wanted + question.outdated} == set(FACT)


@pytest.mark.parametrize("question", LITERAL, ids=lambda question: question.id)
def test_a_literal_question_occurs_in_every_fact_it_wants(question: Question) -> None:
    for name in question.wanted:
        assert all(part in SAID[name] for part in parts(question)), name


@pytest.mark.parametrize("question", LITERAL, ids=lambda question: question.id)
def test_a_literal_question_occurs_in_no_other_fact(question: Question) -> None:
    others = [name for name in FACT if name not in question.wanted + question.outdated]
    assert not [name for name in others if all(part in SAID[name] for part in parts(question))]


def test_a_literal_question_occurs_in_no_message_of_a_distractor(distracting: list[Conversation]) -> None:
    said = {fold(message.content) for conversation in distracting for message in conversation.messages}
    for question in LITERAL:
        needed = parts(question)
        assert not [text for text in said if all(part in text for part in needed)], question


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (Kind.KEYWORD, r"\S+(\s\S+){0,2}"),
        (Kind.PHRASE, r'"[^"]+"'),
        (Kind.SHORT_CJK, r"\w{1,2}"),
        (Kind.PREFIX, r"\w+\*"),
    ],
)
def test_a_query_has_the_form_of_its_kind(kind: Kind, form: str) -> None:
    queries = [question.query for question in ASKED if question.kind is kind]
    assert not [query for query in queries if not re.fullmatch(form, query)]


def test_a_question_about_accents_needs_them_folded() -> None:
    for question in ASKED:
        if question.kind is Kind.DIACRITICS:
            said = FACT[question.wanted[0]].text.casefold()
            assert not all(word in said for word in question.query.casefold().split()), question


def test_a_prefix_begins_a_word_of_its_fact() -> None:
    for question in ASKED:
        if question.kind is Kind.PREFIX:
            begins = re.compile(rf"(?<!\w){parts(question)[0]}")
            assert all(begins.search(SAID[name]) for name in question.wanted), question


def test_a_hard_question_has_no_word_of_its_fact() -> None:
    for question in ASKED:
        if question.kind is Kind.HARD:
            said = set(re.findall(r"\w+", SAID[question.wanted[0]]))
            assert said.isdisjoint(re.findall(r"\w{4,}", fold(question.query))), question


def test_distractors_use_the_words_of_the_questions(distracting: list[Conversation]) -> None:
    said = fold(" ".join(conversation.text for conversation in distracting))
    words = {word for question in ASKED if question.kind is Kind.KEYWORD for word in parts(question)}
    assert sum(word in said for word in words) > len(words) / 2


def test_the_same_seed_makes_the_same_distractors() -> None:
    assert list(make_distractors(50, SEED)) == list(make_distractors(50, SEED))
    assert list(make_distractors(50, SEED)) != list(make_distractors(50, SEED + 1))


def test_distractors_look_like_facts(distracting: list[Conversation]) -> None:
    assert {conversation.language for conversation in distracting} == set(LANGUAGES)
    for conversation in distracting:
        assert [message.role for message in conversation.messages] == ["user", "assistant"] * (
            len(conversation.messages) // 2
        )
        assert 2 <= len(conversation.messages) <= 6
        assert 0 <= conversation.days_ago <= OLDEST
        assert conversation.title
        assert not set("{}") & set(conversation.text)


def test_distractors_have_the_mix_of_languages_of_the_facts() -> None:
    languages = sorted(fact.language for fact in FACT.values())
    for language, same in groupby(languages):
        assert abs(len(list(same)) / len(FACT) - SHARES[language] / sum(SHARES.values())) < 0.03


@pytest.mark.parametrize("language", LANGUAGES)
def test_there_are_templates_enough(language: str) -> None:
    topics = load_templates(language).topics
    templates = [template for topic in topics for template in (*topic.user, *topic.assistant)]
    assert len(set(templates)) == len(templates) >= (40 if language in MAIN_LANGUAGES else 15)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "en-passport"},
        {"language": "tlh"},
        {"days_ago": OLDEST + 1},
        {"messages": [{"role": "user", "content": "alone"}]},
        {"messages": [{"role": "user", "content": "hello"}, {"role": "tool", "content": "ok"}]},
        {"title": ""},
    ],
)
def test_a_bad_fact_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(BadData):
        load_facts(changed(tmp_path, FACTS, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"id": "keyword-01"},
        {"query": " "},
        {"language": "tlh"},
        {"kind": "riddle"},
        {"wanted": []},
        {"wanted": ["en-atlantis"]},
        {"wanted": ["en-door-1"], "outdated": ["en-door-7"]},
        {"wanted": ["en-door-7"], "outdated": ["en-door-7"]},
        {"answer": "42"},
    ],
)
def test_a_bad_question_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(BadData):
        load_questions(FACT.values(), changed(tmp_path, QUESTIONS, **change))


def test_too_few_are_refused(tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(FACTS.read_text("utf-8").splitlines(keepends=True)[:20]), "utf-8")
    with pytest.raises(BadData, match="fewer"):
        load_facts(few)
    few.write_text("".join(QUESTIONS.read_text("utf-8").splitlines(keepends=True)[:20]), "utf-8")
    with pytest.raises(BadData, match="fewer"):
        load_questions(FACT.values(), few)
