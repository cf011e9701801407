"""The peer as the benchmark drives it: hermes-agent through its own two classes, in its own virtual environment.

This file imports the standard library and the peer, nothing else, and reads none of the peer's tables.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

_state: Any = import_module("hermes_state")
_LEVELS = ("OFF", "NORMAL", "FULL", "EXTRA")
_MOST_SESSIONS = 400  # of one import; the peer takes 500 sessions, 5 MB each and 25 MB together
_MOST_BYTES = 4_000_000


class Side:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = _state.SessionDB(folder / "state.db")
        self._lanes: Any = None
        self._own_level = _make_durable(self._db)

    def facts(self) -> dict[str, str]:
        return {"SQLite": sqlite3.sqlite_version, "synchronous by default": self._own_level}

    def begin(self, session_id: str) -> None:
        if self._db.get_session(session_id) is None:
            self._db.create_session(session_id, "cli")

    def append(self, session_id: str, message: dict[str, Any]) -> None:
        self._db.append_message(session_id, **message)

    def load(self, session_id: str) -> list[dict[str, Any]]:
        return list(self._db.get_messages_as_conversation(session_id))

    def count(self, session_id: str) -> int:
        return int(self._db.message_count(session_id))

    def newest(self) -> Any:
        return self._db.list_sessions_rich(limit=20, order_by_last_active=True)

    def newest_started(self) -> Any:
        return self._db.list_sessions_rich(limit=20)

    def relax(self) -> None:
        """Give the connection the level of safety that the peer opens it with."""
        self._db._conn.execute(f"PRAGMA synchronous={self._own_level}")  # noqa: SLF001

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        for batch in _batches(sessions):
            report = self._db.import_sessions(batch)
            if report["ok"]:
                continue
            for session in batch:  # one is larger than the peer imports
                self._db.create_session(session["id"], session["source"])
                for message in session["messages"]:
                    self.append(session["id"], message)
                self._db.end_session(session["id"], session["end_reason"])
        self._db.optimize_fts()  # as it does by itself after every thousand messages

    def prune(self, days: float) -> int:
        return int(self._db.prune_sessions(older_than_days=days))

    def fill_lanes(self, first: int, beyond: int) -> None:
        """Lanes by the hundred: one is routed by the peer itself, the others are written like it into its table."""
        routing: Any = import_module("gateway.session")
        folder = self._folder / "sessions"
        if self._lanes is None:
            self._lanes = self._open_lanes()
            self.route(first)
            first += 1
        model = self._lanes.list_sessions()[0]
        scope = str(folder.resolve())
        known = self._db.load_gateway_routing_entries(scope=scope)
        for number in range(first, beyond):
            source = self._source(number)
            key, name = routing.build_session_key(source), f"lane_{number:06d}"
            entry = replace(model, session_key=key, session_id=name, origin=source, display_name=source.chat_name)
            known[key] = json.dumps(entry.to_dict())
        self.fill(
            {"id": f"lane_{number:06d}", "source": "telegram", "started_at": model.created_at.timestamp()}
            for number in range(first, beyond)
        )
        self._db.replace_gateway_routing_entries(known, scope=scope)
        (folder / "sessions.json").unlink(missing_ok=True)
        self._lanes = self._open_lanes()  # a store reads its table once

    def route(self, number: int) -> None:
        self._lanes.get_or_create_session(self._source(number))

    def close(self) -> None:
        self._db.close()

    def _open_lanes(self) -> Any:
        routing: Any = import_module("gateway.session")
        config: Any = import_module("gateway.config")
        store = routing.SessionStore(self._folder / "sessions", config.GatewayConfig())
        _make_durable(store._db)  # noqa: SLF001
        store.list_sessions()
        return store

    def _source(self, number: int) -> Any:
        routing: Any = import_module("gateway.session")
        config: Any = import_module("gateway.config")
        name = str(number)
        return routing.SessionSource(
            platform=config.Platform.TELEGRAM, chat_id=name, user_id=name, user_name=f"Person {name}"
        )


def _make_durable(database: Any) -> str:
    """Set the level that all sides are measured at; returns the one that the peer had."""
    connection = database._conn  # noqa: SLF001
    level = _LEVELS[connection.execute("PRAGMA synchronous").fetchone()[0]]
    connection.execute("PRAGMA synchronous=FULL")
    return level


def _batches(sessions: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for session in sessions:
        length = len(json.dumps(session, ensure_ascii=False).encode("utf-8"))
        if batch and (len(batch) == _MOST_SESSIONS or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(session)
        size += length
    if batch:
        yield batch
