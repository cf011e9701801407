"""Search through the Python API: rows that say where a message is and what was said around it."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from segue import SessionDB
from segue.core.errors import Invalid
from segue.core.messages import Draft
from segue.facade import searching
from segue.ports.store import Transaction
from segue.sessions.searching import INCOMPLETE


@pytest.fixture
def told(db: SessionDB) -> SessionDB:
    function = {"name": "weather", "arguments": '{"city":"Porto"}'}
    call: dict[str, Any] = {"id": "1", "type": "function", "function": function}
    db.create_session("trip", "cli", title="Spring", model="m1", started_at=5.0)
    db.append_message("trip", "user", "Where shall we go?" + " so" * 200)
    db.append_message("trip", "assistant", "To Lisbon, in May.")
    db.append_message("trip", "assistant", None, tool_calls=[call])
    db.append_message("trip", "tool", "21 degrees in Lisbon", tool_name="weather", tool_call_id="1")
    db.create_session("chat", "telegram")
    db.append_message("chat", "user", "Lisbon is far. " + "There is much else to be said about that. " * 20)
    return db


def ids(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["session_id"], row["seq"]) for row in rows]


def test_a_result_says_where_it_is_and_what_was_said_around_it(told: SessionDB) -> None:
    [row] = told.search_messages("lisbon may")
    assert {name: row[name] for name in ("id", "session_id", "seq", "role", "source", "model", "title")} == {
        "id": 2,
        "session_id": "trip",
        "seq": 2,
        "role": "assistant",
        "source": "cli",
        "model": "m1",
        "title": "Spring",
    }
    assert row["session_started"] == 5.0
    assert row["snippet"] == "To >>>Lisbon<<<, in >>>May<<<."
    assert [one["role"] for one in row["context"]] == ["user", "assistant"]
    assert len(row["context"][0]["content"]) == 200


def test_the_best_comes_first(told: SessionDB) -> None:
    assert ids(told.search_messages("lisbon")) == [("trip", 2), ("chat", 1)], "the short one speaks of little else"
    assert ids(told.search_messages("lisbon", sort="new")) == [("chat", 1), ("trip", 2)]
    assert ids(told.search_messages("lisbon", sort="old")) == [("trip", 2), ("chat", 1)]
    assert ids(told.search_messages("lisbon", limit=1, offset=1)) == [("chat", 1)]
    with pytest.raises(Invalid):
        told.search_messages("lisbon", sort="best")


def test_filters_narrow(told: SessionDB) -> None:
    assert ids(told.search_messages("lisbon", source_filter=["telegram"])) == [("chat", 1)]
    assert ids(told.search_messages("lisbon", exclude_sources=["telegram"])) == [("trip", 2)]
    assert ids(told.search_messages("lisbon", role_filter=["user"])) == [("chat", 1)]
    assert ids(told.search_messages("lisbon source:cli")) == [("trip", 2)]
    assert ids(told.search_messages("title:spring lisbon")) == [("trip", 2)]


def test_one_name_is_as_good_as_a_list_of_one(told: SessionDB) -> None:
    assert ids(told.search_messages("lisbon", source_filter="telegram")) == [("chat", 1)]
    assert ids(told.search_messages("lisbon", exclude_sources="telegram")) == [("trip", 2)]
    assert ids(told.search_messages("lisbon", role_filter="user")) == [("chat", 1)]
    assert ids(told.search_messages("lisbon", role_filter="tool")) == [("trip", 4)], "which is the output of tools"


@pytest.mark.parametrize("name", ["limit", "offset"])
def test_less_than_nothing_cannot_be_asked_for(told: SessionDB, name: str) -> None:
    less: dict[str, Any] = {name: -1}
    with pytest.raises(Invalid, match=rf"^The {name} of a search is 0 or more, not -1\.$"):
        told.search_messages("lisbon", **less)
    assert told.search_messages("lisbon", limit=0) == []


def around(row: dict[str, Any]) -> list[str]:
    return [one["content"] for one in row["context"]]


def test_what_was_undone_stands_beside_nothing(db: SessionDB) -> None:
    db.create_session("trip", "cli")
    said = ["Where shall we go?", *["No"] * 40, "Lisbon, then."]

    def work(tx: Transaction) -> None:
        for seq, text in enumerate(said, 1):
            tx.messages.insert("trip", seq, "undone" if text == "No" else "live", Draft("user", text, timestamp=1.0))

    db._store.write(db._scope, work)
    assert [around(row) for row in db.search_messages("lisbon")] == [["Where shall we go?"]]
    assert [around(row) for row in db.search_messages("where")] == [["Lisbon, then."]]


def test_what_was_compacted_is_found_with_what_was_said_around_it(told: SessionDB) -> None:
    told._store.write(told._scope, lambda tx: tx.messages.mark("trip", 1, "live", "compacted"))
    told.append_message("trip", "user", "Go on with Sintra")
    [row] = told.search_messages("may lisbon")
    assert [one["role"] for one in row["context"]] == ["user", "assistant"]
    [row] = told.search_messages("sintra")
    assert around(row) == ["21 degrees in Lisbon"]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    """A machine in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield ZoneInfo("Europe/Berlin")
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_days_are_those_of_the_clock_on_the_wall_in_summer_and_in_winter(
    home: Path, tmp_path: Path, berlin: ZoneInfo, is_elsewhere: bool
) -> None:
    if is_elsewhere:  # settings that cannot be read do not matter there
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text("nonsense: [")
    with SessionDB(tmp_path / "elsewhere.db" if is_elsewhere else None) as db:
        for name, moment in [
            ("summer", datetime(2026, 7, 10, 0, 30, tzinfo=berlin)),
            ("winter", datetime(2026, 1, 10, 23, 30, tzinfo=berlin)),
        ]:
            db.create_session(name, "cli")
            db.append_message(name, "user", "Lisbon", timestamp=moment.timestamp())
        for query, expected in {
            "after:2026-07-10": ["summer"],
            "before:2026-07-10": ["winter"],
            "before:2026-01-11": ["winter"],
            "after:2026-01-11": ["summer"],
            "session:summer NOT before:2026-07-10": ["summer"],
            "session:summer NOT after:2026-07-10": [],
        }.items():
            assert [row["session_id"] for row in db.search_messages(f"lisbon {query}")] == expected, query


def test_a_list_that_may_lack_something_is_told_of(
    told: SessionDB, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told.search_messages("lisbon")
    assert caplog.messages == []
    monkeypatch.setattr(searching, "TIME", 0.0)
    assert told.search_messages("lisbon") == []
    assert caplog.messages == [f"A search may have missed something. {INCOMPLETE}"]


def test_names_and_calls_of_tools_are_searched_too(told: SessionDB) -> None:
    assert ids(told.search_messages("weather")) == [("trip", 3)]
    assert ids(told.search_messages("porto")) == [("trip", 3)]
    assert ids(told.search_messages("degrees in:tools")) == [("trip", 4)]


def test_a_principal_finds_its_own(told: SessionDB, home: object) -> None:
    with SessionDB(principal="telegram:1") as stranger:
        assert stranger.search_messages("lisbon") == []
        assert stranger.search_messages("") == []
