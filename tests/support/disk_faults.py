"""A disk that fails the so many-th thing it is asked to do: once, or until somebody mends it."""

from enum import Enum

import apsw
from power import Disk
from told_files import Change, Kind, begun

from segue.core.errors import StoreError, StoreFault, StoreFull

FAILING = {
    Kind.WRITE: apsw.SQLITE_IOERR_WRITE,
    Kind.SYNC: apsw.SQLITE_IOERR_FSYNC,
    Kind.TRUNCATE: apsw.SQLITE_IOERR_TRUNCATE,
}
"""What can fail, and how SQLite says so."""


class Fault(Enum):
    """What is wrong with the disk, whether it stays so, and what the store says of it."""

    FULL_ONCE = (False, False, StoreFull)
    FULL = (False, True, StoreFull)
    FAILS_ONCE = (True, False, StoreFault)
    FAILS = (True, True, StoreFault)

    def __init__(self, is_broken: bool, is_lasting: bool, said: type[StoreError]) -> None:
        self.is_broken = is_broken
        self.is_lasting = is_lasting
        self.said = said

    def error(self, change: Change) -> apsw.Error:
        if not self.is_broken:
            return apsw.FullError("the disk is full")
        error = apsw.IOError("the disk failed")
        vars(error).update(result=apsw.SQLITE_IOERR, extendedresult=FAILING[change.kind])
        return error


class FaultyDisk:
    """Works until it is told to fail."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._fault: Fault | None = None
        self._left = 0
        self.failed: Kind | None = None
        """What failed first."""

    def fail(self, nth: int, fault: Fault) -> None:
        """From the so many-th change on that can fail."""
        self._fault, self._left, self.failed = fault, nth, None

    def mend(self) -> None:
        self._fault = None

    def told(self, change: Change) -> None:
        if self._fault is None or change.kind not in FAILING:
            self.disk.take(change)
            return
        self._left -= 1
        if self._left > 0 or (self._left < 0 and not self._fault.is_lasting):
            self.disk.take(change)
            return
        self.failed = self.failed or change.kind
        if change.kind is Kind.WRITE:
            self.disk.take(change._replace(data=begun(change.data)))
        if change.kind is Kind.SYNC:
            self.disk.fail_to_sync(change.name)
        raise self._fault.error(change)
