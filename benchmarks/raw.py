"""The simplest honest program: plain tables with the same facts, settings that make a commit durable, nothing around.

It is also a script, for the measurements that are a process of their own: `raw.py list FOLDER`, `raw.py export FOLDER
FILE`.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

_DAY = 86400.0
_CHECKPOINT_EVERY = 50
_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY NOT NULL, source TEXT NOT NULL, title TEXT, started_at REAL NOT NULL, ended_at REAL,
  end_reason TEXT, message_count INTEGER NOT NULL DEFAULT 0, tool_call_count INTEGER NOT NULL DEFAULT 0,
  last_active_at REAL NOT NULL, first_line TEXT NOT NULL DEFAULT '', title_source TEXT,
  kind TEXT NOT NULL DEFAULT 'interactive', agent TEXT NOT NULL DEFAULT 'main', model TEXT,
  principal TEXT NOT NULL DEFAULT 'owner', input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0, estimated_cost_usd REAL, context_tokens INTEGER, context_window INTEGER,
  archived INTEGER NOT NULL DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0, parent_session_id TEXT, spawned_by TEXT,
  lane_key TEXT, cwd TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS session_tags (
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, tag TEXT NOT NULL, PRIMARY KEY (session_id, tag)
) STRICT;
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL,
  role TEXT NOT NULL, content TEXT, tool_calls TEXT, tool_call_id TEXT, tool_name TEXT, timestamp REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS lanes (
  key TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, updated_at REAL NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS by_session ON messages(session_id, seq);
CREATE INDEX IF NOT EXISTS by_activity ON sessions(archived, kind, last_active_at);
CREATE INDEX IF NOT EXISTS by_parent ON sessions(parent_session_id) WHERE parent_session_id IS NOT NULL;
"""
_BEGIN_SESSION = "INSERT INTO sessions (id, source, started_at, last_active_at) VALUES (?, ?, ?, ?)"
_COUNT = """
UPDATE sessions SET message_count = message_count + 1, tool_call_count = tool_call_count + ?, last_active_at = ?,
  first_line = CASE WHEN first_line = '' THEN ? ELSE first_line END
WHERE id = ? RETURNING message_count"""
_ADD = """
INSERT INTO messages (session_id, seq, role, content, tool_calls, tool_call_id, tool_name, timestamp)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_LOAD = "SELECT role, content, tool_calls, tool_call_id, tool_name FROM messages WHERE session_id = ? ORDER BY seq"
_COLUMNS = """
id title title_source first_line source kind agent model principal started_at ended_at end_reason last_active_at
message_count tool_call_count input_tokens output_tokens estimated_cost_usd context_tokens context_window archived
pinned parent_session_id spawned_by lane_key cwd"""
_LIST = f"""
SELECT {", ".join(_COLUMNS.split())} FROM sessions s WHERE archived = 0 AND kind = 'interactive'
  AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)
ORDER BY last_active_at DESC LIMIT ?"""
_ROUTE = """
INSERT INTO lanes (key, session_id, updated_at) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at RETURNING session_id"""


class Side:
    """Raw SQLite as the benchmark drives it."""

    def __init__(self, folder: Path) -> None:
        self._db = apsw.Connection(str(folder / "state.db"))
        self._db.set_busy_timeout(30_000)
        for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=0"):
            self._db.execute(f"PRAGMA {setting}")
        with self._db:
            self._db.execute(_TABLES)
        self._writes = 0

    def facts(self) -> dict[str, str]:
        return {"SQLite": apsw.sqlite_lib_version()}

    def begin(self, session_id: str) -> None:
        now = time.time()
        self._change("INSERT OR IGNORE" + _BEGIN_SESSION.removeprefix("INSERT"), (session_id, "cli", now, now))

    def append(self, session_id: str, message: dict[str, Any]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._append(session_id, message)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._commit()

    def load(self, session_id: str) -> list[dict[str, Any]]:
        return [_chat(row) for row in self._db.execute(_LOAD, (session_id,))]

    def count(self, session_id: str) -> int:
        found = self._db.execute("SELECT count(*) FROM messages WHERE session_id = ?", (session_id,)).get
        assert isinstance(found, int)
        return found

    def newest(self) -> list[dict[str, Any]]:
        names = _COLUMNS.split()
        rows = [dict(zip(names, row, strict=True)) for row in self._db.execute(_LIST, (20,))]
        listed = ", ".join("?" * len(rows))
        tags: dict[Any, list[Any]] = {}
        sql = f"SELECT session_id, tag FROM session_tags WHERE session_id IN ({listed})"
        for session_id, tag in self._db.execute(sql, [row["id"] for row in rows]):
            tags.setdefault(session_id, []).append(tag)
        for row in rows:
            row["tags"] = tags.get(row["id"], [])
        return rows

    def fill(self, sessions: Iterable[dict[str, Any]]) -> None:
        with self._db:
            for session in sessions:
                name = session["id"]
                self._db.execute(_BEGIN_SESSION, (name, session["source"], session["started_at"], 0.0))
                for message in session["messages"]:
                    self._append(name, message)
                ended = (session["ended_at"], session["end_reason"], name)
                self._db.execute("UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ?", ended)
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def prune(self, days: float) -> int:
        sql = "DELETE FROM sessions WHERE ended_at IS NOT NULL AND last_active_at < ?"
        return self._change(sql, (time.time() - days * _DAY,))

    def export(self, file: Path) -> None:
        with file.open("w", encoding="utf-8") as target:
            for row in self._db.execute(f"SELECT {', '.join(_COLUMNS.split())} FROM sessions ORDER BY started_at"):
                session = dict(zip(_COLUMNS.split(), row, strict=True))
                whole = session | {"messages": self.load(str(session["id"]))}
                target.write(json.dumps(whole, ensure_ascii=False) + "\n")

    def fill_lanes(self, first: int, beyond: int) -> None:
        with self._db:
            for number in range(first, beyond):
                self._db.execute(_ROUTE, (f"telegram:dm:{number}", f"lane_{number}", time.time())).fetchall()

    def route(self, number: int) -> None:
        self._change(_ROUTE, (f"telegram:dm:{number}", f"lane_{number}", time.time()))

    def close(self) -> None:
        self._db.close()

    def _append(self, session_id: str, message: dict[str, Any]) -> None:
        calls, content, at = message.get("tool_calls"), message["content"], message["timestamp"]
        line = content[:60] if message["role"] == "user" else ""
        [[seq]] = self._db.execute(_COUNT, (len(calls or ()), at, line, session_id)).fetchall()
        called = json.dumps(calls, ensure_ascii=False) if calls else None
        names = (message.get("tool_call_id"), message.get("tool_name"))
        self._db.execute(_ADD, (session_id, seq, message["role"], content, called, *names, at))

    def _change(self, sql: str, values: tuple[Any, ...]) -> int:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(sql, values).fetchall()
        changed = self._db.changes()
        self._commit()
        return changed

    def _commit(self) -> None:
        self._db.execute("COMMIT")
        self._writes += 1
        if self._writes % _CHECKPOINT_EVERY == 0:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _chat(row: tuple[Any, ...]) -> dict[str, Any]:
    role, content, calls, call_id, name = row
    chat = {"role": role, "content": content}
    if calls:
        chat["tool_calls"] = json.loads(calls)
    if call_id:
        chat["tool_call_id"] = call_id
    if name:
        chat["name"] = name
    return chat


def main() -> None:
    act, folder, *rest = sys.argv[1:]
    side = Side(Path(folder))
    if act == "list":
        for row in side.newest():
            print(f"{row['id']:30} {row['source']:10} {row['message_count']:6} {row['first_line']}")
    else:
        side.export(Path(rest[0]))
    side.close()


if __name__ == "__main__":
    main()
