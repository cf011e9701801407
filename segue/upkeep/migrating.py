"""Everything from one database to another, compared row by row at the end.

A copy says of itself whose copy it is, while it is made and when it is complete. One that nobody has changed since is
brought up to date by the same command; anything else that lies there is only replaced when somebody says so.
"""

import hashlib
import json
import socket
import uuid
from collections.abc import Callable
from typing import NamedTuple

from segue.core.errors import Invalid, StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Transaction
from segue.sessions import listing
from segue.storage.copying import COPIED, PROBE, Contents
from segue.storage.meta import COPYING
from segue.storage.store import SqlStore

Advance = Callable[[int], object]


class Differs(StoreError):
    def __init__(self, tables: list[str]) -> None:
        super().__init__(
            f"Somebody wrote while {', '.join(tables)} was copied; stop other programs, and the same command brings it."
        )


class Compared(NamedTuple):
    """A complete copy."""

    contents: list[Contents]
    writable_tables: int
    """How many tables took a new row, which was taken back."""


class Held(NamedTuple):
    sessions: int
    messages: int


def held(store: SqlStore) -> Held:
    return store.read(OWNER_AT_CONSOLE, _held)


def check_apart(source: SqlStore, target: SqlStore) -> None:
    """Refuse to copy a database into itself, whatever it is called here and there."""
    probe = uuid.uuid4().hex
    target.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.set(PROBE, probe))
    try:
        if source.read(OWNER_AT_CONSOLE, lambda tx: tx.meta.get(PROBE)) == probe:
            raise Invalid("Both addresses lead to the same database; name another one.")
    finally:
        target.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.remove(PROBE))


class End(NamedTuple):
    """One end of the way: a database, and what it is called."""

    store: SqlStore
    name: str

    def note(self, key: str) -> str | None:
        return self.store.read(OWNER_AT_CONSOLE, lambda tx: tx.meta.get(key))


def in_the_way(source: End, target: End) -> Held | None:
    """What a database holds that is no copy of the source, not even a half, and not where the source came from."""
    if target.store.count_rows() == 0 or target.note(COPYING) == _named(source.name):
        return None
    notes = [(target.note(COPIED), source.name), (source.note(COPIED), target.name)]
    if any(note is not None for note, _ in notes):
        digest = _digest(target.store.contents())
        if any(note == _copied(name, digest) for note, name in notes):
            return None  # nobody has changed it since
    return held(target.store)


def migrate(source: SqlStore, target: SqlStore, name: str, advance: Advance = bool) -> Compared:
    """Make the target what the source is; what both hold, once it is the same and takes new rows."""
    target.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.set(COPYING, _named(name)))
    source.copy_rows_to(target, advance)
    before, after = source.contents(advance), target.contents(advance)
    if different := [one.table for one, other in zip(before, after, strict=True) if one != other]:
        raise Differs(different)
    target.index_all()
    writable_tables = target.probe_writes()
    target.write(OWNER_AT_CONSOLE, _complete, _copied(name, _digest(after)))
    return Compared(after, writable_tables)


def _complete(tx: Transaction, note: str) -> None:
    tx.meta.set(COPIED, note)
    tx.meta.remove(COPYING)


def _copied(name: str, digest: str) -> str:
    return json.dumps([_named(name), digest])


def _named(place: str) -> str:
    """A place as another machine would not call its own."""
    return f"{place} of {socket.gethostname()}"


def _digest(contents: list[Contents]) -> str:
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def _held(tx: Transaction) -> Held:
    stats = listing.stats(tx)
    return Held(stats.sessions, stats.messages)
