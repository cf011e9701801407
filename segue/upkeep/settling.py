"""The end of a restore: files that wait for the database are put in place by whoever opens the home next."""

from pathlib import Path

from segue.core.errors import StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store, Transaction
from segue.storage.meta import COPYING

RESTORING = "upkeep:restoring"
"""Where a restored database says which folder of the home its files wait in."""


def waiting_folder(tx: Transaction) -> str | None:
    return tx.meta.get(RESTORING)


def settle(store: Store, home: Path) -> None:
    """Finish a restore whose database has changed already; one process at a time, and again if need be.

    A database that somebody works with is no half copy of another any more, even if it was to become one.
    """
    folder, copying = store.read(OWNER_AT_CONSOLE, lambda tx: (waiting_folder(tx), tx.meta.get(COPYING)))
    if folder is not None:
        store.write(OWNER_AT_CONSOLE, _settle, home)
    if copying is not None:
        store.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.remove(COPYING))


def _settle(tx: Transaction, home: Path) -> None:
    from segue.upkeep.placing import place_files  # most homes were never restored

    if (name := waiting_folder(tx)) is None:
        return
    try:
        place_files(home, name)
    except OSError as error:
        raise StoreError(f"A restore could not be finished in {home}: {error.strerror} ({error.filename}).") from error
    tx.meta.remove(RESTORING)
