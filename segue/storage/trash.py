"""Deleted sessions, each kept whole as its own export until the trash is emptied."""

from collections.abc import Collection

from segue.core.scope import Scope
from segue.ports.store import Trash, TrashEntry
from segue.storage.sql import Condition, Executor, columns, placeholders, visible

_ENTRY = columns(TrashEntry._fields)
_STORED = (*TrashEntry._fields[1:], "payload")


class SqlTrash(Trash):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def put(self, entry: TrashEntry, payload: str) -> TrashEntry:
        sql = f"INSERT INTO trash ({columns(_STORED)}) VALUES ({placeholders(_STORED)})"
        values = {name: value for name, value in entry._asdict().items() if name != "id"}
        return entry._replace(id=self._db.insert(sql, values | {"payload": payload}))

    def listed(self) -> list[TrashEntry]:
        return self._entries(visible(self._scope))

    def older_than(self, moment: float) -> list[TrashEntry]:
        where = visible(self._scope)
        where.add("trashed_at < :moment", moment=moment)
        return self._entries(where)

    def oldest(self) -> float | None:
        where = visible(self._scope)
        moment = self._db.rows(f"SELECT min(trashed_at) FROM trash WHERE {where.sql}", where.parameters)[0][0]
        return None if moment is None else float(moment)

    def payload(self, entry: TrashEntry) -> str:
        where = visible(self._scope)
        where.add("id = :id", id=entry.id)
        return str(self._db.rows(f"SELECT payload FROM trash WHERE {where.sql}", where.parameters)[0][0])

    def remove(self, entries: Collection[TrashEntry]) -> int:
        removed = 0
        for entry in entries:
            where = visible(self._scope)
            where.add("id = :id", id=entry.id)
            removed += self._db.run(f"DELETE FROM trash WHERE {where.sql}", where.parameters)
        return removed

    def _entries(self, where: Condition) -> list[TrashEntry]:
        sql = f"SELECT {_ENTRY} FROM trash WHERE {where.sql} ORDER BY trashed_at DESC, id"
        return [TrashEntry._make(row) for row in self._db.rows(sql, where.parameters)]
