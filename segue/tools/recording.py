"""The last of what a command says, in a file that never grows beyond its limit.

Its first line says how many bytes came before those that follow, so that whoever has read a part finds the place again.
A file that has become too long is replaced by a shorter one as a whole: who reads it sees the one or the other.
"""

import os
from typing import NamedTuple

KEPT = 1_000_000
"""Bytes of the end that are always there; up to twice as many are kept."""
_WIDTH = 15
_HEADER = b"%%0%dd bytes before this were left out\n" % _WIDTH
_HEADER_LENGTH = len(_HEADER % 0)


class Recorded(NamedTuple):
    """What a file holds."""

    left_out: int
    """How many bytes came before."""
    rest: bytes


class Record:
    """Writes a file. What cannot be written is lost, and the command goes on."""

    def __init__(self, path: str, kept: int = KEPT) -> None:
        self._path = path
        self._kept = kept
        self._waiting = bytearray()
        self._heard = 0
        self._file: int | None = None
        self._left_out = self._held = 0  # bytes before the file, and in it behind its first line

    @property
    def is_behind(self) -> bool:
        """Whether something was heard that is not in the file."""
        return bool(self._waiting)

    def hear(self, data: bytes) -> None:
        """Take in what a command says; of a flood only the end is remembered."""
        self._heard += len(data)
        self._waiting += data
        if len(self._waiting) > 2 * self._kept:
            del self._waiting[: -self._kept]

    def write(self) -> None:
        """Bring the file up to date."""
        is_whole = self._heard - len(self._waiting) == self._left_out + self._held
        try:
            if self._file is not None and is_whole and self._held + len(self._waiting) <= 2 * self._kept:
                self._held += os.write(self._file, self._waiting)
            else:
                self._begin_again(self._before() if is_whole else b"")
        except OSError:
            pass  # the disk is full or gone, and what is heard next tries again
        self._waiting.clear()

    def close(self) -> None:
        self.write()
        self._let_go()

    def _before(self) -> bytes:
        return b"" if self._file is None else os.pread(self._file, self._held, _HEADER_LENGTH)

    def _begin_again(self, before: bytes) -> None:
        rest = (before + bytes(self._waiting))[-self._kept :]
        left_out = self._heard - len(rest)
        file = _begun(self._path, left_out, rest)
        self._let_go()
        self._file, self._left_out, self._held = file, left_out, len(rest)

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_record(path: str | os.PathLike[str]) -> Recorded:
    """What there is now; nothing when there is no such file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - whatever loads this is in a hurry
            header = file.read(_HEADER_LENGTH)
            return Recorded(int(header[:_WIDTH] or 0), file.read())
    except (FileNotFoundError, ValueError):
        return Recorded(0, b"")


def _begun(path: str, left_out: int, rest: bytes) -> int:
    part = f"{path}.part"
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(part, flags, 0o600)
    try:
        os.write(file, _HEADER % left_out + rest)
        os.replace(part, path)  # noqa: PTH105
    except OSError:
        os.close(file)
        raise
    return file
