"""A place in the home for what is being made ready. Whoever makes it holds a lock on it, which dies with them."""

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

_PREFIX = ".staging-"


class Staging:
    """A private folder in the home, gone with this object unless somebody else was told to fetch what is in it."""

    def __init__(self, home: Path) -> None:
        self.folder = home / f"{_PREFIX}{os.urandom(4).hex()}"
        self._is_handed_over = False

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=0o700)
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def hand_over(self) -> None:
        """From now on the folder belongs to whoever finds its name."""
        self._is_handed_over = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_handed_over:
            shutil.rmtree(self.folder)
        os.close(self._lock)


def abandoned(home: Path) -> list[Path]:
    """Folders whose maker is gone."""
    return [folder for folder in sorted(home.glob("*")) if is_staging(folder) and not _is_held(folder)]


def is_staging(path: Path) -> bool:
    return path.name.startswith(_PREFIX) and path.is_dir()


def remove_abandoned(home: Path) -> None:
    for folder in abandoned(home):
        shutil.rmtree(folder)


def _is_held(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the files they stand for."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
