"""A place for what is being made ready. Whoever makes it holds a lock on it, which dies with them."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_NAME = re.compile(r"\.staging-[0-9a-f]{8}")


class Staging:
    """A private folder in another one, gone with this object unless it was handed over to whoever finds its name."""

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f".staging-{os.urandom(4).hex()}"
        self._is_handed_over = False

    def __enter__(self) -> Self:
        with _alone_in(self.folder.parent):  # between making and locking it, it looks abandoned
            self.folder.mkdir(mode=0o700)
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def hand_over(self) -> None:
        """From now on the folder belongs to whoever finds its name; the lock stays until the end."""
        self._is_handed_over = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_handed_over:
            shutil.rmtree(self.folder)
        os.close(self._lock)


def abandoned(parent: Path, waiting: str | None = None) -> list[Path]:
    """Folders whose maker is gone, except the one that is waited for by name."""
    found = [folder for folder in sorted(parent.glob(".staging-*")) if folder.name != waiting]
    return [folder for folder in found if is_staging(folder) and not _is_held(folder)]


def remove_abandoned(parent: Path, waiting: str | None = None) -> None:
    with _alone_in(parent):
        for folder in abandoned(parent, waiting):
            shutil.rmtree(folder)


def is_staging(path: Path) -> bool:
    """Whether a path is such a folder: of such a name, and no link."""
    return _NAME.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the files they stand for."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_held(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
