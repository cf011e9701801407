"""The seam between our SQL and a database: one text with `:named` parameters, rows as tuples, scopes as conditions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from segue.core.scope import Scope

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]
T = TypeVar("T")


class Executor(Protocol):
    """A connection inside a transaction."""

    def rows(self, sql: str, parameters: Parameters) -> list[Row]: ...
    def stream(self, sql: str, parameters: Parameters) -> Iterator[Row]: ...
    def run(self, sql: str, parameters: Parameters) -> int:
        """Execute a change; the number of rows it touched."""

    def run_many(self, sql: str, many: Sequence[Parameters]) -> None:
        """Execute the same change with each of many parameters."""

    def insert(self, sql: str, parameters: Parameters) -> int:
        """Execute an `INSERT` of one row; the id it got."""

    def now(self) -> float:
        """The clock of the database, which all who share it see alike."""


class LaggingSequence(NamedTuple):
    """A sequence that would give a new row an id which is used already, or lower than one that is."""

    table: str
    next_id: int
    highest_id: int
    name: str


class Condition:
    """A growing `WHERE`, and the parameters it needs."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.parameters: dict[str, Any] = {}

    def add(self, sql: str, **parameters: Any) -> None:
        self._parts.append(sql)
        self.parameters |= parameters

    def add_membership(self, column: str, values: Collection[Any], *, negated: bool = False) -> None:
        """`column IN (…)`, with one parameter per value; nothing is in an empty list."""
        if not values:
            self.add("1 = 1" if negated else "1 = 0")
            return
        names = {f"among_{number}": value for number, value in enumerate(values, len(self.parameters))}
        listed = ", ".join(f":{name}" for name in names)
        self.add(f"{column} {'NOT IN' if negated else 'IN'} ({listed})", **names)

    @property
    def sql(self) -> str:
        return " AND ".join(self._parts) or "1 = 1"


def visible(scope: Scope, table: str = "") -> Condition:
    """What a scope may see of a table that has a principal and an audience."""
    condition = Condition()
    at = f"{table}." if table else ""
    if scope.room is not None:
        condition.add(f"{at}audience = :scope_room", scope_room=scope.room)
        condition.add(f"{at}principal IN (:scope_principal, :scope_room)", scope_principal=scope.principal)
    elif not scope.sees_all:
        condition.add(f"{at}principal = :scope_principal", scope_principal=scope.principal)
    return condition


def columns(names: Iterable[str], table: str = "") -> str:
    return ", ".join(f"{table}.{name}" if table else name for name in names)


def placeholders(names: Iterable[str]) -> str:
    return ", ".join(f":{name}" for name in names)


def batches(values: Collection[T], size: int = 500) -> Iterator[list[T]]:
    """A long list in pieces that a statement can hold."""
    listed = list(values)
    return (listed[at : at + size] for at in range(0, len(listed), size))


ALL = 2**63 - 1
"""A limit that limits nothing."""

LAST_CHARACTER = "\U0010ffff"
"""Sorts after everything: `x >= :prefix AND x < :prefix || LAST_CHARACTER` is what begins with the prefix, by index."""
