"""What models have used, call by call."""

from segue.core.scope import Scope
from segue.core.usage import Spent
from segue.ports.store import Ledger
from segue.storage.sql import Executor, columns, placeholders, visible

_SPENT = columns(Spent._fields)


class SqlLedger(Ledger):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def add(self, entry: Spent) -> None:
        self._db.run(f"INSERT INTO usage ({_SPENT}) VALUES ({placeholders(Spent._fields)})", entry._asdict())

    def of(self, session_id: str) -> list[Spent]:
        where = visible(self._scope, "s")
        sql = f"""
            SELECT {columns(Spent._fields, "u")} FROM usage u JOIN sessions s ON s.id = u.session_id
            WHERE u.session_id = :session_id AND {where.sql} ORDER BY u.id"""
        return [Spent._make(row) for row in self._db.rows(sql, where.parameters | {"session_id": session_id})]
