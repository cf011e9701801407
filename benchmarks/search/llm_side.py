"""llm as it is searched: what `llm logs -q` calls. A question and its answer are one row there.

Messages go in through its own `LogStore`; its tables of turns are filled as `LogStore.log` does, a transaction for each
conversation.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.search.asking import Asked

_logs: Any = import_module("llm.logs")
_parts: Any = import_module("llm.parts")
_ulid: Any = import_module("ulid")
_sqlite_utils: Any = import_module("sqlite_utils")


class Side:
    def __init__(self, folder: Path) -> None:
        self._db = _sqlite_utils.Database(folder / "logs.db")
        self._store = _logs.LogStore(self._db)

    def facts(self) -> dict[str, str]:
        return {"SQLite": sqlite3.sqlite_version}

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        for session in sessions:
            with self._db.atomic():
                self._store.create_thread(name=session.get("title"), id=session["id"])
                self._add_turns(session)

    def search(self, asked: Asked) -> list[str]:
        since = datetime.fromisoformat(asked.since).astimezone() if asked.since else None
        oldest = _turn_id(since.timestamp())[:10] if since else None  # the part of it that tells the time
        rows = _logs.merged_log_rows(self._store, count=asked.limit, query=asked.text, id_gte=oldest)
        return [row["conversation_id"] for row in rows]

    def close(self) -> None:
        self._db.close()

    def _add_turns(self, session: dict[str, Any]) -> None:
        tip = None
        for given, answer in _turns(session["messages"]):
            parent = self._store.ensure_chain([_message(one) for one in given], parent=tip)
            tip = self._store.ensure_chain([_message(answer)], parent=parent)
            turn = _turn_id(answer["timestamp"])
            self._db["turns"].insert(
                {
                    "id": turn,
                    "thread_id": session["id"],
                    "parent_message_hash": parent,
                    "tip_message_hash": tip,
                    "model": session["source"],
                    "datetime_utc": datetime.fromtimestamp(answer["timestamp"], UTC).isoformat(),
                }
            )
            self._db.execute(_logs.TURN_SEARCH_INSERT_SQL, {"turn_id": turn})
        self._db["threads"].update(session["id"], {"tip_message_hash": tip})


def _turns(messages: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Each answer with what was said before it and after the answer before."""
    given: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            yield given, message
            given = []
        else:
            given.append(message)
    if given:
        yield given, {"role": "assistant", "content": "", "timestamp": given[-1]["timestamp"]}


def _message(message: dict[str, Any]) -> Any:
    content = message["content"]
    if message["role"] == "tool":
        result = {"type": "tool_result", "name": message["tool_name"], "output": content}
        parts = [result | {"tool_call_id": message["tool_call_id"]}]
    else:
        parts = [{"type": "text", "text": content}]
    for call in message.get("tool_calls", []):
        asked = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
        parts.append({"type": "tool_call", "tool_call_id": call["id"], **asked})
    return _parts.Message.from_dict({"role": message["role"], "parts": parts})


def _turn_id(moment: float) -> str:
    return str(_ulid.ULID.from_timestamp(moment)).lower()
