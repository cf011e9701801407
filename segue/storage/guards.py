"""What must never happen to a SQLite file, stopped before it does.

Closing any descriptor of a database file drops the locks that this process holds on it; a connection carried through
a fork shares them; a network file system may not have them at all. Each has lost committed messages elsewhere.
"""

import os
import re
import stat
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from segue.core.errors import HomeRefused, StoreError

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb2",
        "smb3",
        "smbfs",
    }
    | {"vboxsf", "virtiofs"}
    | {f"fuse.{name}" for name in ("cephfs", "glusterfs", "rclone", "s3fs", "sshfs")}
)
_OCTAL = re.compile(r"\\([0-7]{3})")  # how the kernel writes a space in a name
_COMPANIONS = ("", "-wal", "-shm", "-journal")

_NAMES_IN = {"open": 1, "sqlite3.connect": 1, "os.remove": 1, "os.rename": 2, "os.truncate": 1}
"""The events that touch a file by its name, and how many names each has."""

_guarded: dict[str, Counter[str]] = {}
"""Names of database files, each with how many stores of this process have such a file open, by folder."""


class Forkable(Protocol):
    """Something that must not be used, or even closed, in a child of the process that opened it."""

    def abandon(self) -> list[object]:
        """Mark as unusable; the objects that must stay open for ever."""


_forkable: WeakSet[Forkable] = WeakSet()


def watch_for_fork(owner: Forkable) -> None:
    _forkable.add(owner)


def _abandon_all() -> None:
    import ctypes  # only ever needed here, and slow to load

    for owner in list(_forkable):
        for handle in owner.abandon():
            # One reference too many: closing it in the child would touch the parent's file.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


def forbid_opening(path: Path) -> None:
    """From now on, opening this database file in this process other than through its store raises an error."""
    if not _guarded:
        sys.addaudithook(_refuse_database_files)
    for suffix in _COMPANIONS:
        _guarded.setdefault(path.name + suffix, Counter())[os.path.realpath(path.parent)] += 1


def allow_opening(path: Path) -> None:
    """Lift the ban when the last store of the file is closed."""
    for suffix in _COMPANIONS:
        _guarded[path.name + suffix][os.path.realpath(path.parent)] -= 1


def _refuse_database_files(event: str, arguments: tuple[Any, ...]) -> None:
    for named in arguments[: _NAMES_IN.get(event, 0)]:
        if not isinstance(named, str | bytes | os.PathLike):
            continue
        folder, _, name = os.fsdecode(named).rpartition("/")
        if name in _guarded and _guarded[name][os.path.realpath(folder or ".")]:
            raise StoreError(
                f"{name} is the database that is open here: to open, replace or remove it by path would drop its locks."
                " Read it through Segue, or with another process."
            )


def make_private_folder(folder: Path) -> None:
    """A home folder: made if it is not there, refused if it is not ours, and for its owner alone."""
    try:
        make_folders(folder.parent)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        check_folder(folder)
    except OSError as error:
        sentence = f"{folder} cannot be created ({error.strerror}); set SEGUE_HOME to a folder you own."
        raise HomeRefused(sentence) from error
    if folder.stat().st_mode & 0o077:
        with suppress(OSError):  # a read-only disk stays as it is
            folder.chmod(0o700)


def make_folders(folder: Path) -> None:
    """The folder and those above it that are missing, each for its owner alone."""
    for place in reversed([folder, *folder.parents]):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)


def check_folder(folder: Path) -> None:
    """Refuse a home that is a link, or somebody else's."""
    found = folder.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise HomeRefused(f"{folder} is a symbolic link; set SEGUE_HOME to the folder itself.")
    if not stat.S_ISDIR(found.st_mode):
        raise HomeRefused(f"{folder} is not a folder; set SEGUE_HOME to one.")
    if found.st_mode & stat.S_ISVTX:
        raise HomeRefused(f"{folder} is shared by everybody; set SEGUE_HOME to a folder of your own in it.")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise HomeRefused(f"{folder} belongs to another user; set SEGUE_HOME to a folder of your own.")


def make_private_file(path: Path) -> None:
    """Make sure that the database file is a plain file that only its owner can read. Never opens an existing one."""
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # somebody else was faster
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR, 0o600))
    check_file(path)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def check_file(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise HomeRefused(f"{path} is not a plain file; Segue keeps its hands off it.")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise HomeRefused(f"{path} belongs to another user; set SEGUE_HOME to a folder of your own.")


class OpenedFiles:
    """The file of a database and its log, as they were when it was opened.

    What is written to a file that no name leads to any more is lost when it is closed. Its names are only looked up,
    because opening the file would drop the locks on it.
    """

    def __init__(self, path: Path, *, has_log: bool) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal") if has_log else None
        self._identities: dict[Path, tuple[int, int]] = {}

    def find_replaced(self) -> Path | None:
        """The first file that is not there any more, or is another one than it was."""
        for path in (self._path, self._log):
            if path is None:
                continue
            identity = _identity_of(path)
            if identity is None or self._identities.setdefault(path, identity) != identity:
                return path
        return None


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def file_system_of(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds a path, read from the text of /proc/self/mountinfo."""
    best, found = "", None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        mount_point = _OCTAL.sub(lambda m: chr(int(m[1], 8)), fields[4]) if len(fields) > 4 else ""
        below = str(path) == mount_point or str(path).startswith(mount_point.rstrip("/") + "/")
        if after and below and len(mount_point) >= len(best):
            best, found = mount_point, after.split()[0]
    return found


def is_on_network(path: Path) -> bool:
    """Whether SQLite's write-ahead log would have to share memory across machines there."""
    mounts = Path("/proc/self/mountinfo")
    if not mounts.exists():
        return False
    return file_system_of(path.resolve(), mounts.read_text("utf-8", "replace")) in NETWORK_FILE_SYSTEMS
