"""Who was let in, and who asks to be. Under any other scope than the owner's at the console there is nobody."""

from segue.core.errors import StoreError
from segue.core.pairing import PairedPerson, Pairing, PairingState
from segue.core.scope import Scope
from segue.ports.store import People
from segue.storage.sql import Condition, Executor, columns, placeholders

_PERSON = columns(PairedPerson._fields)
_PAIRING = columns(Pairing._fields)


class SqlPeople(People):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def find(self, platform: str, peer: str) -> PairedPerson | None:
        where = self._of(platform, peer)
        rows = self._db.rows(f"SELECT {_PERSON} FROM people WHERE {where.sql}", where.parameters)
        return PairedPerson._make(rows[0]) if rows else None

    def listed(self) -> list[PairedPerson]:
        sql = f"SELECT {_PERSON} FROM people WHERE {self._own().sql} ORDER BY paired_at, platform, peer"
        return [PairedPerson._make(row) for row in self._db.rows(sql, {})]

    def owners(self) -> list[PairedPerson]:
        where = f"{self._own().sql} AND role = 'owner'"  # as the index says it
        sql = f"SELECT {_PERSON} FROM people WHERE {where} ORDER BY paired_at, platform, peer"
        return [PairedPerson._make(row) for row in self._db.rows(sql, {})]

    def put(self, person: PairedPerson) -> None:
        self._put("people", person._asdict(), ("platform", "peer"))

    def remove(self, platform: str, peer: str) -> bool:
        where = self._of(platform, peer)
        return self._db.run(f"DELETE FROM people WHERE {where.sql}", where.parameters) > 0

    def pairings(self) -> list[Pairing]:
        sql = f"SELECT {_PAIRING} FROM pairings WHERE {self._own().sql} ORDER BY created_at, platform, peer, slot"
        return [Pairing._make(row) for row in self._db.rows(sql, {})]

    def put_pairing(self, pairing: Pairing) -> None:
        self._put("pairings", pairing._asdict(), ("platform", "peer", "slot"))

    def use_pairing(self, pairing: Pairing) -> bool:
        where = self._of(pairing.platform, pairing.peer)
        where.add("code_hash = :code_hash", code_hash=pairing.code_hash)
        where.add("state = :pending", pending=str(PairingState.PENDING))
        sql = f"UPDATE pairings SET state = :used WHERE {where.sql}"
        return self._db.run(sql, where.parameters | {"used": str(PairingState.USED)}) > 0

    def forget_pairings(self, platform: str, peer: str) -> int:
        where = self._of(platform, peer)
        return self._db.run(f"DELETE FROM pairings WHERE {where.sql}", where.parameters)

    def forget_expired(self, now: float) -> int:
        where = self._own()
        where.add("expires_at <= :now", now=now)
        return self._db.run(f"DELETE FROM pairings WHERE {where.sql}", where.parameters)

    def _put(self, table: str, values: dict[str, object], key: tuple[str, ...]) -> None:
        if not self._scope.sees_all:
            raise StoreError("Only the owner lets people in.")
        changes = ", ".join(f"{name} = excluded.{name}" for name in values if name not in key)
        sql = f"""
            INSERT INTO {table} ({columns(values)}) VALUES ({placeholders(values)})
            ON CONFLICT ({columns(key)}) DO UPDATE SET {changes}"""
        self._db.run(sql, values)

    def _of(self, platform: str, peer: str) -> Condition:
        where = self._own()
        where.add("platform = :platform AND peer = :peer", platform=platform, peer=peer)
        return where

    def _own(self) -> Condition:
        where = Condition()
        if not self._scope.sees_all:
            where.add("1 = 0")
        return where
