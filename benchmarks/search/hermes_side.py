"""hermes-agent as it is searched: `SessionDB.search_messages` as it comes."""

import sqlite3
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import hermes_side
from benchmarks.search.asking import Asked

_state: Any = import_module("hermes_state")


class Side:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = _state.SessionDB(folder / "state.db")

    def facts(self) -> dict[str, str]:
        return {"SQLite": sqlite3.sqlite_version}

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        store = hermes_side.Side(self._folder)
        store.fill(sessions)
        store.close()

    def search(self, asked: Asked) -> list[str]:
        sources = [asked.source] if asked.source else None
        return [row["session_id"] for row in self._db.search_messages(asked.text, sources, limit=asked.limit)]

    def close(self) -> None:
        self._db.close()
