"""A home as one verified file, and back.

Backing up: the database is copied as it is at one moment, beside any writer, and looked over before it is packed; the
archive is read to its end before it takes the place of another.

Restoring: the database changes in one transaction, which also says where the other files wait. Before it, the home is
the old one; after it, the new one: whoever opens the home next puts the waiting files in place. So a restore that is
killed at any line leaves one home or the other.
"""

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from segue.config import masked
from segue.core.errors import Invalid, StoreCorrupt, StoreError, unwritten
from segue.core.redaction import redact
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Transaction
from segue.sessions.retaining import forget_announcements
from segue.storage.examining import Counts
from segue.storage.faults import LAST_BACKUP
from segue.storage.ownership import check_age
from segue.storage.resting import is_ours, leave_word, schema_of, sound_counts
from segue.storage.schema import SCHEMA_VERSION
from segue.storage.store import SqlStore
from segue.upkeep import archive
from segue.upkeep.archive import CONFIG, DATABASE, FOLDERS, Advance, Contents
from segue.upkeep.placing import check_places
from segue.upkeep.settling import RESTORING, settle
from segue.upkeep.staging import Staging, remove_abandoned, sync_folder

_DATABASE = re.compile(r"(?m)^(database\s*:)")
_LEFT_OUT = r"# Where the backup was made. What is restored goes into the database that is used here.\n# \1"


class LastBackup(NamedTuple):
    path: str
    made_at: float


def back_up(
    store: SqlStore, home: Path, target: Path, *, now: float, program: str, advance: Advance = bool
) -> Contents:
    """Write a verified backup of a home to a file, and remember where it is."""
    contents = pack_home(store, home, target, now=now, program=program, advance=advance)
    with suppress(StoreError):  # a home that can only be read cannot remember, but can be backed up
        _remember(store, target, now)
    return contents


def pack_home(
    store: SqlStore, home: Path, target: Path, *, now: float, program: str, advance: Advance = bool
) -> Contents:
    """Write a verified backup of a home to a file, which appears only when it is complete. Changes nothing else."""
    try:
        remove_abandoned(target.parent)
        with Staging(target.parent) as staged:
            copy, part = staged.folder / DATABASE, staged.folder / "backup.zip"
            store.copy_to(copy)
            contents = Contents(now, program, schema_of(copy), *sound_counts(copy), files={})
            files = {DATABASE: copy, **_config(home, staged.folder), **_files(home)}
            with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "wb") as opened:
                contents = archive.pack(opened, contents, files, advance)
                opened.flush()
                os.fsync(opened.fileno())
            if archive.verify(part, advance) != contents:
                raise StoreCorrupt(f"{target} did not come back from the disk as it was written; nothing was replaced.")
            part.replace(target)
            sync_folder(target.parent)
    except OSError as error:
        raise unwritten(target, error) from error
    return contents


def check_backup(source: Path, folder: Path, advance: Advance = bool) -> Contents:
    """Unpack a backup into an empty folder, and look at everything in it."""
    contents = archive.unpack(source, folder, advance)
    database = folder / DATABASE
    if not is_ours(database):
        raise Invalid(f"{source} holds another program's database; nothing was changed.")
    check_age(schema_of(database), SCHEMA_VERSION, source)
    if sound_counts(database) != Counts(contents.sessions, contents.messages):
        raise Invalid(f"{source} holds another number of messages than it says; nothing was changed.")
    return contents


def restore(
    store: SqlStore, home: Path, source: Path, *, keep: Callable[[], object] = bool, advance: Advance = bool
) -> Contents:
    """Make a home what a backup holds. `keep` is called when nobody can add any more to what is there."""
    check_places(home)
    remove_abandoned(home)
    with Staging(home) as staged:
        contents = check_backup(source, staged.folder, advance)
        for name in FOLDERS:
            (staged.folder / name).mkdir(mode=0o700, exist_ok=True)
        leave_word(staged.folder / DATABASE, RESTORING, staged.folder.name)
        sync_folder(staged.folder)
        sync_folder(home)
        if not store.reads_beside_writer:
            keep()
            keep = bool
        staged.hand_over()
        store.replace_with(staged.folder / DATABASE, advance, keep)
        settle(store, home)
    store.write(OWNER_AT_CONSOLE, forget_announcements)  # nobody here has heard them
    _remember(store, source, contents.made_at)
    return contents


def remembered_backup(tx: Transaction) -> LastBackup | None:
    """The last backup that a database knows of."""
    said = tx.meta.get(LAST_BACKUP)
    try:
        file, made_at = json.loads(said or "")
    except ValueError:
        return None
    return LastBackup(str(file), float(made_at))


def _remember(store: SqlStore, file: Path, made_at: float) -> None:
    said = json.dumps([str(file.absolute()), made_at])

    def work(tx: Transaction) -> None:
        tx.meta.set(LAST_BACKUP, said)

    store.write(OWNER_AT_CONSOLE, work)


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
    copy.write_text(_DATABASE.sub(_LEFT_OUT, redact(masked(text))), "utf-8")
    return {CONFIG: copy}
