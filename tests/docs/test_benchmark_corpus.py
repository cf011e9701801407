"""The benchmark compares like with like: the same text on every run, and the same text on every side."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from benchmarks import raw, report, segue_side
from benchmarks.corpus import LONGEST_OUTPUT, Corpus, text_bytes, write
from benchmarks.keeping import FILES, Keeper
from benchmarks.measure import SCENARIOS
from benchmarks.rows import NAMES, Row, Unit
from benchmarks.server import Server, serving

MOMENT = 1_741_166_123.0


class Side(Protocol):
    def fill(self, sessions: Iterator[dict[str, Any]]) -> None: ...
    def begin(self, session_id: str) -> None: ...
    def append(self, session_id: str, message: dict[str, Any]) -> None: ...
    def load(self, session_id: str) -> list[dict[str, Any]]: ...
    def newest(self) -> list[dict[str, Any]]: ...
    def prune(self, days: float) -> int: ...
    def close(self) -> None: ...


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Not below the folder of pytest: each of its runs closes that to the user that the server may run as."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(folder) as started:
        yield started


@pytest.fixture(params=["raw", "segue", "postgres"])
def side(request: pytest.FixtureRequest, folder: Path) -> Iterator[Side]:
    keeper: Keeper = request.getfixturevalue("server") if request.param == "postgres" else FILES
    home = folder / request.node.originalname / request.param
    keeper.make(home)
    opened: Side = raw.Side(home) if request.param == "raw" else segue_side.Side(home)
    yield opened
    opened.close()


@pytest.fixture(params=["files", "server"])
def keeper(request: pytest.FixtureRequest) -> Keeper:
    chosen: Keeper = request.getfixturevalue("server") if request.param == "server" else FILES
    return chosen


def said(messages: list[dict[str, Any]]) -> list[tuple[str, str, Any, Any]]:
    return [(one["role"], one["content"], one.get("tool_calls"), one.get("tool_call_id")) for one in messages]


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(tmp_path / name, Corpus(7, MOMENT).sessions(5, 40))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_another_seed_says_something_else() -> None:
    assert said(Corpus(7, MOMENT).messages(40)) != said(Corpus(8, MOMENT).messages(40))


def test_the_corpus_has_what_is_hard_to_store() -> None:
    messages = Corpus(7, MOMENT).messages(2000)
    text = "".join(message["content"] for message in messages)
    assert all(sign in text for sign in "é京ж🚀ع")
    assert max(len(message["content"]) for message in messages) > LONGEST_OUTPUT * 0.9
    assert any(message.get("tool_calls") for message in messages)
    assert 500 < sum(map(text_bytes, messages)) / len(messages) < 2000


def test_every_tool_call_of_the_corpus_is_answered() -> None:
    for length in (1, 2, 3, 100, 101):
        messages = Corpus(length, MOMENT).messages(length)
        asked = [call["id"] for message in messages for call in message.get("tool_calls", [])]
        assert asked == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert len(messages) == length


def test_a_filled_store_gives_back_the_text_of_the_corpus(side: Side) -> None:
    sessions = list(Corpus(7, MOMENT).sessions(3, 40))
    side.fill(iter(sessions))
    for session in sessions:
        assert said(side.load(session["id"])) == said(session["messages"])


def test_appended_messages_give_back_the_text_of_the_corpus(side: Side) -> None:
    messages = Corpus(7, MOMENT).messages(30)
    side.begin("one")
    for message in messages:
        side.append("one", message)
    assert said(side.load("one")) == said(messages)


def test_the_last_active_come_first_and_the_old_are_pruned(side: Side) -> None:
    side.fill(Corpus(7, MOMENT).sessions(25, 4, is_short=True))
    newest = side.newest()
    assert [row["id"] for row in newest] == [f"bench_{number:06d}" for number in range(24, 4, -1)]
    assert {row["message_count"] for row in newest} == {4}
    assert side.prune(90) == 25


def test_a_store_is_made_copied_and_weighed_wherever_it_is_kept(keeper: Keeper, folder: Path) -> None:
    home, copy = folder / "keeping" / type(keeper).__name__, folder / "copies" / type(keeper).__name__
    sessions = list(Corpus(7, MOMENT).sessions(3, 40))
    keeper.make(home)
    assert keeper.size(home) == 0
    with closing(segue_side.Side(home)) as filled:
        filled.fill(iter(sessions))
    assert keeper.size(home) > sum(text_bytes(message) for session in sessions for message in session["messages"]) / 2
    assert keeper.text_indexes(home) == 1
    keeper.copy(home, copy)
    keeper.make(copy)
    with closing(segue_side.Side(copy)) as copied:
        assert copied.prune(90) == 3
    with closing(segue_side.Side(home)) as left_alone:
        assert said(left_alone.load("bench_000000")) == said(sessions[0]["messages"])


def test_a_run_that_fails_leaves_no_server_behind(folder: Path) -> None:
    def fail() -> None:
        with serving(failing):
            assert running.exists()
            raise ZeroDivisionError

    failing = folder / "failing"
    failing.mkdir()
    running = failing / "postgres" / "postmaster.pid"
    with pytest.raises(ZeroDivisionError):
        fail()
    assert not running.exists()


def test_every_row_has_a_scenario_and_reasons() -> None:
    assert sorted(NAMES) == sorted(name for names in SCENARIOS for name in names) == sorted(report.REASONS)


@pytest.mark.parametrize(
    ("unit", "own", "other", "is_behind"),
    [
        (Unit.SECONDS, 0.003, 0.001, True),
        (Unit.SECONDS, 0.0015, 0.001, False),
        (Unit.PER_SECOND, 1000, 3000, True),
        (Unit.PER_SECOND, 3000, 1000, False),
        (Unit.BYTES, 3e7, 1e7, True),
    ],
)
def test_a_reason_is_given_where_segue_costs_more_than_twice_as_much(
    unit: Unit, own: float, other: float, is_behind: bool
) -> None:
    row = Row("append", "one durable append", unit, {"segue": own, "raw": other})
    assert [line.count("3.0 times") for line in report.judgements([row])] == ([1] if is_behind else [])


def test_being_slower_than_the_peer_is_always_said() -> None:
    values = {"segue": 1.1, "postgres": 1.0, "raw": 1.0, "hermes": 1.0}
    row = Row("append", "one durable append", Unit.SECONDS, values)
    assert [line.count("1.10 times") for line in report.judgements([row])] == [1]
