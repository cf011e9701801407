"""Deleted sessions, each kept whole as its own export until the trash is emptied."""

from collections.abc import Collection

from segue.core.errors import SessionNotFound
from segue.core.scope import Scope
from segue.ports.store import Trash, TrashEntry
from segue.storage.sql import LAST_CHARACTER, Condition, Executor, columns, placeholders, visible

_ENTRY = columns(TrashEntry._fields)


class SqlTrash(Trash):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def put(self, entry: TrashEntry, payload: str) -> None:
        names = (*TrashEntry._fields, "payload")
        sql = f"INSERT INTO trash ({columns(names)}) VALUES ({placeholders(names)})"
        self._db.run(sql, entry._asdict() | {"payload": payload})

    def listed(self) -> list[TrashEntry]:
        return self._entries(visible(self._scope))

    def of_conversation(self, conversation: str) -> list[TrashEntry]:
        where = visible(self._scope)
        where.add("conversation = :conversation", conversation=conversation)
        return self._entries(where)

    def with_prefix(self, prefix: str, limit: int) -> list[TrashEntry]:
        where = visible(self._scope)
        where.add("session_id >= :prefix AND session_id < :end", prefix=prefix, end=prefix + LAST_CHARACTER)
        return self._entries(where)[:limit]

    def payload(self, session_id: str) -> str:
        where = visible(self._scope)
        where.add("session_id = :id", id=session_id)
        rows = self._db.rows(f"SELECT payload FROM trash WHERE {where.sql}", where.parameters)
        if not rows:
            raise SessionNotFound(session_id)
        return str(rows[0][0])

    def remove(self, session_ids: Collection[str]) -> int:
        where = visible(self._scope)
        where.add_membership("session_id", session_ids)
        return self._db.run(f"DELETE FROM trash WHERE {where.sql}", where.parameters)

    def older_than(self, moment: float) -> list[TrashEntry]:
        where = visible(self._scope)
        where.add("trashed_at < :moment", moment=moment)
        return self._entries(where)

    def _entries(self, where: Condition) -> list[TrashEntry]:
        sql = f"SELECT {_ENTRY} FROM trash WHERE {where.sql} ORDER BY trashed_at DESC, session_id"
        return [TrashEntry._make(row) for row in self._db.rows(sql, where.parameters)]
