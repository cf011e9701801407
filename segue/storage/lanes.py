"""The lanes table and the resets that happened in them."""

import json
from datetime import datetime
from typing import Any

from segue.core.ids import LaneKey, SessionId
from segue.core.lifecycle import Lane, Phase
from segue.core.moments import instant
from segue.core.policy import ResetReason
from segue.core.scope import Scope
from segue.core.sources import SessionSource, source_from
from segue.ports.store import Lanes, ResetRow
from segue.storage.sql import ALL, Executor, Row, columns, placeholders, visible

_COLUMNS = (
    "key",
    "version",
    "principal",
    "audience",
    "phase",
    "phase_reason",
    "phase_since",
    "last_person_at",
    "created_at",
    "updated_at",
    "finalised_at",
    "origin",
)
_LANE = columns(_COLUMNS)
_FROM = """
    FROM lanes l LEFT JOIN sessions s
    ON s.lane_key = l.key AND s.principal = l.principal AND s.audience = l.audience AND s.ended_at IS NULL"""
"""The current session of a lane is the one that is open in it and belongs to whom the lane belongs to."""
_OF_LANE = columns(_COLUMNS, "l")
_RESET = columns(ResetRow._fields)


class SqlLanes(Lanes):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, key: str) -> Lane | None:
        return self._find("l.key = :value", key)

    def find_by_session(self, session_id: str) -> Lane | None:
        return self._find("s.id = :value", session_id)

    def insert(self, lane: Lane) -> None:
        self._db.run(f"INSERT INTO lanes ({_LANE}) VALUES ({placeholders(_COLUMNS)})", _values(lane))

    def change(self, lane: Lane) -> bool:
        where = visible(self._scope)
        changed = [name for name in _COLUMNS if name not in ("key", "version")]
        changes = ", ".join(f"{name} = :{name}" for name in changed)
        sql = f"""
            UPDATE lanes SET version = version + 1, {changes}
            WHERE key = :key AND version = :version AND {where.sql}"""
        return self._db.run(sql, _values(lane) | where.parameters) > 0

    def set_origin(self, key: str, origin: SessionSource) -> None:
        where = visible(self._scope)
        where.add("key = :key", key=key)
        written = where.parameters | {"origin": json.dumps(origin.to_dict())}
        self._db.run(f"UPDATE lanes SET origin = :origin WHERE {where.sql}", written)

    def delete(self, key: str) -> bool:
        where = visible(self._scope)
        where.add("key = :key", key=key)
        return self._db.run(f"DELETE FROM lanes WHERE {where.sql}", where.parameters) > 0

    def listed(self, active_since: datetime | None = None, limit: int | None = None) -> list[Lane]:
        where = visible(self._scope, "l")
        if active_since is not None:
            where.add("l.updated_at >= :since", since=active_since.timestamp())
        sql = f"SELECT s.id, {_OF_LANE} {_FROM} WHERE {where.sql} ORDER BY l.updated_at DESC, l.key LIMIT :limit"
        limited = where.parameters | {"limit": ALL if limit is None else limit}
        return [_lane(row) for row in self._db.rows(sql, limited)]

    def unfinalised(self) -> list[Lane]:
        where = visible(self._scope, "l")
        where.add("l.finalised_at IS NULL AND s.id IS NOT NULL")
        sql = f"SELECT s.id, {_OF_LANE} {_FROM} WHERE {where.sql} ORDER BY l.last_person_at, l.key"
        return [_lane(row) for row in self._db.rows(sql, where.parameters)]

    def add_reset(self, row: ResetRow) -> None:
        values = row._asdict() | {"at": row.at.timestamp(), "had_activity": int(row.had_activity)}
        self._db.run(f"INSERT INTO resets ({_RESET}) VALUES ({placeholders(ResetRow._fields)})", values)

    def resets(self, key: str) -> list[ResetRow]:
        return self._resets("r.lane_key = :value ORDER BY r.id", key)

    def reset_into(self, session_id: str) -> ResetRow | None:
        return next(iter(self._resets("r.to_session = :value ORDER BY r.id DESC LIMIT 1", session_id)), None)

    def _find(self, condition: str, value: str) -> Lane | None:
        where = visible(self._scope, "l")
        where.add(condition, value=value)
        rows = self._db.rows(f"SELECT s.id, {_OF_LANE} {_FROM} WHERE {where.sql}", where.parameters)
        return _lane(rows[0]) if rows else None

    def _resets(self, condition: str, value: str) -> list[ResetRow]:
        where = visible(self._scope, "s")
        sql = f"""
            SELECT {columns(ResetRow._fields, "r")} FROM resets r
            WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.id = r.to_session AND {where.sql}) AND {condition}"""
        return [_reset(row) for row in self._db.rows(sql, where.parameters | {"value": value})]


def _lane(row: Row) -> Lane:
    session_id, *rest = row
    values = dict(zip(_COLUMNS, rest, strict=True))
    for name in ("phase_since", "last_person_at", "created_at", "updated_at", "finalised_at"):
        values[name] = None if values[name] is None else instant(values[name])
    origin = values.pop("origin")
    return Lane(
        key=LaneKey(values.pop("key")),
        session_id=None if session_id is None else SessionId(session_id),
        phase=Phase(values.pop("phase")),
        origin=None if origin is None else source_from(origin),
        **values,
    )


def _values(lane: Lane) -> dict[str, Any]:
    values = {name: getattr(lane, name) for name in _COLUMNS}
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = value.timestamp()
    values["origin"] = None if lane.origin is None else json.dumps(lane.origin.to_dict())
    return values


def _reset(row: Row) -> ResetRow:
    values = dict(zip(ResetRow._fields, row, strict=True))
    return ResetRow(
        **values | {"at": instant(values["at"]), "reason": ResetReason(values["reason"])},
    )._replace(had_activity=bool(values["had_activity"]))
