"""Search through the Python API: rows that say where a message is and what was said around it."""

from typing import Any

import pytest

from segue import SessionDB
from segue.core.errors import Invalid


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


def test_names_and_calls_of_tools_are_searched_too(told: SessionDB) -> None:
    assert ids(told.search_messages("weather")) == [("trip", 3)]
    assert ids(told.search_messages("porto")) == [("trip", 3)]
    assert ids(told.search_messages("degrees in:tools")) == [("trip", 4)]


def test_a_principal_finds_its_own(told: SessionDB, home: object) -> None:
    with SessionDB(principal="telegram:1") as stranger:
        assert stranger.search_messages("lisbon") == []
        assert stranger.search_messages("") == []
