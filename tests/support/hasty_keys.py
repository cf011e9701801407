"""Stores of Matrix keys that leave it to the system when their pages reach the disk, for whoever imports this.

A new store makes a dozen tables, and waits for the disk after each.
"""

from collections.abc import Mapping
from typing import Any

from nio.store import database  # type: ignore[import-untyped]
from peewee import SqliteDatabase  # type: ignore[import-untyped]


class HastyDatabase(SqliteDatabase):  # type: ignore[misc]
    def __init__(self, path: str, pragmas: Mapping[str, Any], **more: Any) -> None:
        super().__init__(path, pragmas={**pragmas, "synchronous": 0}, **more)


setattr(database, "SqliteDatabase", HastyDatabase)  # noqa: B010 - which it looks up whenever it opens one
