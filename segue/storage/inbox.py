"""What was accepted and waits, runs or has come to its end; and how far each platform has been read."""

from collections.abc import Collection, Sequence
from typing import Any

from segue.core.inbox import ERASED, OPEN, UNANSWERED, Entry, InboxState
from segue.core.scope import Scope
from segue.core.sources import API_SERVER
from segue.ports.store import ChatCount, Inbox, Queue, Standing
from segue.storage.sql import ALL, Condition, Executor, batches, columns, placeholders, visible

_ENTRY = columns(Entry._fields)
_NEW = tuple(name for name in Entry._fields if name != "id")
_OPEN = ", ".join(f"'{state}'" for state in OPEN)
_UNANSWERED = ", ".join(f"'{state}'" for state in UNANSWERED)
_NAME = ("platform", "account", "chat", "message_id", "edit")


class SqlInbox(Inbox):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def add(self, entry: Entry) -> int | None:
        sql = f"""
            INSERT INTO inbox ({columns(_NEW)}) VALUES ({placeholders(_NEW)})
            ON CONFLICT ({columns(_NAME)}) DO NOTHING RETURNING id"""
        rows = self._db.rows(sql, entry._asdict())
        return rows[0][0] if rows else None

    def find(self, entry_id: int) -> Entry | None:
        where = visible(self._scope)
        where.add("id = :entry_id", entry_id=entry_id)
        return next(iter(self._entries(where)), None)

    def named(self, entry: Entry) -> list[Entry]:
        return self.of_message(entry.platform, entry.account, entry.chat, entry.message_id)

    def of_message(self, platform: str, account: str, chat: str, message_id: str) -> list[Entry]:
        where = visible(self._scope)
        where.add(
            "platform = :platform AND account = :account AND chat = :chat AND message_id = :message_id",
            platform=platform,
            account=account,
            chat=chat,
            message_id=message_id,
        )
        return self._entries(where)

    def from_program(self, message_id: str) -> list[Entry]:
        where = visible(self._scope)
        where.add(f"platform = '{API_SERVER}' AND message_id = :message_id", message_id=message_id)
        return self._entries(where)

    def last_from(self, platform: str, account: str, chat: str) -> Entry | None:
        where = visible(self._scope)
        where.add(
            "platform = :platform AND account = :account AND chat = :chat AND origin <> :erased",
            platform=platform,
            account=account,
            chat=chat,
            erased=ERASED,
        )
        rows = self._db.rows(f"SELECT max(id) FROM inbox WHERE {where.sql}", where.parameters)
        return None if rows[0][0] is None else self.find(rows[0][0])

    def all_from(self, platform: str, account: str, chat: str) -> list[Entry]:
        where = visible(self._scope)
        where.add(
            "platform = :platform AND account = :account AND chat = :chat",
            platform=platform,
            account=account,
            chat=chat,
        )
        return self._entries(where)

    def chats(self, platform: str) -> list[ChatCount]:
        where = visible(self._scope)
        where.add("platform = :platform", platform=platform)
        sql = f"""
            SELECT account, chat, state, count(*), min(admitted_at), max(admitted_at) FROM inbox
            WHERE {where.sql} GROUP BY account, chat, state"""
        found: dict[tuple[str, str], ChatCount] = {}
        for account, chat, state, number, first_at, last_at in self._db.rows(sql, where.parameters):
            one = found.get((account, chat)) or ChatCount(account, chat, {}, first_at, last_at)
            found[account, chat] = one._replace(
                states={**one.states, state: number},
                first_at=min(one.first_at, first_at),
                last_at=max(one.last_at, last_at),
            )
        return sorted(found.values(), key=lambda one: one.last_at, reverse=True)

    def waiting(self, lane_key: str, limit: int | None = None) -> list[Entry]:
        return self._in_lane(lane_key, InboxState.WAITING, limit)

    def running(self, lane_key: str) -> list[Entry]:
        return self._in_lane(lane_key, InboxState.RUNNING)

    def open_in(self, lane_key: str) -> list[Entry]:
        where = visible(self._scope)
        where.add(f"lane_key = :lane_key AND state IN ({_OPEN})", lane_key=lane_key)
        return self._entries(where)

    def standing(self, lane_key: str) -> Standing:
        where = visible(self._scope)
        where.add(f"lane_key = :lane_key AND state IN ({_OPEN})", lane_key=lane_key)
        sql = f"SELECT state, count(*) FROM inbox WHERE {where.sql} GROUP BY state"
        counted: dict[str, int] = dict(self._db.rows(sql, where.parameters))
        return Standing(counted.get(InboxState.WAITING, 0), counted.get(InboxState.RUNNING, 0))

    def left_out(self, lane_key: str, reason: str) -> list[Entry]:
        where = visible(self._scope)
        where.add(
            f"lane_key = :lane_key AND state = '{InboxState.CANCELLED}' AND reason = :reason AND turn_id IS NULL",
            lane_key=lane_key,
            reason=reason,
        )
        return self._entries(where)

    def of_turn(self, turn_id: str) -> list[Entry]:
        where = visible(self._scope)
        where.add("turn_id = :turn_id", turn_id=turn_id)
        return self._entries(where)

    def listed(self, states: Collection[str], limit: int | None = None) -> list[Entry]:
        return self._entries(self._among(states), limit)

    def latest(self, states: Collection[str], limit: int, lane_key: str | None = None) -> list[Entry]:
        where = self._among(states)
        if lane_key is not None:
            where.add("lane_key = :lane_key", lane_key=lane_key)
        sql = f"SELECT {_ENTRY} FROM inbox WHERE {where.sql} ORDER BY id DESC LIMIT :limit"
        return [Entry._make(row) for row in reversed(self._db.rows(sql, where.parameters | {"limit": limit}))]

    def count(self, states: Collection[str]) -> dict[str, int]:
        where = self._among(states)
        sql = f"SELECT state, count(*) FROM inbox WHERE {where.sql} GROUP BY state"
        return dict(self._db.rows(sql, where.parameters))

    def queues(self, states: Collection[str]) -> list[Queue]:
        where = self._among(states)
        sql = f"SELECT lane_key, count(*), min(admitted_at) FROM inbox WHERE {where.sql} GROUP BY lane_key ORDER BY 3"
        return [Queue._make(row) for row in self._db.rows(sql, where.parameters)]

    def open_lanes(self) -> list[str]:
        where = visible(self._scope)
        where.add(f"state IN ({_OPEN})")
        sql = f"SELECT lane_key FROM inbox WHERE {where.sql} GROUP BY lane_key ORDER BY min(id)"
        return [row[0] for row in self._db.rows(sql, where.parameters)]

    def change(self, entries: Sequence[Entry], **values: Any) -> int:
        listed, changed = ", ".join(f"{name} = :{name}" for name in values), 0
        for some in batches(entries):
            where = visible(self._scope)
            where.add_membership("id", [entry.id for entry in some])
            changed += self._db.run(f"UPDATE inbox SET {listed} WHERE {where.sql}", where.parameters | values)
        return changed

    def erase(self, session_ids: Collection[str]) -> int:
        where = visible(self._scope)
        where.add_membership("session_id", session_ids)
        sql = f"""
            UPDATE inbox SET text = '', parts = NULL, route = NULL, attachments = NULL, origin = :origin,
            state = CASE WHEN state = '{InboxState.WAITING}' THEN '{InboxState.CANCELLED}' ELSE state END
            WHERE {where.sql}"""
        return self._db.run(sql, where.parameters | {"origin": ERASED})

    def cursor(self, platform: str, account: str, name: str) -> str | None:
        sql = "SELECT value FROM cursors WHERE platform = :platform AND account = :account AND name = :name"
        rows = self._db.rows(sql, {"platform": platform, "account": account, "name": name})
        return rows[0][0] if rows else None

    def move_cursor(self, platform: str, account: str, name: str, value: str) -> None:
        sql = """
            INSERT INTO cursors (platform, account, name, value) VALUES (:platform, :account, :name, :value)
            ON CONFLICT (platform, account, name) DO UPDATE SET value = excluded.value"""
        self._db.run(sql, {"platform": platform, "account": account, "name": name, "value": value})

    def _in_lane(self, lane_key: str, state: InboxState, limit: int | None = None) -> list[Entry]:
        where = visible(self._scope)
        where.add(f"lane_key = :lane_key AND state = '{state}' AND state IN ({_OPEN})", lane_key=lane_key)
        return self._entries(where, limit)  # the second says it as the index does, so that it is used

    def _among(self, states: Collection[str]) -> Condition:
        """Which states; the few that matter are said as their index says them, so that it is used."""
        where = visible(self._scope)
        where.add_membership("state", states)
        for few, said in ((OPEN, _OPEN), (UNANSWERED, _UNANSWERED)):
            if set(states) <= set(few):
                where.add(f"state IN ({said})")
        return where

    def _entries(self, where: Condition, limit: int | None = None) -> list[Entry]:
        sql = f"SELECT {_ENTRY} FROM inbox WHERE {where.sql} ORDER BY id LIMIT :limit"
        limited = where.parameters | {"limit": ALL if limit is None else limit}
        return [Entry._make(row) for row in self._db.rows(sql, limited)]
