"""Homes for the tests, on each database there is."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psycopg

from segue.config import load

NewHome = Callable[[str], Path]
"""Makes a home with a name of its own, whose conversations are in the database that is being tried."""


def keep_in(home: Path, url: str) -> Path:
    """Name a server in a home's configuration."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / "config.yaml"
    file.write_text(f"database: {url}\n", "utf-8")
    file.chmod(0o600)
    return home


def configure(home: Path, text: str) -> None:
    """Add settings to those that a home has."""
    file = home / "config.yaml"
    home.mkdir(mode=0o700, exist_ok=True)
    file.write_text((file.read_text("utf-8") if file.exists() else "") + text, "utf-8")


def database_of(home: Path) -> str | Path:
    """The file or the address of a home's database."""
    return load(home, {}).database_at


class Beside:
    """A home's database as somebody sees it who has no use for the product and may do everything."""

    def __init__(self, home: Path) -> None:
        place = database_of(home)
        self._is_file = isinstance(place, Path)
        self._connection: Any
        if isinstance(place, Path):
            self._connection = sqlite3.connect(place)
        else:
            self._connection = psycopg.connect(place, user="postgres", options="-c search_path=segue")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.commit()
        self._connection.close()

    def ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql if self._is_file else sql.replace("?", "%s"), values)
        return list(cursor.fetchall()) if cursor.description else []
