"""Whether the database file is ours, complete and sound."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from segue.core.errors import ForeignDatabase, SegueError, StoreError
from segue.core.text import count, size
from segue.storage.connection import SqliteConnection
from segue.storage.examining import Complaint, Damage, Gap, complaints, gaps
from segue.storage.faults import LAST_BACKUP, our_errors
from segue.storage.ownership import is_ours
from segue.storage.repairing import complete_schema, rebuild_indexes, replace_with_salvage
from segue.storage.sqlite import SqliteEngine
from segue.upkeep.backups import LastBackup
from segue.upkeep.findings import Finding, Patient, advice
from segue.upkeep.rescuing import kept, stamp
from segue.upkeep.staging import Staging

T = TypeVar("T")

_LARGE_LOG = 64_000_000  # bytes
_SHOWN = 3
_OLD_BACKUP = 30 * 86400.0


def check_ownership(patient: Patient) -> list[Finding]:
    """A file that is not ours is named, and never opened for more than that."""
    try:
        with _opened(patient.database) as connection:
            is_ours(connection, patient.database)
    except ForeignDatabase as error:
        return [Finding(str(error), _way_back(patient, "Move the file away."))]
    except StoreError as error:
        return [Finding(str(error), _way_back(patient, "Keep a copy of the folder."))]
    return []


def check_schema(patient: Patient) -> list[Finding]:
    missing = _look(patient, gaps)
    if not missing:
        return []
    named = ", ".join(gap.what for gap in missing[:_SHOWN]) + (" and more" if len(missing) > _SHOWN else "")
    return [
        Finding(
            f"A change of the database was not finished: {named} is missing or wrong.",
            "`segue doctor --fix` finishes it.",
            partial(_complete, patient.database, missing),
        )
    ]


def check_integrity(patient: Patient) -> list[Finding]:
    """Every page, and every index against its table."""
    found = _look(patient, complaints)
    findings = []
    if indexes := sorted({one.where for one in found if one.damage is Damage.INDEX}):
        findings.append(
            Finding(
                f"The index {', '.join(indexes)} does not fit its table.",
                "`segue doctor --fix` makes it anew from the table; no message is touched.",
                partial(_reindex, patient.database, indexes),
            )
        )
    if pages := [one for one in found if one.damage is Damage.PAGE]:
        findings.append(_damaged(patient, pages))
    findings += [
        Finding(f"A row is not as it must be: {one.says}.", "Export what is there, and ask for help with that row.")
        for one in found
        if one.damage is Damage.ROW
    ]
    return findings


def check_log(patient: Patient) -> list[Finding]:
    log = patient.database.with_name(patient.database.name + "-wal")
    if not log.exists() or log.stat().st_size < _LARGE_LOG:
        return []
    return [
        Finding(
            f"{log} has grown to {size(log.stat().st_size)}: somebody read for too long, or a process died.",
            "`segue doctor --fix` takes it in.",
            partial(_take_in_log, patient.database),
        )
    ]


def check_backup(patient: Patient) -> list[Finding]:
    made = find_last_backup(patient.database)
    if made is None:
        return [advice("There is no backup yet.", "`segue backup FILE` writes one while everything goes on.")]
    if patient.now - made.made_at > _OLD_BACKUP:
        days = int((patient.now - made.made_at) // 86400)
        return [advice(f"The last backup is {days} days old: {made.path}.", "`segue backup FILE` writes a new one.")]
    return []


def find_last_backup(database: Path) -> LastBackup | None:
    """The last backup, also of a database that is damaged, as long as that much can be read."""
    with suppress(SegueError), _opened(database) as connection:
        rows = connection.rows("SELECT value FROM state_meta WHERE key = :key", {"key": LAST_BACKUP})
        return LastBackup(*json.loads(rows[0][0])) if rows else None
    return None


def _way_back(patient: Patient, first: str) -> str:
    made = find_last_backup(patient.database)
    return f"{first} `segue restore {made.path if made else 'FILE'}` brings the last backup back."


def _damaged(patient: Patient, pages: list[Complaint]) -> Finding:
    says = f"The file is damaged: {pages[0].says}{f' and {len(pages) - 1} more' if len(pages) > 1 else ''}."
    remedy = "`segue doctor --fix` saves every row that can be read, and keeps the damaged file."
    return Finding(says, f"{remedy} {_way_back(patient, 'Or:')}", partial(_salvage, patient))


def _complete(database: Path, missing: list[Gap]) -> str:
    complete_schema(database, missing)
    return "The database is complete now."


def _reindex(database: Path, indexes: list[str]) -> str:
    rebuild_indexes(database, indexes)
    return f"Made anew: {', '.join(indexes)}."


def _salvage(patient: Patient) -> str:
    copy = kept(patient.home, f"damaged-{stamp(patient.now)}.db")
    with Staging(patient.home) as staged:
        saved = replace_with_salvage(patient.database, copy, staged.folder / "salvaged.db")
    return f"{count(saved.rows, 'row')} saved, {count(saved.holes, 'gap')} left; the damaged file is {copy}."


def _take_in_log(database: Path) -> str:
    engine = SqliteEngine(database)
    try:
        engine.empty_log()
    finally:
        engine.close()
    return "The log is empty now."


def _look(patient: Patient, examine: Callable[[SqliteConnection], list[T]]) -> list[T]:
    with _opened(patient.database) as connection:
        return examine(connection)


@contextmanager
def _opened(database: Path) -> Iterator[SqliteConnection]:
    with our_errors(database):
        connection = SqliteConnection(database, writes=False)
        try:
            yield connection
        finally:
            connection.handle.close()
