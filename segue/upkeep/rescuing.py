"""A home made ready for a restore: what is there is kept, in whatever state it is."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from segue.config import Settings
from segue.core.errors import NoDatabase, SchemaTooOld, StoreCorrupt
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.sessions import listing
from segue.sessions.discarding import trash_before
from segue.storage.engines import engine_at
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.upkeep.archive import FOLDERS
from segue.upkeep.backups import pack_home
from segue.upkeep.settling import settle

KEPT = "backups"
"""The folder of the home where copies go that nobody asked for."""
_DAMAGED = "what the damaged database holds"


def describe(settings: Settings) -> str:
    """What is in a home, in a few words; nothing when there is nothing to lose. Changes nothing."""
    found, home, database = 0, settings.home, settings.database_path
    if settings.is_on_server or database.exists():
        try:
            with SqlStore(engine_at(settings.database_at, read_only=True)) as store:
                found = store.read(OWNER_AT_CONSOLE, listing.stats).sessions
                found += len(store.read(OWNER_AT_CONSOLE, trash_before))
        except (NoDatabase, StoreCorrupt):
            return _DAMAGED if database.stat().st_size else ""
        except SchemaTooOld:
            if not settings.is_on_server:  # there, nothing was kept yet
                raise
    has_files = any(path.is_file() for name in FOLDERS for path in (home / name).rglob("*"))
    return count(found, "session") if found else "the files" if has_files else ""


def open_or_set_aside(settings: Settings, now: float) -> tuple[SqlStore, Path | None]:
    """The store; where not even its first page can be read, a new one, and where the damaged file is now."""
    home, database = settings.home, settings.database_path
    try:
        store = SqlStore(engine_at(settings.database_at))
    except (NoDatabase, StoreCorrupt):
        aside = kept(home, f"damaged-{stamp(now)}.db")
        for suffix in ("-wal", "-shm", ""):
            file = database.with_name(database.name + suffix)
            if file.exists():
                file.rename(aside.with_name(aside.name + suffix))
        _keep_memory(home, aside)
        return SqlStore(SqliteEngine(database)), aside
    with suppress(StoreCorrupt):  # too damaged to say whether anything waits: all of it is replaced
        settle(store, home)
    return store, None


def keep_copy(store: SqlStore, home: Path, *, now: float, program: str) -> Path:
    """A copy of the home as it is: a backup, or page by page when it is too damaged for one."""
    target = kept(home, f"before-restore-{stamp(now)}.zip")
    try:
        pack_home(store, home, target, now=now, program=program)
    except StoreCorrupt:
        target = kept(home, f"damaged-{stamp(now)}.db")
        store.copy_to(target)
        _keep_memory(home, target)
    return target


def kept(home: Path, name: str) -> Path:
    """Where a copy of that name goes."""
    folder = home / KEPT
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / name


def stamp(now: float) -> str:
    """A moment as part of a file's name that no other file has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{os.urandom(2).hex()}"


def _keep_memory(home: Path, beside: Path) -> None:
    if (home / "memory").is_dir():
        shutil.copytree(home / "memory", beside.with_name(f"{beside.name}.memory"), symlinks=True)
