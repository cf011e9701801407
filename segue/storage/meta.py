"""Small facts about the store itself, by key."""

from segue.ports.store import Meta
from segue.storage.sql import Executor


class SqlMeta(Meta):
    def __init__(self, executor: Executor) -> None:
        self._db = executor

    def get(self, key: str) -> str | None:
        rows = self._db.rows("SELECT value FROM state_meta WHERE key = :key", {"key": key})
        return rows[0][0] if rows else None

    def set(self, key: str, value: str) -> None:
        sql = """
            INSERT INTO state_meta (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"key": key, "value": value})
