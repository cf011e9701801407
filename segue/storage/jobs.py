"""What runs at its moments. Under any other scope than the owner's at the console there is nothing."""

from typing import Any

from segue.core.errors import StoreError
from segue.core.jobs import Job
from segue.core.scope import Scope
from segue.ports.store import Jobs
from segue.storage.sql import Condition, Executor, columns, placeholders

_JOB = columns(Job._fields)


class SqlJobs(Jobs):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, name: str) -> Job | None:
        where = self._named(name)
        rows = self._db.rows(f"SELECT {_JOB} FROM jobs WHERE {where.sql}", where.parameters)
        return Job._make(rows[0]) if rows else None

    def listed(self) -> list[Job]:
        where = self._own()
        rows = self._db.rows(f"SELECT {_JOB} FROM jobs WHERE {where.sql} ORDER BY name", where.parameters)
        return [Job._make(row) for row in rows]

    def add(self, job: Job) -> bool:
        if not self._scope.sees_all:
            raise StoreError("Only the owner has jobs.")
        sql = f"INSERT INTO jobs ({_JOB}) VALUES ({placeholders(Job._fields)}) ON CONFLICT (name) DO NOTHING"
        return self._db.run(sql, job._asdict()) > 0

    def change(self, name: str, **values: Any) -> bool:
        where = self._named(name)
        changes = ", ".join(f"{column} = :new_{column}" for column in values)
        new = {f"new_{column}": value for column, value in values.items()}
        return self._db.run(f"UPDATE jobs SET {changes} WHERE {where.sql}", where.parameters | new) > 0

    def remove(self, name: str) -> bool:
        where = self._named(name)
        return self._db.run(f"DELETE FROM jobs WHERE {where.sql}", where.parameters) > 0

    def _named(self, name: str) -> Condition:
        where = self._own()
        where.add("name = :name", name=name)
        return where

    def _own(self) -> Condition:
        where = Condition()
        if not self._scope.sees_all:
            where.add("1 = 0")
        return where
