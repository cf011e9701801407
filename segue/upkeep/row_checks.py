"""Whether the rows fit together, and with the files beside the database."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from segue.core.attachments import kept_in, place_of
from segue.core.errors import Invalid
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions import mending
from segue.upkeep import archive
from segue.upkeep.database_checks import find_last_backup
from segue.upkeep.findings import Finding, Patient

T = TypeVar("T")

_SHOWN = 3
_ATTACHMENTS = "attachments"


class Lost(NamedTuple):
    """A file that a message needs and that is not there."""

    session_id: str
    seq: int
    digest: str


def check_orphans(patient: Patient) -> list[Finding]:
    found = []
    if orphans := _read(patient, lambda tx: tx.health.orphans()):
        messages = count(sum(one.messages for one in orphans), "message")
        found.append(
            Finding(
                f"{messages} belong to no session: {_some([one.session_id for one in orphans])}.",
                "`segue doctor --fix` gives them one of the same id, from the source 'recovered'.",
                partial(_adopt, patient),
            )
        )
    if tags := _read(patient, lambda tx: tx.health.stray_tags()):
        found.append(
            Finding(
                f"{count(tags, 'tag')} belong to no session.",
                "`segue doctor --fix` removes them.",
                partial(_remove_tags, patient),
            )
        )
    return found


def check_counters(patient: Patient) -> list[Finding]:
    wrong = [one.session_id for one in _read(patient, lambda tx: tx.health.miscounts())]
    if not wrong:
        return []
    return [
        Finding(
            f"The counters of {count(len(wrong), 'session')} do not say what is there: {_some(wrong)}.",
            "`segue doctor --fix` counts anew.",
            partial(_recount, patient),
        )
    ]


def check_usage(patient: Patient) -> list[Finding]:
    unnoted = _read(patient, lambda tx: tx.health.unnoted())
    if not unnoted:
        return []
    return [
        Finding(
            f"What {count(len(unnoted), 'session')} used is not what is noted of the calls: {_some(unnoted)}.",
            "`segue doctor --fix` adds an entry for the difference to each.",
            partial(_note_usage, patient),
        )
    ]


def check_attachments(patient: Patient) -> list[Finding]:
    lost = {one.digest: one for one in _read(patient, partial(_lost, home=patient.home))}
    backup, kept = _last_backup(patient) if lost else (None, set())
    return [_missing(patient, one, backup if _place(one) in kept else None) for one in lost.values()]


def _last_backup(patient: Patient) -> tuple[Path | None, set[str]]:
    """The last backup and the names of what it holds; one that cannot be read holds nothing."""
    made = find_last_backup(patient)
    if made is None:
        return None, set()
    try:
        return Path(made.path), set(archive.read_contents(Path(made.path)).files)
    except Invalid:
        return None, set()


def _missing(patient: Patient, lost: Lost, backup: Path | None) -> Finding:
    says = f"An attachment of message {lost.seq} in {lost.session_id} is not there: {_place(lost)}."
    if backup is None:
        return Finding(says, "Put the file back, or restore a backup that has it.")
    return Finding(says, f"`segue doctor --fix` takes it from {backup}.", partial(_take, patient, lost, backup))


def _lost(tx: Transaction, home: Path) -> list[Lost]:
    needed = (Lost(session, seq, one) for session, seq, listed in tx.health.attachments() for one in kept_in(listed))
    return [lost for lost in needed if not (home / _place(lost)).is_file()]


def _place(lost: Lost) -> str:
    return f"{_ATTACHMENTS}/{place_of(lost.digest)}"


def _adopt(patient: Patient) -> str:
    with patient.opened() as store:
        adopted = store.write(OWNER_AT_CONSOLE, mending.adopt_orphans)
    return f"{count(len(adopted), 'session')} made for them: {_some(adopted)}."


def _remove_tags(patient: Patient) -> str:
    with patient.opened() as store:
        store.write(OWNER_AT_CONSOLE, lambda tx: tx.health.remove_stray_tags())
    return "They are gone."


def _recount(patient: Patient) -> str:
    with patient.opened() as store:
        counted = store.write(OWNER_AT_CONSOLE, mending.recount_sessions)
    return f"{count(len(counted), 'session')} counted anew."


def _note_usage(patient: Patient) -> str:
    with patient.opened() as store:
        noted = store.write(OWNER_AT_CONSOLE, mending.note_usage)
    return f"{count(len(noted), 'session')} got an entry for it."


def _take(patient: Patient, lost: Lost, backup: Path) -> str:
    if not archive.take_out(backup, _place(lost), patient.home):
        raise Invalid(f"{backup} has no sound copy of {_place(lost)}.")
    return f"{_place(lost)} is back."


def _read(patient: Patient, work: Callable[[Transaction], T]) -> T:
    with patient.opened(read_only=True) as store:
        return store.read(OWNER_AT_CONSOLE, work)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
