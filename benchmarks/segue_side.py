"""Segue as the benchmark drives it: through its Python API alone."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from segue import SessionDB, SessionSource, SessionStore


class Side:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "state.db"
        self._db = SessionDB(self._path)
        self._lanes: SessionStore | None = None

    def facts(self) -> dict[str, str]:
        return {"SQLite": apsw.sqlite_lib_version()}

    def begin(self, session_id: str) -> None:
        if self._db.get_session(session_id) is None:
            self._db.create_session(session_id)

    def append(self, session_id: str, message: dict[str, Any]) -> None:
        self._db.append_message(session_id, **message)

    def load(self, session_id: str) -> list[dict[str, Any]]:
        return self._db.get_messages_as_conversation(session_id)

    def count(self, session_id: str) -> int:
        return self._db.message_count(session_id)

    def newest(self) -> list[dict[str, Any]]:
        return self._db.list_sessions_rich(limit=20)

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        report = self._db.import_sessions(sessions)
        assert not report["errors"], report["errors"][0]

    def prune(self, days: float) -> int:
        return self._db.prune_sessions(older_than_days=days)

    def fill_lanes(self, first: int, beyond: int) -> None:
        for number in range(first, beyond):
            self.route(number)

    def route(self, number: int) -> None:
        if self._lanes is None:
            self._lanes = SessionStore(self._path)
        name = str(number)
        source = SessionSource(platform="telegram", chat_id=name, user_id=name, user_name=f"Person {name}")
        self._lanes.get_or_create_session(source)

    def close(self) -> None:
        self._db.close()
        if self._lanes is not None:
            self._lanes.close()
