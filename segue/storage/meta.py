"""Small facts kept beside the sessions, by key; everybody but the owner has a drawer of their own in each place."""

import sys

from segue.core.ids import encode_segment
from segue.core.scope import Scope
from segue.ports.store import Meta
from segue.storage.sql import Executor

_LAST = chr(sys.maxunicode)
COPYING = "copying:from"
"""Where a database says that it is becoming a copy, and of what."""


class SqlMeta(Meta):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope
        self._prefix = drawer_of(scope)

    def get(self, key: str) -> str | None:
        rows = self._db.rows("SELECT value FROM state_meta WHERE key = :key", {"key": self._prefix + key})
        return rows[0][0] if rows else None

    def set(self, key: str, value: str) -> None:
        sql = """
            INSERT INTO state_meta (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"key": self._prefix + key, "value": value})

    def remove(self, key: str) -> None:
        self._db.run("DELETE FROM state_meta WHERE key = :key", {"key": self._prefix + key})

    def beginning(self, first: str) -> list[str]:
        wanted = self._prefix + first
        sql = "SELECT key FROM state_meta WHERE key >= :wanted AND key < :behind ORDER BY key"
        rows = self._db.rows(sql, {"wanted": wanted, "behind": wanted + _LAST})
        return [key.removeprefix(self._prefix) for (key,) in rows]

    def drawer(self, scope: Scope) -> Meta:
        return SqlMeta(self._db, scope if self._scope.sees_all else self._scope)


def drawer_of(scope: Scope) -> str:
    """How the keys of a scope begin; the owner's begin as they like."""
    if scope.sees_all:
        return ""
    return f"of:{encode_segment(scope.principal)}:{encode_segment(scope.audience)}:"
