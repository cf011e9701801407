"""How often search finds what was said: every question of `benchmarks/quality`, asked as it stands."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus import DAY, Session, write
from benchmarks.quality.distractors import make_distractors
from benchmarks.quality.loading import Conversation, Kind, Question, has_cjk, load_facts, load_questions
from benchmarks.search.asking import Asked
from benchmarks.search.processes import Found, Process, Side, opened

SEED = 7
FIRST = 5
"""So many conversations are looked at."""
_HITS = 30  # a conversation has at most six messages
_BETWEEN = 60.0  # seconds from one message to the next


class Score(NamedTuple):
    """How one side did."""

    shares: dict[str, float]
    """Of the questions, by kind, for which a wanted fact is among the first conversations."""
    overall: float
    cjk: float
    outdated: float
    """Of the questions that have such facts, where one of them came before every one wanted."""
    troubles: int
    """Questions that were refused with an error."""


class Quality(NamedTuple):
    conversations: int
    counts: dict[str, int]
    """Questions by kind."""
    cjk: int
    outdated: int
    """Questions that have outdated facts."""
    scores: dict[str, Score]


def found_out(sides: Sequence[Side], distractors: int, folder: Path, say: Callable[[str], None]) -> Quality:
    """Fill every side with the facts among the distractors, and ask."""
    folder.mkdir(mode=0o700)
    facts = load_facts()
    questions = load_questions(facts)
    conversations = [*facts, *make_distractors(distractors, SEED)]
    file = folder / "sessions.jsonl"
    write(file, sessions_of(conversations, time.time()))
    scores = {}
    with opened(sides, folder) as processes:
        for process in processes:
            say(f"{process.side.title}: {len(questions)} questions over {len(conversations):,} conversations")
            process.ask("fill", file=str(file))
            scores[process.side.name] = score(questions, dict(_answers(process, questions)))
    counts = {kind.value: sum(question.kind is kind for question in questions) for kind in Kind}
    cjk, outdated = sum(has_cjk(one.query) for one in questions), sum(bool(one.outdated) for one in questions)
    return Quality(len(conversations), counts, cjk, outdated, scores)


def sessions_of(conversations: Iterable[Conversation], now: float) -> Iterator[Session]:
    """As every side takes them; of several with the same title, the later ones are numbered."""
    seen: dict[str, int] = {}
    oldest_first = sorted(conversations, key=lambda one: -one.days_ago)
    for conversation in oldest_first:
        began = now - conversation.days_ago * DAY - DAY / 2
        count = seen[conversation.title] = seen.get(conversation.title, 0) + 1
        messages = [
            {"role": message.role, "content": message.content, "timestamp": began + number * _BETWEEN}
            for number, message in enumerate(conversation.messages)
        ]
        yield {
            "id": conversation.id,
            "source": "cli",
            "started_at": began,
            "ended_at": began + len(messages) * _BETWEEN,
            "end_reason": "user_exit",
            "title": conversation.title if count == 1 else f"{conversation.title} #{count}",
            "messages": messages,
        }


def _answers(process: Process, questions: Iterable[Question]) -> Iterator[tuple[str, Found]]:
    for question in questions:
        yield question.id, process.search(Asked(question.query, limit=_HITS))


def score(questions: Sequence[Question], found: Mapping[str, Found]) -> Score:
    firsts = {name: first_distinct(one.sessions) for name, one in found.items()}
    replaced = [question for question in questions if question.outdated]
    of_kind = {kind.value: [question for question in questions if question.kind is kind] for kind in Kind}
    return Score(
        shares={kind: recall(asked, firsts) for kind, asked in of_kind.items() if asked},
        overall=recall(questions, firsts),
        cjk=recall([question for question in questions if has_cjk(question.query)], firsts),
        outdated=_share(is_outdated_first(question, firsts[question.id]) for question in replaced),
        troubles=sum(bool(one.trouble) for one in found.values()),
    )


def first_distinct(sessions: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(sessions))[:FIRST]


def recall(questions: Iterable[Question], firsts: Mapping[str, list[str]]) -> float:
    """The share of questions for which a wanted fact is among the first."""
    return _share(not {*question.wanted}.isdisjoint(firsts[question.id]) for question in questions)


def is_outdated_first(question: Question, first: list[str]) -> bool:
    told = [name for name in first if name in question.wanted or name in question.outdated]
    return bool(told) and told[0] in question.outdated


def _share(those: Iterable[bool]) -> float:
    judged = list(those)
    return sum(judged) / len(judged) if judged else 0.0
