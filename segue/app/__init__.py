"""The composition root: the only file that names concrete classes together."""

import os
from datetime import datetime
from pathlib import Path

from segue import config
from segue.config import Settings
from segue.core.errors import SchemaTooOld
from segue.core.ids import session_id
from segue.core.scope import OWNER_AT_CONSOLE
from segue.storage import guards
from segue.storage.engines import engine_at
from segue.storage.patience import PATIENCE
from segue.storage.store import SqlStore
from segue.upkeep.settling import settle, waiting_folder


def settings() -> Settings:
    """The settings of this machine and user."""
    return config.from_environment()


def open_store(
    path: str | Path | None = None,
    *,
    read_only: bool = False,
    chosen: Settings | None = None,
    patience: float = PATIENCE,
) -> SqlStore:
    """The store at a path or a server's address, or the one of the home folder, which must be ours."""
    if path is not None:
        return SqlStore(engine_at(path, read_only=read_only))
    chosen = chosen or settings()
    if read_only and chosen.home.exists():
        guards.check_folder(chosen.home)
    elif not read_only:
        guards.make_private_folder(chosen.home)
    store = SqlStore(engine_at(chosen.database_at, read_only=read_only), patience)
    if not read_only:
        settle(store, chosen.home)
    return store


def has_store(chosen: Settings) -> bool:
    """False when nothing was ever stored in the home. A database on a server is taken to be there."""
    return chosen.is_on_server or chosen.database_path.exists()


def open_for_reading(chosen: Settings | None = None) -> SqlStore:
    """The store of the home folder for a command that only looks; brought up to date first if need be.

    Where there is none yet none is made: the command looks at an empty one.
    """
    chosen = chosen or settings()
    if not has_store(chosen):
        from segue.app.empty_store import EmptyStore  # slow to load, and only a new user needs it

        if os.path.lexists(chosen.home):
            guards.check_folder(chosen.home)
        return EmptyStore()
    try:
        store = open_store(read_only=True, chosen=chosen)
    except SchemaTooOld:
        return open_store(chosen=chosen)
    if store.read(OWNER_AT_CONSOLE, waiting_folder) is None:
        return store
    store.close()
    return open_store(chosen=chosen)


def new_session_id() -> str:
    """An id nobody has yet."""
    return session_id(datetime.now().astimezone(), os.urandom(4).hex())
