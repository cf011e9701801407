"""A database file that no store has open: whose it is, how old, whether it is sound; and a word left in it."""

from pathlib import Path

from segue.core.errors import StoreCorrupt
from segue.storage.connection import SqliteConnection, looking_at
from segue.storage.examining import Counts, complaints, counts
from segue.storage.faults import our_errors
from segue.storage.ownership import APPLICATION_ID


def is_ours(file: Path) -> bool:
    with our_errors(file), looking_at(file) as connection:
        return connection.value("PRAGMA application_id") == APPLICATION_ID


def schema_of(file: Path) -> int:
    with our_errors(file), looking_at(file) as connection:
        return int(str(connection.value("SELECT version FROM schema_version")))


def sound_counts(file: Path) -> Counts:
    """How much is in a file, every page of which is sound."""
    with our_errors(file), looking_at(file) as connection:
        if found := complaints(connection):
            raise StoreCorrupt(f"The database is damaged ({found[0].says}); `segue doctor` says what can be done.")
        return counts(connection)


def leave_word(file: Path, key: str, value: str) -> None:
    """Let whoever opens the file next find something said there."""
    with our_errors(file):
        connection = SqliteConnection(file, writes=True)
        try:
            sql = "INSERT OR REPLACE INTO state_meta (key, value) VALUES (:key, :value)"
            connection.run(sql, {"key": key, "value": value})
        finally:
            connection.handle.close()
