"""Leases and the runs that hold them, by the clock of the database; and how platforms are connected by them."""

from typing import Any

from segue.core.leases import CRASHED, HeldLease, Lease, Run
from segue.core.links import LinkRow
from segue.ports.store import Leases
from segue.storage.sql import LAST_CHARACTER, Executor, columns, placeholders

_HELD = columns(HeldLease._fields)
_RUN = columns(Run._fields)
_LINK = columns(LinkRow._fields)
_MINE = "name = :name AND owner = :owner AND epoch = :epoch"


class SqlLeases(Leases):
    def __init__(self, executor: Executor) -> None:
        self._db = executor
        self._now: float | None = None
        self._held: set[Lease] = set()
        """Those that this transaction has made sure of."""

    def find(self, name: str) -> HeldLease | None:
        rows = self._db.rows(f"SELECT {_HELD} FROM leases WHERE name = :name", {"name": name})
        return HeldLease._make(rows[0]) if rows else None

    def unexpired(self, beginning: str) -> list[HeldLease]:
        sql = f"""
            SELECT {_HELD} FROM leases
            WHERE name >= :beginning AND name < :end AND expires_at > :now ORDER BY name"""
        bounds = {"beginning": beginning, "end": beginning + LAST_CHARACTER, "now": self.now()}
        return [HeldLease._make(row) for row in self._db.rows(sql, bounds)]

    def take(self, name: str, owner: str, principal: str, seconds: float) -> Lease:
        now = self.now()
        sql = """
            INSERT INTO leases (name, owner, epoch, expires_at, taken_at, principal)
            VALUES (:name, :owner, 1, :expires_at, :now, :principal)
            ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1,
            expires_at = excluded.expires_at, taken_at = excluded.taken_at, principal = excluded.principal
            RETURNING epoch"""
        values = {"name": name, "owner": owner, "principal": principal, "now": now, "expires_at": now + seconds}
        ((epoch,),) = self._db.rows(sql, values)
        return Lease(name, owner, epoch)

    def hold(self, lease: Lease, seconds: float) -> bool:
        if lease not in self._held:
            values = lease._asdict() | {"expires_at": self.now() + seconds}
            if self._db.run(f"UPDATE leases SET expires_at = :expires_at WHERE {_MINE}", values) == 0:
                return False
            self._held.add(lease)
        return True

    def release(self, lease: Lease) -> None:
        """The row stays, and with it the epoch: whoever held it once can never be mistaken for its holder again."""
        self._held.discard(lease)
        self._db.run(f"UPDATE leases SET expires_at = 0 WHERE {_MINE}", lease._asdict())

    def release_all(self, owner: str) -> None:
        self._held.clear()
        sql = "UPDATE leases SET expires_at = 0 WHERE owner = :owner AND expires_at > :now"
        self._db.run(sql, {"owner": owner, "now": self.now()})

    def now(self) -> float:
        """The same throughout a transaction."""
        if self._now is None:
            self._now = self._db.now()
        return self._now

    def find_run(self, run_id: str) -> Run | None:
        rows = self._db.rows(f"SELECT {_RUN} FROM runs WHERE id = :id", {"id": run_id})
        return Run._make(rows[0]) if rows else None

    def open_runs(self) -> list[Run]:
        return [Run._make(row) for row in self._db.rows(f"SELECT {_RUN} FROM runs WHERE ended_at IS NULL", {})]

    def crashes(self, program: str, since: float) -> list[float]:
        sql = "SELECT ended_at FROM runs WHERE program = :program AND how = :crashed AND ended_at >= :since"
        return [row[0] for row in self._db.rows(sql, {"program": program, "crashed": CRASHED, "since": since})]

    def add_run(self, run: Run) -> None:
        self._db.run(f"INSERT INTO runs ({_RUN}) VALUES ({placeholders(Run._fields)})", run._asdict())

    def change_run(self, run_id: str, **changes: Any) -> bool:
        listed = ", ".join(f"{name} = :{name}" for name in changes)
        return self._db.run(f"UPDATE runs SET {listed} WHERE id = :id", changes | {"id": run_id}) > 0

    def links(self) -> list[LinkRow]:
        sql = f"SELECT {_LINK} FROM links ORDER BY platform, account"
        return [LinkRow._make(row) for row in self._db.rows(sql, {})]

    def put_link(self, link: LinkRow) -> None:
        changed = ", ".join(f"{name} = excluded.{name}" for name in LinkRow._fields[2:])
        sql = f"""
            INSERT INTO links ({_LINK}) VALUES ({placeholders(LinkRow._fields)})
            ON CONFLICT (platform, account) DO UPDATE SET {changed}"""
        self._db.run(sql, link._asdict())

    def forget_runs(self, before: float, most: int) -> int:
        sql = """
            DELETE FROM runs WHERE id IN
            (SELECT id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :most)"""
        return self._db.run(sql, {"before": before, "most": most})

    def forget_expired(self, before: float, most: int) -> int:
        """A run that is over never takes a lease again, so nobody can be mistaken for the holder of a first epoch."""
        sql = """
            DELETE FROM leases WHERE name IN
            (SELECT l.name FROM leases l WHERE l.taken_at < :before AND l.expires_at < :before
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = l.owner AND r.ended_at IS NULL)
            ORDER BY l.expires_at LIMIT :most)"""
        return self._db.run(sql, {"before": before, "most": most})
