"""Segue as the benchmark drives it: through its Python API alone, on the database that its home names."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import psycopg

from segue import SessionDB, SessionSource, SessionStore, app, config
from segue.core.places import is_address

_SERVER_FACTS = {"PostgreSQL": "server_version", "fsync": "fsync", "synchronous_commit": "synchronous_commit"}


class Side:
    def __init__(self, folder: Path) -> None:
        self._place = place_of(folder)
        self._db = SessionDB(self._place)
        self._lanes: SessionStore | None = None

    def facts(self) -> dict[str, str]:
        return facts_of(self._place)

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
        self._tidy()

    def prune(self, days: float) -> int:
        return self._db.prune_sessions(older_than_days=days)

    def fill_lanes(self, first: int, beyond: int) -> None:
        for number in range(first, beyond):
            self.route(number)
        self._tidy()

    def route(self, number: int) -> None:
        if self._lanes is None:
            self._lanes = SessionStore(self._place)
        name = str(number)
        source = SessionSource(platform="telegram", chat_id=name, user_id=name, user_name=f"Person {name}")
        self._lanes.get_or_create_session(source)

    def close(self) -> None:
        self._db.close()
        if self._lanes is not None:
            self._lanes.close()

    def _tidy(self) -> None:
        """What a server does by itself within a minute of so many new rows, done before anything is measured."""
        if is_address(str(self._place)):
            with app.open_store(self._place) as store:
                store.compact()


def place_of(home: Path) -> str | Path:
    """The file or the address of the database of a home."""
    return config.load(home, {}).database_at


def facts_of(place: str | Path) -> dict[str, str]:
    """Which database it is, and what a server waits for at a commit."""
    if not is_address(str(place)):
        return {"SQLite": apsw.sqlite_lib_version()}
    with psycopg.connect(str(place)) as connection:
        settings: dict[str, str] = dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())
    return {fact: settings[name] for fact, name in _SERVER_FACTS.items()}
