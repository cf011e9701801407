"""What was committed goes from the log into the file now and then, beside whoever writes."""

import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from segue.storage.connection import SqliteConnection

CHECKPOINT_EVERY = 50
MOST_PAGES = 1_000
"""A longer log is taken in by whoever writes, so that nobody adds to it meanwhile and it begins anew."""


class Checkpoints:
    """Counts what is committed, and has the log taken in after every so many."""

    def __init__(self, path: Path, note_damage: Callable[[apsw.CorruptError], None]) -> None:
        self._path = path
        self._note_damage = note_damage
        self._commits = 0
        self._pages = 0
        self._connection: SqliteConnection | None = None
        self._at_work = threading.Lock()

    def watch(self, writer: SqliteConnection) -> None:
        """Be told how long the log is; SQLite itself takes nothing in from now on."""
        writer.handle.set_wal_hook(self._note_length)

    def count(self, writer: SqliteConnection) -> None:
        """Something was committed; whoever did it still keeps the others out. Nothing here makes that undone."""
        self._commits += 1
        is_long = self._pages > MOST_PAGES
        if not (is_long or self._commits % CHECKPOINT_EVERY == 0) or not self._at_work.acquire(blocking=False):
            return
        if not is_long:
            beside = threading.Thread(target=self._take_in_beside, name="segue-checkpoint", daemon=True)
            try:
                beside.start()
            except RuntimeError:  # there can be no more threads
                pass
            else:
                return
        self._take_in(writer)
        self._at_work.release()

    def _note_length(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

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
            connection.handle.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.CorruptError as error:
            self._note_damage(error)
        except apsw.Error:
            return  # somebody else is at it, or the disk is full: the commit stands, and the next one will tell
