"""What a message costs does not grow with what was said before: no question of a turn goes through a whole table."""

from pathlib import Path
from typing import Any

import pytest
from lane_house import Building, dm

from segue.storage.connection import SqliteConnection
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage

GROWING = {
    *("sessions", "messages", "lanes", "inbox", "outbox", "turns"),
    *("steps", "usage", "processes", "people", "resets"),
}
FEW = {"idx_inbox_open", "idx_outbox_unsent", "idx_people_owners", "idx_processes_running"}
"""Indexes of only those rows that somebody has to deal with."""


class Listening:
    """Knows every question that is asked of a database."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: dict[str, tuple[Any, ...]] = {}
        for name in ("rows", "run"):
            monkeypatch.setattr(SqliteConnection, name, self._heard(getattr(SqliteConnection, name)))

    def _heard(self, ask: Any) -> Any:
        def heard(connection: SqliteConnection, sql: str, *given: Any) -> Any:
            self.asked[sql] = given
            return ask(connection, sql, *given)

        return heard


def goes_through_all(step: str) -> bool:
    words = step.split()
    return words[0] == "SCAN" and words[1] in GROWING and not FEW & set(words)


def test_every_question_of_a_turn_is_answered_by_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listening, stage = Listening(monkeypatch), Stage()
    with SqlStore(SqliteEngine(tmp_path / "state.db")) as store:
        building = Building(store, stage)

        async def work() -> None:
            for text in ("hello", "again", "/title Tea", "/new and now", "/stop"):
                stage.say(dm(), text)
                await building.quiet()
            listening.asked.clear()
            for text in ("hello", "again", "/title Tea two", "/stop"):
                stage.say(dm(), text)
                await building.quiet()

        building.run(work)
    asked = {sql: given for sql, given in listening.asked.items() if sql.split()[0] in ("SELECT", "UPDATE", "DELETE")}
    assert len(asked) > 30
    reading = SqliteConnection(tmp_path / "state.db", writes=False)
    plans = {sql: [str(row[3]) for row in reading.rows(f"EXPLAIN QUERY PLAN {sql}", *asked[sql])] for sql in asked}
    assert {sql: steps for sql, steps in plans.items() if any(map(goes_through_all, steps))} == {}
