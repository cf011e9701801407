"""Whether the database file is ours, complete and sound."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from segue.core.errors import ForeignDatabase, NoDatabase, SchemaTooNew, StoreError
from segue.core.moments import DAY
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count, size
from segue.storage.connection import SqliteConnection, looking_at
from segue.storage.examining import Complaint, Damage, Gap, complaints, gaps, versions
from segue.storage.faults import last_backup, last_backup_of, our_errors
from segue.storage.ownership import check_age, is_ours
from segue.storage.repairing import complete_schema, rebuild_indexes, replace_with_salvage
from segue.storage.schema import SCHEMA_VERSION
from segue.storage.sqlite import SqliteEngine
from segue.upkeep.backups import LastBackup, remembered_backup
from segue.upkeep.findings import Finding, Patient, advice
from segue.upkeep.rescuing import kept, stamp
from segue.upkeep.staging import Staging

T = TypeVar("T")

_LARGE_LOG = 64_000_000  # bytes
_SHOWN = 3
_OLD_BACKUP = 30 * DAY


def check_ownership(patient: Patient) -> list[Finding]:
    """A file that is not ours, or of a newer program, is named, and never touched."""
    try:
        with our_errors(patient.database), looking_at(patient.database) as connection:
            if is_ours(connection, patient.database):
                check_age(max(versions(connection), default=0), SCHEMA_VERSION, patient.database)
    except NoDatabase:
        sentence = f"{patient.database} is no database any more."
        return [Finding(sentence, f"`segue restore {last_backup(patient.database) or 'FILE'}` brings a backup back.")]
    except ForeignDatabase:
        return [Finding(f"{patient.database} is another program's database.", "Move it away, or set SEGUE_HOME.")]
    except SchemaTooNew as error:
        return [Finding(str(error), "Nothing in it was looked at.")]
    except StoreError as error:
        return [Finding(str(error), "Keep a copy of the folder before anything else.")]
    return []


def check_server(patient: Patient) -> list[Finding]:
    """Whether the server answers, and keeps people apart as well."""
    with patient.opened(read_only=True) as store:
        return [advice(notice, "docs/postgres.md says how.") for notice in store.notices]


def check_sequences(patient: Patient) -> list[Finding]:
    """Whether the server gives new rows ids that are free."""
    with patient.opened(read_only=True) as store:
        lagging = store.lagging_sequences()
    if not lagging:
        return []
    named = ", ".join(f"{one.table} (next id {one.next_id}, highest id {one.highest_id})" for one in lagging)
    return [
        Finding(
            f"Identity sequences are behind their rows, so that new rows are refused as duplicates: {named}.",
            "`segue doctor --fix` advances them; no row is touched.",
            partial(_advance_sequences, patient),
        )
    ]


def check_schema(patient: Patient) -> list[Finding]:
    missing = [] if patient.database.stat().st_size == 0 else _look(patient, gaps)  # an empty file is made when used
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


def check_search(patient: Patient) -> list[Finding]:
    """Whether everything that is in the index can be found through it."""
    with patient.opened(read_only=True) as store:
        state = store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())
        is_whole = state.is_well and store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.is_whole())
    if is_whole:
        return []
    return [
        Finding(
            "The search index is damaged; searching is slower, and may miss old messages.",
            "`segue doctor --fix` makes it anew from the messages.",
            partial(_index_anew, patient),
        )
    ]


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
    made = find_last_backup(patient)
    if made is None:
        return [advice("There is no backup yet.", "`segue backup FILE` writes one while everything goes on.")]
    if patient.now - made.made_at > _OLD_BACKUP:
        days = int((patient.now - made.made_at) // DAY)
        return [advice(f"The last backup is {days} days old: {made.path}.", "`segue backup FILE` writes a new one.")]
    return []


def find_last_backup(patient: Patient) -> LastBackup | None:
    """The last backup, also of a file that is damaged, as long as that much can be read."""
    if patient.is_on_server:
        with patient.opened(read_only=True) as store:
            return store.read(OWNER_AT_CONSOLE, remembered_backup)
    said = last_backup_of(patient.database)
    return LastBackup(*said) if said else None


def _damaged(patient: Patient, pages: list[Complaint]) -> Finding:
    remedy = (
        "`segue doctor --fix` saves every row that can be read, and keeps the damaged file;"
        f" `segue restore {last_backup(patient.database) or 'FILE'}` brings the last backup back instead."
    )
    says = f"The database file is damaged in {count(len(pages), 'place')}."
    return Finding(says, remedy, partial(_salvage, patient))


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


def _index_anew(patient: Patient) -> str:
    with patient.opened() as store:
        store.index_all(anew=True)
    return "Every message can be found again."


def _advance_sequences(patient: Patient) -> str:
    with patient.opened() as store:
        store.advance_sequences()
    return "New rows get free ids again."


def _take_in_log(database: Path) -> str:
    engine = SqliteEngine(database)
    try:
        engine.empty_log()
    finally:
        engine.close()
    return "The log is empty now."


def _look(patient: Patient, examine: Callable[[SqliteConnection], list[T]]) -> list[T]:
    with our_errors(patient.database), looking_at(patient.database) as connection:
        return examine(connection)
