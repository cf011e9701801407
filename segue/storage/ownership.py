"""Whose database file it is. Only our own is ever touched."""

from pathlib import Path

from segue.core.errors import ForeignDatabase, SchemaTooNew
from segue.storage.connection import SqliteConnection

APPLICATION_ID = 0x5365_6775  # "Segu"

_WHOSE = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)"


def is_ours(connection: SqliteConnection, path: Path) -> bool:
    """Whether a file is ours, and not just empty; another program's is refused."""
    owner, tables = connection.rows(_WHOSE)[0]
    if owner == APPLICATION_ID:
        return True
    if owner or tables:
        raise ForeignDatabase(
            f"{path} is another program's database; it was left alone. Choose another path, or another SEGUE_HOME."
        )
    return False


def check_age(version: int, known: int, path: Path | str) -> None:
    """Refuse a database that a newer program wrote."""
    if version > known:
        raise SchemaTooNew(
            f"{path} was written by a newer Segue (schema {version}, this program knows {known});"
            " update Segue to use it."
        )
