"""SQLite's own files on the ordinary disk, and somebody who is told of every change before it is made."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import apsw

ORDINARY = apsw.vfs_names()[0]
_NAME = "told"
_OUTLASTING = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_BEFORE_ITS_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
"""Of these SQLite syncs the folder as well when it syncs them for the first time."""


class Kind(StrEnum):
    CREATE = "create"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    DELETE = "delete"


class Change(NamedTuple):
    """Something that is about to be done to a file."""

    kind: Kind
    name: str
    at: int = 0
    """Where it is written, or where the file ends from now on."""
    data: bytes = b""
    is_of_folder: bool = False
    """Whether the folder is synced with it."""


Told = Callable[[Change], object]
"""Raises an error of APSW if the change is to fail."""


class _File(apsw.VFSFile):
    def __init__(self, path: str | apsw.URIFilename, flags: list[int], told: Told) -> None:
        place = path if isinstance(path, str) else path.filename()
        is_new = not os.path.lexists(place)
        self._name = os.path.basename(place)
        self._told = told
        self._owes_folder = is_new and bool(flags[0] & _BEFORE_ITS_FOLDER)
        if is_new:
            told(Change(Kind.CREATE, self._name))
        super().__init__(ORDINARY, path, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        try:
            self._told(Change(Kind.WRITE, self._name, offset, bytes(data)))
        except apsw.Error:
            super().xWrite(begun(data), offset)
            raise
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._told(Change(Kind.TRUNCATE, self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Nothing is really synced: what would be left is for whoever is told to say."""
        self._told(Change(Kind.SYNC, self._name, is_of_folder=self._owes_folder))
        self._owes_folder = False


class _Files(apsw.VFS):
    def __init__(self, folder: Path, told: Told) -> None:
        super().__init__(_NAME, ORDINARY, makedefault=True)
        self._folder = os.path.realpath(folder)
        self._told = told

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        place = name.filename() if isinstance(name, apsw.URIFilename) else name
        if name is None or place is None or not flags[0] & _OUTLASTING or not self._is_here(place):
            return apsw.VFSFile(ORDINARY, name, flags)
        return _File(name, flags, self._told)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        if self._is_here(filename):
            self._told(Change(Kind.DELETE, os.path.basename(filename), is_of_folder=syncdir))
        super().xDelete(filename, syncdir)

    def _is_here(self, path: str) -> bool:
        return os.path.realpath(os.path.dirname(path)) == self._folder


def begun(data: bytes) -> bytes:
    """What a write that fails has written."""
    return bytes(data[: len(data) // 2])


_made: list[_Files] = []
"""None is ever gone: a connection that somebody forgot to close would still ask it."""


@contextmanager
def told_of(folder: Path, told: Told) -> Iterator[None]:
    """Every database that is opened in a folder meanwhile, by whomever; all are closed before this ends."""
    _made.append(files := _Files(folder, told))
    try:
        yield
    finally:
        files.unregister()
