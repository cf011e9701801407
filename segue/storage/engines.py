"""Which engine a database needs, told by where it is."""

from pathlib import Path

from segue.core.errors import StoreError
from segue.core.places import is_address
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine


class PostgresMissing(StoreError):
    def __init__(self) -> None:
        super().__init__("PostgreSQL needs psycopg; install it with `pip install 'segue[postgres]'`.")


def engine_at(place: str | Path, *, read_only: bool = False) -> Engine:
    """The database in a file, or at a server's address."""
    if not is_address(str(place)):
        return SqliteEngine(Path(place), read_only=read_only)
    try:
        from segue.storage.postgres import PostgresEngine  # slow to load, and an extra
    except ImportError:
        raise PostgresMissing from None
    return PostgresEngine(str(place), read_only=read_only)
