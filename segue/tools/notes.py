"""Notes on a disk: one file each, never half written, and never outside their folder.

Every file is opened by its name in a folder that is held open, and no link is followed on the way.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from segue.core.text import size
from segue.ports.tool import ToolFailed
from segue.tools.note_names import SKILLS, SUFFIX, NoteName, is_slug

MOST_BYTES = 64_000
MOST_NOTES = 500
_BEGINNING = 400  # bytes
_PATIENCE = 2.0  # seconds
_MOMENT = 0.01
_PART = ".part"


class Note(NamedTuple):
    """A note as a list shows it."""

    name: NoteName
    length: int
    beginning: bytes


class Notes:
    """The notes of a folder, and the skills in its folder for skills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def listed(self) -> list[Note]:
        found: list[Note] = []
        for part in ("", SKILLS):
            with suppress(FileNotFoundError), self._opened(part) as folder:
                found += _notes_in(folder, part)
        return found

    def find(self, name: NoteName) -> bytes | None:
        """What a note says; one that somebody made longer than a note may be is cut behind the first byte too many."""
        try:
            with self._opened(name.folder) as folder:
                return _content(folder, name)
        except FileNotFoundError:
            return None

    def write(self, name: NoteName, text: bytes, *, behind: bool = False) -> int:
        """Put a text in the place of a note, or behind what it says; how many bytes the note has then."""
        with self._held(name.folder) as folder:
            before = _content(folder, name)
            if behind and before:
                text = before + (b"" if before.endswith(b"\n") else b"\n") + text
            if len(text) > MOST_BYTES:
                raise ToolFailed(f"{name} would be longer than {size(MOST_BYTES)}; begin another note.")
            if before is None and len(self.listed()) >= MOST_NOTES:
                raise ToolFailed(f"There are {MOST_NOTES} notes, and no room for more; delete one or append to one.")
            _replace(folder, name.file, text)
            return len(text)

    def delete(self, name: NoteName) -> bool:
        """Whether there was such a note."""
        if self.find(name) is None:
            return False
        with self._held(name.folder) as folder:
            try:
                os.unlink(name.file, dir_fd=folder)
            except FileNotFoundError:
                return False
            os.fsync(folder)
        return True

    @contextmanager
    def _opened(self, part: str) -> Iterator[int]:
        """A descriptor of the folder, or of a part of it."""
        with ExitStack() as held:
            folder = held.enter_context(_folder(self._folder))
            yield held.enter_context(_folder(part, folder)) if part else folder

    @contextmanager
    def _held(self, part: str) -> Iterator[int]:
        """The same, made if it is not there, while nobody else may write."""
        missing = [path for path in (self._folder, *self._folder.parents) if not os.path.lexists(path)]
        for path in reversed(missing):
            _make(path)
        with _folder(self._folder) as folder:
            _lock(folder)
            if part:
                _make(part, folder)
            with self._opened(part) as inner:
                yield inner


@contextmanager
def _folder(path: Path | str, within: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make(path: Path | str, within: int | None = None) -> None:
    with suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=within)


def _lock(folder: int) -> None:
    """Keep other writers out until the descriptor is closed."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ToolFailed("Somebody else is writing notes; try again in a moment.") from None
            time.sleep(_MOMENT)
        else:
            return


def _notes_in(folder: int, part: str) -> Iterator[Note]:
    for file in sorted(os.listdir(folder)):
        name = NoteName(part, file.removesuffix(SUFFIX))
        if file.endswith(SUFFIX) and is_slug(name.slug):
            with suppress(FileNotFoundError, ToolFailed):  # gone meanwhile, or no note at all
                descriptor = _open(folder, name)
                with os.fdopen(descriptor, "rb") as stream:
                    yield Note(name, os.fstat(descriptor).st_size, stream.read(_BEGINNING))


def _content(folder: int, name: NoteName) -> bytes | None:
    try:
        descriptor = _open(folder, name)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(MOST_BYTES + 1)


def _open(folder: int, name: NoteName) -> int:
    kind = os.stat(name.file, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISREG(kind):
        what = "a symbolic link, which is not followed" if stat.S_ISLNK(kind) else "no file"
        raise ToolFailed(f"{name} is {what}; use another name.")
    return os.open(name.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def _replace(folder: int, file: str, text: bytes) -> None:
    """Write beside the file, and take its place when everything is on the disk."""
    _forget_part(folder)  # of a process that died
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(_PART, flags, 0o600, dir_fd=folder), "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(_PART, file, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        _forget_part(folder)
    os.fsync(folder)


def _forget_part(folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_PART, dir_fd=folder)
