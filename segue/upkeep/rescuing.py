"""A home made ready for a restore: what is there is kept, in whatever state it is."""

import time
from pathlib import Path

from segue.core.errors import NoDatabase, StoreCorrupt
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.sessions import listing
from segue.sessions.discarding import trash_before
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.upkeep.archive import FOLDERS
from segue.upkeep.backups import back_up
from segue.upkeep.settling import settle

KEPT = "backups"
"""The folder of the home where copies go that nobody asked for."""


def open_or_set_aside(database: Path, now: float) -> tuple[SqlStore, Path | None]:
    """The store; where not even its first page can be read, a new one, and where the damaged file is now."""
    try:
        return SqlStore(SqliteEngine(database)), None
    except (NoDatabase, StoreCorrupt):
        aside = kept(database.parent, f"damaged-{stamp(now)}.db")
        for suffix in ("-wal", "-shm", ""):
            file = database.with_name(database.name + suffix)
            if file.exists():
                file.rename(aside.with_name(aside.name + suffix))
        return SqlStore(SqliteEngine(database)), aside


def describe(store: SqlStore, home: Path) -> str:
    """What is in a home, in a few words; nothing when there is nothing to lose."""
    try:
        settle(store, home)
        found = store.read(OWNER_AT_CONSOLE, listing.stats).sessions + len(store.read(OWNER_AT_CONSOLE, trash_before))
    except StoreCorrupt:
        return "what the damaged database holds"
    has_files = any(path.is_file() for name in FOLDERS for path in (home / name).rglob("*"))
    return count(found, "session") if found or has_files else ""


def keep_copy(store: SqlStore, home: Path, *, now: float, program: str) -> Path:
    """A copy of the home as it is: a backup, or page by page when it is too damaged for one."""
    target = kept(home, f"before-restore-{stamp(now)}.zip")
    try:
        back_up(store, home, target, now=now, program=program)
    except StoreCorrupt:
        target = target.with_name(f"damaged-{stamp(now)}.db")
        store.copy_to(target)
    return target


def kept(home: Path, name: str) -> Path:
    """Where a copy of that name goes."""
    folder = home / KEPT
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / name


def stamp(now: float) -> str:
    """A moment as part of a file's name."""
    return time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
