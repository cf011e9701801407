"""What is to be sent, in the order in which it was decided."""

from collections.abc import Collection
from typing import Any

from segue.core.outbox import UNSENT, Letter, OutboxState
from segue.core.scope import Scope
from segue.ports.store import Outbox
from segue.storage.sql import ALL, Condition, Executor, columns, placeholders, visible

_LETTER = columns(Letter._fields)
_NEW = tuple(name for name in Letter._fields if name != "id")
_UNSENT = ", ".join(f"'{state}'" for state in UNSENT)


class SqlOutbox(Outbox):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def add(self, letter: Letter) -> bool:
        sql = f"""
            INSERT INTO outbox ({columns(_NEW)}) VALUES ({placeholders(_NEW)}) ON CONFLICT (key) DO NOTHING"""
        return self._db.run(sql, letter._asdict()) > 0

    def find(self, letter_id: int) -> Letter | None:
        where = visible(self._scope)
        where.add("id = :letter_id", letter_id=letter_id)
        return next(iter(self._letters(where)), None)

    def unsent(self, platform: str, account: str, known: Collection[int] = ()) -> list[Letter]:
        where = visible(self._scope)
        where.add(
            f"state IN ({_UNSENT}) AND platform = :platform AND account = :account", platform=platform, account=account
        )
        ids = self._db.rows(f"SELECT id FROM outbox WHERE {where.sql} ORDER BY id", where.parameters)
        found = [self.find(letter_id) for (letter_id,) in ids if letter_id not in known]
        return [letter for letter in found if letter is not None]

    def is_awaited(self, platform: str, account: str, chat: str) -> bool:
        where = visible(self._scope)
        where.add(
            f"state IN ({_UNSENT}) AND platform = :platform AND account = :account AND chat = :chat",
            platform=platform,
            account=account,
            chat=chat,
        )
        return bool(self._letters(where, 1))

    def of_turn(self, turn_id: str) -> list[Letter]:
        where = visible(self._scope)
        where.add("turn_id = :turn_id", turn_id=turn_id)
        return self._letters(where)

    def keyed(self, keys: Collection[str]) -> list[Letter]:
        where = visible(self._scope)
        where.add_membership("key", keys)
        return self._letters(where)

    def listed(self, states: Collection[str], limit: int | None = None) -> list[Letter]:
        by = "+id" if set(states) <= set(UNSENT) else "id"  # the few are sorted, rather than all gone through
        return self._letters(self._among(states), limit, by)

    def latest(self, states: Collection[str], limit: int, lane_key: str | None = None) -> list[Letter]:
        where = self._among(states)
        if lane_key is not None:
            where.add("lane_key = :lane_key", lane_key=lane_key)
        sql = f"SELECT {_LETTER} FROM outbox WHERE {where.sql} ORDER BY id DESC LIMIT :limit"
        return [Letter._make(row) for row in reversed(self._db.rows(sql, where.parameters | {"limit": limit}))]

    def count(self, states: Collection[str]) -> dict[str, int]:
        where = self._among(states)
        sql = f"SELECT state, count(*) FROM outbox WHERE {where.sql} GROUP BY state"
        return dict(self._db.rows(sql, where.parameters))

    def change(self, letter_id: int, **values: Any) -> bool:
        where = visible(self._scope)
        where.add("id = :letter_id", letter_id=letter_id)
        listed = ", ".join(f"{name} = :{name}" for name in values)
        return self._db.run(f"UPDATE outbox SET {listed} WHERE {where.sql}", where.parameters | values) > 0

    def remove(self, letter_id: int) -> bool:
        where = visible(self._scope)
        where.add("id = :letter_id", letter_id=letter_id)
        return self._db.run(f"DELETE FROM outbox WHERE {where.sql}", where.parameters) > 0

    def erase(self, session_ids: Collection[str]) -> int:
        where = visible(self._scope)
        where.add_membership("session_id", session_ids)
        return self._db.run(f"DELETE FROM outbox WHERE {where.sql}", where.parameters)

    def doubt_sending(self, platform: str, account: str) -> int:
        where = visible(self._scope)
        where.add("platform = :platform AND account = :account", platform=platform, account=account)
        sql = f"""
            UPDATE outbox SET state = '{OutboxState.UNKNOWN}'
            WHERE state = '{OutboxState.SENDING}' AND state IN ({_UNSENT}) AND {where.sql}"""
        return self._db.run(sql, where.parameters)

    def _among(self, states: Collection[str]) -> Condition:
        """Which states; the few that matter are said as their index says them, so that it is used."""
        where = visible(self._scope)
        where.add_membership("state", states)
        if set(states) <= set(UNSENT):
            where.add(f"state IN ({_UNSENT})")
        if set(states) == {OutboxState.DEAD}:
            where.add(f"state = '{OutboxState.DEAD}'")
        return where

    def _letters(self, where: Condition, limit: int | None = None, by: str = "id") -> list[Letter]:
        sql = f"SELECT {_LETTER} FROM outbox WHERE {where.sql} ORDER BY {by} LIMIT :limit"
        limited = where.parameters | {"limit": ALL if limit is None else limit}
        return [Letter._make(row) for row in self._db.rows(sql, limited)]
