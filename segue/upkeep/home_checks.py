"""Whether the folder, its files and the machine around them are as they must be."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from segue import config
from segue.config.settings import HISTORY_FILE, SERVICE_LOG
from segue.config.zones import is_known
from segue.core.errors import HomeRefused, StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import size
from segue.storage import guards
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.upkeep.archive import CONFIG, DATABASE, FOLDERS
from segue.upkeep.crashes import LOGS
from segue.upkeep.findings import Finding, Patient, advice
from segue.upkeep.placing import RESTORED_CONFIG
from segue.upkeep.rescuing import KEPT
from segue.upkeep.settling import settle, waiting_folder
from segue.upkeep.staging import abandoned, is_staging, remove_abandoned

LEAST_SPACE = 100_000_000  # bytes
_ENVIRONMENT = "environment"
"""What a service reads; its secrets are in no backup on purpose."""
_PLATFORMS = "platforms"
"""What only adapters understand. The keys of a device are of that machine, and in no backup on purpose."""
_COMPILED = "__pycache__"
"""What Python makes of an agent of the owner's own that lies in the home."""
_OURS = {
    CONFIG,
    _ENVIRONMENT,
    RESTORED_CONFIG,
    KEPT,
    LOGS,
    HISTORY_FILE,
    _PLATFORMS,
    _COMPILED,
    *FOLDERS,
    *(DATABASE + end for end in ("", "-wal", "-shm", "-journal")),
}
_POSIX_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[\w+-]+>)[+-]?\d")  # as in CET-1CEST


def check_configuration(patient: Patient) -> list[Finding]:
    if patient.trouble:
        return [Finding(patient.trouble, "Edit the file; `segue config check` says when it is right.")]
    return [advice(note, "See `segue config check`.") for note in config.notes_from_environment()]


def check_time_zone(patient: Patient) -> list[Finding]:
    zone = (patient.settings.tz or "").removeprefix(":")
    if not zone or zone.startswith("/") or is_known(zone) or _POSIX_ZONE.match(zone):
        return []
    sentence = f"The variable TZ is {zone!r}, which is no time zone, so that days begin by universal time"
    return [Finding(f"{sentence}.", "Set TZ to a name such as Europe/Berlin, or unset it.")]


def check_folder(patient: Patient) -> list[Finding]:
    try:
        guards.check_folder(patient.home)
    except FileNotFoundError:
        return [advice(f"There is no {patient.home} yet.", "The first command that stores something makes it.")]
    except HomeRefused as error:
        return [Finding(str(error), "Nothing in it was looked at.")]
    if not os.access(patient.home, os.R_OK | os.X_OK):
        return [Finding(f"You may not look into {patient.home}.", f"`chmod 700 {patient.home}`, if it is yours.")]
    if not os.access(patient.home, os.W_OK) or (patient.database.exists() and not os.access(patient.database, os.W_OK)):
        sentence = f"{patient.home} can only be read: what is there can be seen, and nothing new can be stored."
        return [Finding(sentence, "Make it writable, or set SEGUE_HOME to another folder.")]
    return []


def check_isolation(patient: Patient) -> list[Finding]:
    """Settings that let people see each other's words, which somebody may have wanted."""
    if patient.settings.group_sessions_per_user:
        return []
    sentence = "group_sessions_per_user is false: everybody in a group shares one conversation and its history."
    return [advice(sentence, "Set it to true in config.yaml if they should not.")]


def check_permissions(patient: Patient) -> list[Finding]:
    return [finding for path in _everything(patient.home) for finding in _access(path)]


def check_left_overs(patient: Patient) -> list[Finding]:
    """What a process that died left behind: what a restored database waits for is finished, the rest is removed."""
    waiting = _waiting(patient)
    found = []
    if waiting is not None:
        sentence = "A restore was cut off: the database is the restored one, and other files wait to be put in place."
        found.append(Finding(sentence, "Any command that writes puts them there.", partial(_settle, patient)))
    return found + [
        Finding(
            f"{folder} was left by a process that died.",
            "`segue doctor --fix` removes it; nothing in it is in use.",
            partial(_remove, folder),
        )
        for place in (patient.home, patient.home / KEPT)
        for folder in abandoned(place, waiting)
    ]


def check_strangers(patient: Patient) -> list[Finding]:
    found = [path for path in sorted(patient.home.glob("*")) if not _is_ours(patient, path)]
    return [advice(f"{path} is not Segue's.", "It is left alone, and no backup has it.") for path in found]


def _is_ours(patient: Patient, path: Path) -> bool:
    """Return whether Segue wrote something in the home, or lets other programs write it."""
    log = patient.settings.logging.path_in(patient.home)
    logs = {SERVICE_LOG} | ({log.name} if log is not None and log.parent == patient.home else set())
    is_log = any(path.name == name or path.name.startswith((f"{name}.", f"{name}-")) for name in logs)
    return path.name in _OURS or is_staging(path) or is_log


def check_disk(patient: Patient) -> list[Finding]:
    folder = next(path for path in (patient.home, *patient.home.parents) if path.exists())
    found = []
    if guards.is_on_network(folder):
        sentence = f"{folder} is on a network file system: one process at a time can use it, and slower."
        found.append(advice(sentence, "Move the home to a local disk, and set SEGUE_HOME."))
    free = shutil.disk_usage(folder).free
    if free < LEAST_SPACE:
        sentence = f"The disk that holds {folder} is nearly full: {size(free)} are left."
        found.append(Finding(sentence, "Free some space; without any, nothing new can be stored."))
    return found


def _everything(home: Path) -> Iterator[Path]:
    if home.is_dir():
        yield home
        yield from sorted(path for path in home.rglob("*") if not path.is_symlink())


def _access(path: Path) -> list[Finding]:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return []  # gone since it was listed
    wanted = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return [Finding(f"{path} belongs to another user.", "Make it yours, or take it away.")]
    if not found.st_mode & 0o077:
        return []
    return [
        Finding(
            f"{path} is open to other users of this machine ({stat.S_IMODE(found.st_mode):04o}).",
            f"`segue doctor --fix` makes it {wanted:04o}.",
            partial(_close, path, wanted),
        )
    ]


def _close(path: Path, mode: int) -> str:
    path.chmod(mode)
    return f"{path} is yours alone now."


def _remove(folder: Path) -> str:
    remove_abandoned(folder.parent)
    return f"{folder} is gone."


def _waiting(patient: Patient) -> str | None:
    with suppress(StoreError), SqlStore(SqliteEngine(patient.database, read_only=True)) as store:
        return store.read(OWNER_AT_CONSOLE, waiting_folder)
    return None


def _settle(patient: Patient) -> str:
    with SqlStore(SqliteEngine(patient.database)) as store:
        settle(store, patient.home)
    return "The restore is finished."
