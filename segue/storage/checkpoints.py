"""What was committed goes from the log into the file now and then, beside whoever writes."""

import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from segue.storage.connection import SqliteConnection

CHECKPOINT_EVERY = 50
MOST_PAGES = 1_000
"""A log that became longer while it was taken in is taken in once more by whoever writes, so that it begins anew."""


class Checkpoints:
    """Counts what is committed, and has the log taken in after every so many."""

    def __init__(self, path: Path, is_damaged: Callable[[apsw.CorruptError], None]) -> None:
        self._path = path
        self._is_damaged = is_damaged
        self._commits = 0
        self._pages = 0
        self._connection: SqliteConnection | None = None
        self._at_work = threading.Lock()

    def count(self, writer: SqliteConnection) -> None:
        """Something was committed; whoever did it still keeps the others out."""
        self._commits += 1
        is_due = self._commits % CHECKPOINT_EVERY == 0 or self._pages > MOST_PAGES
        if not is_due or not self._at_work.acquire(blocking=False):
            return
        if self._pages > MOST_PAGES:
            self._take_in(writer)
            self._pages = 0
            self._at_work.release()
        else:
            threading.Thread(target=self._take_in_beside, name="segue-checkpoint", daemon=True).start()

    def close(self) -> None:
        """Wait for what is being done, and do nothing more."""
        self._at_work.acquire()
        if self._connection is not None:
            self._connection.handle.close()

    @property
    def connections(self) -> list[SqliteConnection]:
        return [] if self._connection is None else [self._connection]

    def _take_in_beside(self) -> None:
        try:
            self._connection = self._connection or SqliteConnection(self._path, writes=True)
            self._take_in(self._connection)
        except apsw.Error:
            return  # as below
        finally:
            self._at_work.release()

    def _take_in(self, connection: SqliteConnection) -> None:
        try:
            self._pages, _ = connection.handle.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.CorruptError as error:
            self._is_damaged(error)
        except apsw.Error:
            return  # somebody else is at it, or the disk is full: the commit stands, and the next one will tell
