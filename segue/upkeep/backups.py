"""A home as one verified file, and back.

Backing up: the database is copied as it is at one moment, beside any writer, and looked over before it is packed; the
archive is read to its end before it takes the place of another.

Restoring: the database changes in one transaction, which also says where the other files wait. Before it, the home is
the old one; after it, the new one: whoever opens the home next puts the waiting files in place. So a restore that is
killed at any line leaves one home or the other.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from segue.core.errors import Invalid, SchemaTooNew, StoreCorrupt
from segue.core.redaction import redact
from segue.core.scope import OWNER_AT_CONSOLE
from segue.storage.connection import SqliteConnection
from segue.storage.examining import Counts, complaints, counts
from segue.storage.faults import LAST_BACKUP, our_errors
from segue.storage.ownership import APPLICATION_ID
from segue.storage.schema import SCHEMA_VERSION
from segue.storage.store import SqlStore
from segue.upkeep import archive
from segue.upkeep.archive import CONFIG, DATABASE, FOLDERS, Contents
from segue.upkeep.settling import RESTORING, settle
from segue.upkeep.staging import Staging, remove_abandoned, sync_folder


class LastBackup(NamedTuple):
    path: str
    made_at: float


def back_up(
    store: SqlStore, home: Path, target: Path, *, now: float, program: str, advance: Callable[[int], object] = bool
) -> Contents:
    """Write a verified backup of a home to a file, which appears only when it is complete."""
    remove_abandoned(home)
    with Staging(home) as staged:
        copy = staged.folder / DATABASE
        store.copy_to(copy)
        files = {DATABASE: copy, **_config(home, staged.folder), **_files(home)}
        found = _sound(copy)
        schema = _schema(copy)
        with _appearing(target) as part:
            with part.open("r+b") as opened:
                contents = Contents(now, program, schema, *found, files={})
                contents = archive.pack(opened, contents, files, advance)
                opened.flush()
                os.fsync(opened.fileno())
            if archive.verify(part, advance) != contents:
                raise StoreCorrupt(f"{target} did not come back from the disk as it was written; nothing was replaced.")
    _remember(store, target, now)
    return contents


def restore(store: SqlStore, home: Path, source: Path, advance: Callable[[int], object] = bool) -> Contents:
    """Make a home what a backup holds."""
    remove_abandoned(home)
    with Staging(home) as staged:
        contents = archive.unpack(source, staged.folder, advance)
        database = staged.folder / DATABASE
        _check_is_ours(database, source)
        if _sound(database) != Counts(contents.sessions, contents.messages):
            raise Invalid(f"{source} holds another number of messages than it says; nothing was changed.")
        for name in FOLDERS:
            (staged.folder / name).mkdir(mode=0o700, exist_ok=True)
        _announce(database, staged.folder)
        sync_folder(staged.folder)
        sync_folder(home)
        staged.hand_over()
        store.replace_with(database, advance)
    settle(store, home)
    _remember(store, source, contents.made_at)
    return contents


def _remember(store: SqlStore, archive: Path, made_at: float) -> None:
    said = json.dumps([str(archive.absolute()), made_at])
    store.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.set(LAST_BACKUP, said))


def _files(home: Path) -> dict[str, Path]:
    """Everything of the home that is neither database nor configuration; links are nobody's files."""
    found = [path for name in FOLDERS for path in sorted((home / name).rglob("*"))]
    return {path.relative_to(home).as_posix(): path for path in found if path.is_file() and not path.is_symlink()}


def _config(home: Path, folder: Path) -> dict[str, Path]:
    """The configuration without its secrets."""
    try:
        text = (home / CONFIG).read_text("utf-8", "replace")
    except FileNotFoundError:
        return {}
    copy = folder / CONFIG
    copy.write_text(redact(text), "utf-8")
    return {CONFIG: copy}


def _sound(database: Path) -> Counts:
    with _looking_at(database) as connection:
        if found := complaints(connection):
            raise StoreCorrupt(f"The database is damaged ({found[0].says}); `segue doctor` says what can be done.")
        return counts(connection)


def _schema(database: Path) -> int:
    with _looking_at(database) as connection:
        return int(str(connection.value("SELECT version FROM schema_version")))


def _check_is_ours(database: Path, source: Path) -> None:
    with _looking_at(database) as connection:
        if connection.value("PRAGMA application_id") != APPLICATION_ID:
            raise Invalid(f"{source} holds another program's database; nothing was changed.")
    if _schema(database) > SCHEMA_VERSION:
        raise SchemaTooNew(f"{source} is a backup of a newer Segue; update Segue to use it.")


def _announce(database: Path, folder: Path) -> None:
    """Let the database itself say that files wait for it."""
    with our_errors(database):
        connection = SqliteConnection(database, writes=True)
        try:
            sql = "INSERT OR REPLACE INTO state_meta (key, value) VALUES (:key, :value)"
            connection.run(sql, {"key": RESTORING, "value": folder.name})
        finally:
            connection.handle.close()


@contextmanager
def _looking_at(database: Path) -> Iterator[SqliteConnection]:
    with our_errors(database):
        connection = SqliteConnection(database, writes=False)
        try:
            yield connection
        finally:
            connection.handle.close()


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A private file beside the target that takes its place when all went well."""
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        yield part
        part.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise Invalid(f"{target} could not be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)
