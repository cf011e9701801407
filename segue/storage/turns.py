"""The turns of sessions, and the steps of turns."""

from typing import Any

from segue.core.scope import Scope
from segue.core.turns import FAREWELL, Heard, Step, StepState, Turn, TurnState
from segue.ports.store import Turns
from segue.storage.sql import Executor, columns, placeholders, visible

_TURN = columns(Turn._fields)
_STEP = columns(Step._fields)
_HEARD = columns(Heard._fields)


class SqlTurns(Turns):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, turn_id: str) -> Turn | None:
        return self._find("id = :value", turn_id)

    def running_of(self, run_id: str) -> list[Turn]:
        condition, parameters = self._own()
        sql = f"SELECT {_TURN} FROM turns WHERE run_id = :run_id AND state = '{TurnState.RUNNING}' AND {condition}"
        return [Turn._make(row) for row in self._db.rows(sql, parameters | {"run_id": run_id})]

    def farewells_of(self, run_id: str) -> list[Turn]:
        condition, parameters = self._own()
        sql = f"""
            SELECT {_TURN} FROM turns
            WHERE run_id = :run_id AND kind = '{FAREWELL}' AND attempt > 0 AND ended_at IS NULL AND {condition}"""
        return [Turn._make(row) for row in self._db.rows(sql, parameters | {"run_id": run_id})]

    def running_in(self, session_id: str) -> Turn | None:
        return self._find(f"session_id = :value AND state = '{TurnState.RUNNING}'", session_id)

    def next_after(self, turn: Turn) -> Turn | None:
        condition, parameters = self._own()
        sql = f"""
            SELECT {_TURN} FROM turns WHERE session_id = :session_id AND first_seq > :first_seq AND {condition}
            ORDER BY first_seq LIMIT 1"""
        rows = self._db.rows(sql, parameters | {"session_id": turn.session_id, "first_seq": turn.first_seq})
        return Turn._make(rows[0]) if rows else None

    def latest(self, session_id: str, kind: str) -> Turn | None:
        condition, parameters = self._own()
        sql = f"""
            SELECT {_TURN} FROM turns WHERE session_id = :session_id AND kind = :kind AND {condition}
            ORDER BY ended_at IS NULL DESC, begun_at DESC, id DESC LIMIT 1"""
        rows = self._db.rows(sql, parameters | {"session_id": session_id, "kind": kind})
        return Turn._make(rows[0]) if rows else None

    def owed(self) -> list[Turn]:
        condition, parameters = self._own()
        sql = f"""
            SELECT {_TURN} FROM turns WHERE kind = '{FAREWELL}' AND ended_at IS NULL AND {condition}
            ORDER BY begun_at, id"""
        return [Turn._make(row) for row in self._db.rows(sql, parameters)]

    def insert(self, turn: Turn) -> None:
        self._db.run(f"INSERT INTO turns ({_TURN}) VALUES ({placeholders(Turn._fields)})", turn._asdict())

    def change(self, turn_id: str, **changes: Any) -> bool:
        listed = ", ".join(f"{name} = :{name}" for name in changes)
        condition, parameters = self._own()
        sql = f"UPDATE turns SET {listed} WHERE id = :turn_id AND {condition}"
        return self._db.run(sql, changes | parameters | {"turn_id": turn_id}) > 0

    def steps(self, turn_id: str) -> list[Step]:
        condition, parameters = self._own()
        sql = f"""
            SELECT {_STEP} FROM steps WHERE turn_id = :turn_id
            AND EXISTS (SELECT 1 FROM turns WHERE id = :turn_id AND {condition}) ORDER BY number"""
        return [Step._make(row) for row in self._db.rows(sql, parameters | {"turn_id": turn_id})]

    def begin_step(self, step: Step) -> None:
        self._db.run(f"INSERT INTO steps ({_STEP}) VALUES ({placeholders(Step._fields)})", step._asdict())

    def end_step(self, turn_id: str, number: int, state: str, at: float) -> bool:
        sql = f"""
            UPDATE steps SET state = :state, ended_at = :at
            WHERE turn_id = :turn_id AND number = :number AND state = '{StepState.BEGUN}'"""
        return self._db.run(sql, {"turn_id": turn_id, "number": number, "state": state, "at": at}) > 0

    def hear(self, line: Heard) -> None:
        self._db.run(f"INSERT INTO heard ({_HEARD}) VALUES ({placeholders(Heard._fields)})", line._asdict())

    def heard_in(self, session_id: str) -> list[Heard]:
        condition, parameters = self._own()
        sql = f"""
            SELECT {columns(Heard._fields, "h")} FROM heard h JOIN turns ON turns.id = h.turn_id
            WHERE turns.session_id = :session_id AND {condition} ORDER BY h.at, h.number"""
        return [Heard._make(row) for row in self._db.rows(sql, parameters | {"session_id": session_id})]

    def forget_heard(self, line: Heard) -> bool:
        sql = "DELETE FROM heard WHERE turn_id = :turn_id AND number = :number"
        return self._db.run(sql, {"turn_id": line.turn_id, "number": line.number}) > 0

    def _find(self, wanted: str, value: str) -> Turn | None:
        condition, parameters = self._own()
        rows = self._db.rows(f"SELECT {_TURN} FROM turns WHERE {wanted} AND {condition}", parameters | {"value": value})
        return Turn._make(rows[0]) if rows else None

    def _own(self) -> tuple[str, dict[str, Any]]:
        """That a turn is one of a session that may be seen."""
        where = visible(self._scope, "s")
        return f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = turns.session_id AND {where.sql})", where.parameters
