"""A damaged or incomplete database file, mended in one transaction."""

from collections.abc import Callable, Collection
from pathlib import Path

from segue.storage.connection import SqliteConnection
from segue.storage.examining import Gap
from segue.storage.faults import our_errors
from segue.storage.salvaging import Salvaged, salvage
from segue.storage.schema import declare
from segue.storage.sqlite import SqliteEngine


def complete_schema(path: Path, missing: Collection[Gap]) -> None:
    """Declare what is missing, and make anew the indexes that are not what they should be."""
    with our_errors(path):
        connection = SqliteConnection(path, writes=True)
        try:
            with connection.transaction("BEGIN IMMEDIATE"):
                for gap in missing:
                    if gap.wrong_index:
                        connection.run(f"DROP INDEX IF EXISTS {gap.wrong_index}")
                declare(connection)
                if len(connection.rows("SELECT version FROM schema_version")) != 1:
                    connection.run("DELETE FROM schema_version")
                    # Every later step runs once more when the file is opened; each may.
                    connection.run("INSERT INTO schema_version (version) VALUES (1)")
        finally:
            connection.handle.close()
    SqliteEngine(path).close()


def rebuild_indexes(path: Path, names: Collection[str]) -> None:
    """Make indexes anew from the tables, which are the truth."""
    with our_errors(path):
        connection = SqliteConnection(path, writes=True)
        try:
            with connection.transaction("BEGIN IMMEDIATE"):
                for name in names:
                    connection.run(f'REINDEX "{name}"')
        finally:
            connection.handle.close()


def replace_with_salvage(path: Path, copy: Path, work: Path, advance: Callable[[int], object] = bool) -> Salvaged:
    """Keep a copy of a damaged file page by page, then make the file what can still be read of it."""
    engine = SqliteEngine(path)
    try:
        engine.copy_to(copy)
        salvaged = _salvaged(copy, work, advance)
        engine.replace_with(work)
    finally:
        engine.close()
    return salvaged


def _salvaged(copy: Path, work: Path, advance: Callable[[int], object]) -> Salvaged:
    with our_errors(copy):
        source = SqliteConnection(copy, writes=False)
        try:
            return salvage(source, work, advance)
        finally:
            source.handle.close(force=True)  # it has heard of the damage, and would only repeat it
