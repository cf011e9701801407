"""One connection to one SQLite file, with the settings that every connection of ours has."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from segue.storage.sql import Executor, Parameters, Row

BUSY_MILLISECONDS = 1000
SYNCHRONOUS = "FULL"
"""A commit has reached the disk when it returns. With less, the power could take the latest ones along."""
_COMMITS_REMEMBERED = 20
PREPARED = 500
"""Statements that are kept ready: more than there are in all that happens again and again."""
KEEPS_PLANS = 1
"""Otherwise most statements that join or sort are compiled anew whenever they are run with other values."""
READING, WRITING = "BEGIN", "BEGIN IMMEDIATE"
_PAGES_AT_A_TIME = 256

_NOTHING: Parameters = {}


class SqliteConnection(Executor):
    """One connection to one file, with our settings."""

    def __init__(self, path: Path, *, writes: bool, is_immutable: bool = False) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE if writes else apsw.SQLITE_OPEN_READONLY
        uri = f"file:{_uri_path(path)}?immutable=1" if is_immutable else str(path)
        self.handle = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI, statementcachesize=PREPARED)
        self.handle.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, KEEPS_PLANS)
        self.handle.set_busy_timeout(BUSY_MILLISECONDS)
        self._is_patient = True
        self.commit_seconds = 0.0
        """How long a commit has taken lately."""
        settings = ["foreign_keys=ON", "mmap_size=0", "trusted_schema=OFF", "cell_size_check=ON"]
        if writes:
            settings += [f"synchronous={SYNCHRONOUS}", "secure_delete=ON"]
            settings += ["fullfsync=ON", "checkpoint_fullfsync=ON"] if sys.platform == "darwin" else []
        for setting in settings:
            self.handle.pragma(*setting.split("="))

    @classmethod
    def made(cls, path: Path) -> "SqliteConnection":
        """A connection to a new file, which only its owner can read."""
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR, 0o600))
        return cls(path, writes=True)

    def rows(self, sql: str, parameters: Parameters = _NOTHING) -> list[Row]:
        return self.handle.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Parameters = _NOTHING) -> Iterator[Row]:
        return iter(self.handle.execute(sql, parameters))

    def run(self, sql: str, parameters: Parameters = _NOTHING) -> int:
        self.handle.execute(sql, parameters)
        return self.handle.changes()

    def run_many(self, sql: str, many: Sequence[Parameters]) -> None:
        self.handle.executemany(sql, many)

    def insert(self, sql: str, parameters: Parameters) -> int:
        self.handle.execute(sql, parameters)
        return self.handle.last_insert_rowid()

    def now(self) -> float:
        return time.time()  # what SQLite would say, too, for it has no other clock

    def data_version(self) -> object:
        """A number that changes when somebody else has written."""
        return self.value("PRAGMA data_version")

    def value(self, sql: str) -> object:
        return self.rows(sql)[0][0]

    def columns_of(self, table: str) -> set[str]:
        return {str(row[1]) for row in self.rows(f"PRAGMA table_xinfo({table})")}

    def set_patience(self, *, is_patient: bool) -> None:
        """Whether another process that holds the file is waited for."""
        if is_patient != self._is_patient:
            self._is_patient = is_patient
            self.handle.set_busy_timeout(BUSY_MILLISECONDS if is_patient else 0)

    @contextmanager
    def transaction(self, begin: str, *, is_patient: bool = True) -> Iterator[None]:
        self.set_patience(is_patient=is_patient)
        self.handle.execute(begin)
        try:
            yield
            if begin != READING or self.handle.in_transaction:  # a damaged search index can end a snapshot
                began = time.perf_counter()
                self.handle.execute("COMMIT")
                self.commit_seconds += (time.perf_counter() - began - self.commit_seconds) / _COMMITS_REMEMBERED
        except BaseException:
            if self.handle.in_transaction:
                with suppress(apsw.Error):  # the first error is the one to hear about
                    self.handle.execute("ROLLBACK")
            raise

    def copy_from(
        self,
        source: "SqliteConnection",
        advance: Callable[[int], object],
        under_lock: Callable[[], object] = bool,
    ) -> None:
        """Become what the other database is, in one transaction; told how many pages each step copied.

        `under_lock` is called when nobody else can write any more, and nothing can be seen of the change yet.
        """
        with self.handle.backup("main", source.handle, "main") as copying:
            left = int(str(source.value("PRAGMA page_count")))
            copying.step(1)
            under_lock()
            while not copying.done:
                copying.step(_PAGES_AT_A_TIME)
                advance(left - copying.remaining)
                left = copying.remaining


def _uri_path(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def sqlite_version() -> str:
    return apsw.sqlite_lib_version()


@contextmanager
def looking_at(path: Path) -> Iterator[SqliteConnection]:
    """A connection that only reads, for a look at a file."""
    connection = SqliteConnection(path, writes=False)
    try:
        yield connection
    finally:
        connection.handle.close(force=True)


def leave_no_log(path: Path) -> None:
    """Let a database that nobody has open be one file, with no log beside it."""
    connection = SqliteConnection(path, writes=True)
    connection.value("PRAGMA journal_mode=delete")
    connection.handle.close()
