"""Driver errors become ours here and nowhere else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from segue.core.errors import (
    Invalid,
    NoDatabase,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFault,
    StoreFull,
    StoreReadOnly,
)
from segue.storage.connection import looking_at

LAST_BACKUP = "upkeep:last_backup"
"""Where a database says which backup was the last."""


@contextmanager
def our_errors(path: Path) -> Iterator[None]:
    """What the driver says about a file, in our words."""
    try:
        yield
    except apsw.Error as error:
        raise translated(error, path) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise Invalid(f"A value cannot be stored: {error}.") from error


def translated(error: apsw.Error, path: Path) -> StoreError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"Other processes have been writing to {path} for too long; try again.")
        case apsw.FullError():
            return StoreFull(f"The disk that holds {path} is full: nothing was written. Free some space and try again.")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            return StoreReadOnly(f"{path} cannot be written: its disk or folder is read-only. Nothing was changed.")
        case apsw.NotADBError():
            return NoDatabase(f"{path} is no database; it was left alone. Choose another path, or another SEGUE_HOME.")
        case apsw.CorruptError():
            return StoreCorrupt(
                f"{path} is damaged, so nothing more is written to it. `segue doctor --fix` saves what can be read, and"
                f" `segue restore {last_backup(path) or 'FILE'}` brings back the last backup."
            )
        case apsw.IOError():
            return StoreFault(f"The disk that holds {path} failed ({error}); what had been committed is kept.")
    return StoreError(f"The database {path} refused: {error}.")


def last_backup(path: Path) -> str | None:
    """The file that the last backup was written to, as far as a database can still say so."""
    said = last_backup_of(path)
    return said[0] if said else None


def last_backup_of(path: Path) -> tuple[str, float] | None:
    """The same with its moment."""
    try:
        with looking_at(path) as connection:
            rows = connection.rows("SELECT value FROM state_meta WHERE key = :key", {"key": LAST_BACKUP})
            file, made_at = json.loads(rows[0][0])
            return str(file), float(made_at)
    except (apsw.Error, ValueError, TypeError, LookupError):
        return None
