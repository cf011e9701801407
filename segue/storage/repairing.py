"""A damaged or incomplete database file, mended in one transaction."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from segue.core.errors import StoreBusy
from segue.storage.connection import WRITING, SqliteConnection
from segue.storage.examining import Gap
from segue.storage.faults import our_errors
from segue.storage.ownership import APPLICATION_ID
from segue.storage.salvaging import Salvaged, salvage
from segue.storage.schema import declare
from segue.storage.search_index import create_index
from segue.storage.sqlite import SqliteEngine

_ATTEMPTS = 5


def complete_schema(path: Path, missing: Collection[Gap]) -> None:
    """Declare what is missing, and make anew the indexes that are not what they should be."""
    with our_errors(path):
        connection = SqliteConnection(path, writes=True)
        try:
            with connection.transaction(WRITING):
                for gap in missing:
                    if gap.wrong_index:
                        connection.run(f"DROP INDEX IF EXISTS {gap.wrong_index}")
                declare(connection)
                create_index(connection)
                if len(connection.rows("SELECT version FROM schema_version")) != 1:
                    connection.run("DELETE FROM schema_version")
                    # Every later step runs once more when the file is opened; each may.
                    connection.run("INSERT INTO schema_version (version) VALUES (1)")
                connection.run(f"PRAGMA application_id={APPLICATION_ID}")
        finally:
            connection.handle.close()
    SqliteEngine(path).close()


def rebuild_indexes(path: Path, names: Collection[str]) -> None:
    """Make indexes anew from the tables, which are the truth."""
    with our_errors(path):
        connection = SqliteConnection(path, writes=True)
        try:
            with connection.transaction(WRITING):
                for name in names:
                    connection.run(f'REINDEX "{name}"')
        finally:
            connection.handle.close()


def replace_with_salvage(path: Path, copy: Path, work: Path, advance: Callable[[int], object] = bool) -> Salvaged:
    """Keep a copy of a damaged file page by page, then make the file what can still be read of it.

    Begun again when somebody has written meanwhile, so that nothing is left behind.
    """
    engine = SqliteEngine(path)
    watch = SqliteConnection(path, writes=False)
    try:
        for _ in range(_ATTEMPTS):
            before = watch.data_version()
            for file in (copy, work):
                file.unlink(missing_ok=True)
            engine.copy_to(copy)
            salvaged = _salvaged(copy, work, advance)
            try:
                engine.replace_with(work, under_lock=partial(_check_same, watch, before))
            except _Overtaken:
                continue
            return salvaged
        raise StoreBusy(f"Others keep writing to {path}; stop them, then try again.")
    finally:
        watch.handle.close(force=True)
        engine.close()


class _Overtaken(Exception):
    """Somebody wrote since the copy was made."""


def _check_same(watch: SqliteConnection, before: object) -> None:
    if watch.data_version() != before:
        raise _Overtaken


def _salvaged(copy: Path, work: Path, advance: Callable[[int], object]) -> Salvaged:
    with our_errors(copy):
        source = SqliteConnection(copy, writes=False)
        try:
            return salvage(source, work, advance)
        finally:
            source.handle.close(force=True)  # it has heard of the damage, and would only repeat it
