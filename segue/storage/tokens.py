"""Tokens of programs. Under any other scope than the owner's at the console there are none."""

from segue.core.credentials import Credential
from segue.core.errors import StoreError
from segue.core.scope import Scope
from segue.ports.store import Tokens
from segue.storage.sql import Condition, Executor, columns, placeholders

_TOKEN = columns(Credential._fields)


class SqlTokens(Tokens):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, key_id: str) -> Credential | None:
        where = self._own()
        where.add("key_id = :key_id", key_id=key_id)
        rows = self._db.rows(f"SELECT {_TOKEN} FROM tokens WHERE {where.sql}", where.parameters)
        return Credential._make(rows[0]) if rows else None

    def listed(self) -> list[Credential]:
        sql = f"SELECT {_TOKEN} FROM tokens WHERE {self._own().sql} ORDER BY created_at, name"
        return [Credential._make(row) for row in self._db.rows(sql, {})]

    def add(self, credential: Credential) -> bool:
        if not self._scope.sees_all:
            raise StoreError("Only the owner gives tokens out.")
        values = credential._asdict()
        sql = f"INSERT INTO tokens ({columns(values)}) VALUES ({placeholders(values)}) ON CONFLICT DO NOTHING"
        return self._db.run(sql, values) > 0

    def used(self, key_id: str, at: float) -> None:
        where = self._own()
        where.add("key_id = :key_id", key_id=key_id)
        self._db.run(f"UPDATE tokens SET used_at = :at WHERE {where.sql}", where.parameters | {"at": at})

    def remove(self, name: str) -> bool:
        where = self._own()
        where.add("name = :name", name=name)
        return self._db.run(f"DELETE FROM tokens WHERE {where.sql}", where.parameters) > 0

    def forget_expired(self, now: float) -> int:
        where = self._own()
        where.add("expires_at <= :now", now=now)
        return self._db.run(f"DELETE FROM tokens WHERE {where.sql}", where.parameters)

    def _own(self) -> Condition:
        where = Condition()
        if not self._scope.sees_all:
            where.add("1 = 0")
        return where
