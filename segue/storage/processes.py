"""What runs in the background for sessions."""

from typing import Any

from segue.core.background import Process, ProcessState
from segue.core.scope import Scope
from segue.ports.store import Processes
from segue.storage.sql import Condition, Executor, columns, placeholders, visible

_PROCESS = columns(Process._fields)


class SqlProcesses(Processes):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, process_id: str) -> Process | None:
        where = self._own()
        where.add("id = :process_id", process_id=process_id)
        return next(iter(self._processes(where)), None)

    def insert(self, process: Process) -> None:
        names = placeholders(Process._fields)
        self._db.run(f"INSERT INTO processes ({_PROCESS}) VALUES ({names})", process._asdict())

    def change(self, process_id: str, **values: Any) -> bool:
        where = self._own()
        where.add("id = :process_id", process_id=process_id)
        listed = ", ".join(f"{name} = :{name}" for name in values)
        return self._db.run(f"UPDATE processes SET {listed} WHERE {where.sql}", where.parameters | values) > 0

    def of(self, session_id: str) -> list[Process]:
        where = self._own()
        where.add("session_id = :session_id", session_id=session_id)
        return self._processes(where)

    def running(self) -> list[Process]:
        where = self._own()
        where.add(f"state = '{ProcessState.RUNNING}'")  # as the index says it, so that it is used
        return self._processes(where)

    def _processes(self, where: Condition) -> list[Process]:
        sql = f"SELECT {_PROCESS} FROM processes WHERE {where.sql} ORDER BY started_at, id"
        return [Process._make(row) for row in self._db.rows(sql, where.parameters)]

    def _own(self) -> Condition:
        """That a process is one of a session that may be seen."""
        seen, where = visible(self._scope, "s"), Condition()
        where.add(
            f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = processes.session_id AND {seen.sql})", **seen.parameters
        )
        return where
