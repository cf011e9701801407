"""The search benchmark judges rightly: what is a true answer, what is recalled, and what is said of it."""

from pathlib import Path

import pytest

from benchmarks.quality.loading import Conversation, Kind, Message, Question
from benchmarks.search import conversations, queries, recall, report, speed
from benchmarks.search.__main__ import messages_of
from benchmarks.search.asking import Asked
from benchmarks.search.processes import Found
from benchmarks.search.queries import Draw, answers

MOMENT = 1_741_166_123.0  # 5 March 2025
SESSION = {
    "source": "cli",
    "messages": [
        {"role": "user", "content": "Deploy the red server", "timestamp": MOMENT},
        {"role": "assistant", "content": "翻译成中文", "timestamp": MOMENT + 60},
    ],
}
TITLES = {
    "words": "BM25 alone",
    "segue": "Segue",
    "postgres": "Segue on PostgreSQL",
    "hermes": "hermes-agent 1",
    "llm": "llm 1",
}


def question(name: str, wanted: str = "new", outdated: str = "", query: str = "hotel") -> Question:
    return Question(name, query, "en", Kind.KEYWORD, (wanted,), (outdated,) if outdated else ())


def store(rows: list[speed.Row]) -> speed.Measured:
    both = {"segue": 1000.0, "hermes": 500.0}
    return speed.Measured(40_000, 2_000_000, 60, rows, both, {"segue": 8000.0}, {"segue": 2.0, "hermes": 9.0})


def findings(rows: list[speed.Row], quality: recall.Quality | None = None) -> report.Findings:
    facts = {"segue": {"SQLite": "3.50"}}
    return report.Findings(TITLES, [store(rows)], quality, facts, "Linux", "just bench-search")


@pytest.mark.parametrize(
    ("asked", "is_answer"),
    [
        (Asked("server"), True),
        (Asked("erver"), False),
        (Asked("erver", is_part=True), True),
        (Asked("server deploy"), True),
        (Asked("server nobody"), False),
        (Asked('"red server"'), True),
        (Asked('"deploy server"'), False),
        (Asked("deplo*"), True),
        (Asked("eploy*"), False),
        (Asked("译成"), True),
        (Asked("server", source="cli"), True),
        (Asked("server", source="slack"), False),
        (Asked("server", since="2025-03-01"), True),
        (Asked("server", since="2025-03-09"), False),
    ],
)
def test_a_true_answer_says_what_was_asked_for(asked: Asked, is_answer: bool) -> None:
    assert answers(SESSION, asked) is is_answer


def test_every_kind_of_query_is_drawn_from_what_was_said(tmp_path: Path) -> None:
    library = conversations.written(tmp_path / "sessions.jsonl", 800, 1, MOMENT)
    sample = list(library.sample(20))
    assert len(sample) == 20
    for kind in queries.Kind:
        drawn = Draw(sample, 1).queries(kind, 3)
        assert drawn == Draw(sample, 1).queries(kind, 3)
        assert len({*drawn}) == 3
        assert all(any(answers(session, asked) for session in sample) for asked in drawn), kind


def test_conversations_are_of_moderate_length_and_end_before_now(tmp_path: Path) -> None:
    library = conversations.written(tmp_path / "sessions.jsonl", 2000, 1, MOMENT)
    assert 300 < library.text / library.messages < 600
    assert len(library.places) * conversations.PER_SESSION == library.messages
    assert library.session(7)["id"] == "bench_000007"
    assert library.session(49)["ended_at"] < MOMENT


def test_the_first_distinct_conversations_count() -> None:
    assert recall.first_distinct("aababcdefg") == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("found", "share"),
    [(["new"], 1.0), (["other", "old", "new"], 1.0), (["a", "b", "c", "d", "e", "new"], 0.0), ([], 0.0)],
)
def test_a_question_is_answered_when_a_wanted_fact_is_among_the_first(found: list[str], share: float) -> None:
    assert recall.recall([question("one")], {"one": recall.first_distinct(found)}) == share


@pytest.mark.parametrize(
    ("first", "is_outdated"),
    [(["old", "new"], True), (["old"], True), (["other", "new", "old"], False), (["new"], False), (["other"], False)],
)
def test_an_outdated_fact_must_not_come_first(first: list[str], is_outdated: bool) -> None:
    assert recall.is_outdated_first(question("one", outdated="old"), first) is is_outdated


def test_a_score_counts_by_kind_and_by_script() -> None:
    asked = [question("one", outdated="old"), question("two", query="酒店"), question("three")]
    found = {
        "one": Found(1, ["old", "new"], ""),
        "two": Found(1, ["other"], ""),
        "three": Found(1, [], "OperationalError: no"),
    }
    score = recall.score(asked, found)
    assert score == recall.Score({"keyword": 1 / 3}, 1 / 3, 0.0, 1.0, 1)


def test_no_title_is_given_twice() -> None:
    said = (Message("user", "a"), Message("assistant", "b"))
    twice = [Conversation(name, "en", days, "Trip", said) for name, days in (("newer", 3), ("older", 9))]
    sessions = list(recall.sessions_of(twice, MOMENT))
    assert [(session["id"], session["title"]) for session in sessions] == [("older", "Trip"), ("newer", "Trip #2")]
    assert sessions[0]["started_at"] < sessions[1]["started_at"] < sessions[1]["ended_at"] < MOMENT


@pytest.mark.parametrize(("size", "messages"), [("40k", 40_000), ("1M", 1_000_000), ("800", 800)])
def test_a_size_is_a_number_of_messages(size: str, messages: int) -> None:
    assert messages_of(size) == messages


def test_a_table_tells_times_and_what_is_not_found() -> None:
    rows = [
        speed.Row(
            queries.Kind.COMMON, {"segue": speed.Cell(0.004, 0.010, 6, 6), "hermes": speed.Cell(0.08, 0.1, 6, 6)}
        ),
        speed.Row(
            queries.Kind.CJK_2, {"segue": speed.Cell(0.001, 0.002, 6, 6), "hermes": speed.Cell(0.002, 0.002, 1, 6)}
        ),
        speed.Row(queries.Kind.PART, {"segue": speed.Cell(0.001, 0.002, 6, 6), "hermes": speed.Cell(0.0, 0.0, 0, 6)}),
        speed.Row(queries.Kind.SINCE, {"segue": speed.Cell(0.001, 0.002, 6, 6)}),
    ]
    assert report.speed_table(store(rows), TITLES).splitlines()[2:] == [
        "| common word | 4.00 ms, 10.0 ms | 80.0 ms, 100 ms (×20, ×10) |",
        "| CJK, 2 characters | 1.00 ms, 2.00 ms | 2.00 ms, 2.00 ms (×2.0, ×1.0); finds 1 of 6 |",
        "| part of a word | 1.00 ms, 2.00 ms | finds nothing |",
        "| common word, since a day | 1.00 ms, 2.00 ms | – |",
        "| messages stored and indexed | 1,000/s | 500/s (×2.0) |",
        "| messages indexed anew | 8,000/s |  |",
        "| bytes on disk per byte of text | 2.00 | 9.00 (×4.5) |",
    ]
    assert report.judgements(findings(rows)) == []


def test_where_segue_is_slower_is_said() -> None:
    cells = {"segue": speed.Cell(0.004, 0.009, 6, 6), "hermes": speed.Cell(0.002, 0.01, 6, 6)}
    said = "Slower than hermes-agent 1 at 40,000 messages, median: common word (2.0 times)."
    first, why = report.judgements(findings([speed.Row(queries.Kind.COMMON, cells)]))
    assert first == said
    assert why.startswith("Why it is slower there")


def test_segue_on_a_server_is_no_peer() -> None:
    cells = {"segue": speed.Cell(0.004, 0.009, 6, 6), "postgres": speed.Cell(0.002, 0.001, 6, 6)}
    store = speed.Measured(
        40_000,
        2_000_000,
        60,
        [speed.Row(queries.Kind.COMMON, cells)],
        rates={"segue": 1000.0, "postgres": 2000.0},
        index_rates={"segue": 8000.0, "postgres": 4000.0},
        sizes={"segue": 2.0, "postgres": 1.0},
    )
    own = recall.Score({"keyword": 0.5}, 0.5, 0.5, 0.5, 0)
    quality = recall.Quality(3146, {"keyword": 3}, 3, 2, {"segue": own, "postgres": own})
    found = findings([], quality)._replace(speed=[store])
    assert report.judgements(found) == []
    assert "| messages indexed anew | 8,000/s | 4,000/s (×2.0) |" in report.page(found)
    better = recall.Score({"keyword": 1.0}, 1.0, 1.0, 0.0, 0)
    differing = found._replace(quality=quality._replace(scores={"segue": own, "postgres": better}))
    assert report.judgements(differing) == ["Segue on PostgreSQL did not answer every question as Segue on SQLite did."]


def test_where_segue_finds_less_is_said() -> None:
    own = recall.Score({"keyword": 0.5, "short_cjk": 1.0}, 0.75, 0.75, 0.5, 0)
    other = recall.Score({"keyword": 0.6, "short_cjk": 0.0}, 0.3, 0.75, 0.1, 4)
    quality = recall.Quality(3146, {"keyword": 3, "short_cjk": 3}, 3, 2, {"segue": own, "llm": other})
    found = findings([], quality)
    assert report.judgements(found) == [
        "Finds less than llm 1 for these questions: keyword.",
        "Puts an outdated fact first more often than llm 1; llm 1 finds fewer facts altogether.",
    ]
    assert "| short cjk (3) | 100.0% | 0.0% |" in report.page(found)
    assert "- Segue: SQLite 3.50" in report.page(found)


def test_the_page_has_no_line_too_long() -> None:
    prose = [line for line in report.page(findings([])).splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120
