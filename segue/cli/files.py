"""Files that are written: whole or not at all, for their owner alone, and over another one only when that is wanted."""

import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from segue.cli.output import Refused, confirm
from segue.core.errors import Invalid, unwritten


def check_replacing(file: Path, *, yes: bool) -> None:
    """Ask before a file that holds something is replaced; where nobody can be asked, it stays as it is."""
    try:
        if yes or not file.is_file() or not file.stat().st_size:
            return
    except OSError as error:
        raise unwritten(file, error) from error
    if not sys.stdin.isatty():
        raise Refused(f"{file} exists already and was left as it is; --yes replaces it.")
    confirm(f"{file} exists already. Replace it?", yes=False)


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """A file that appears only when it is complete, readable by its owner alone; stdout, or a device, as it is."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(file))  # a link stays a link
    try:
        if target.is_dir():
            raise Invalid(f"{target} is a folder; name a file to write to.")
        with target.open("wb") if target.exists() and not target.is_file() else _complete(target) as stream:
            yield stream
    except OSError as error:
        raise unwritten(file, error) from error


@contextmanager
def _complete(target: Path) -> Iterator[BinaryIO]:
    _remove_abandoned(target)
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "wb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _remove_abandoned(target: Path) -> None:
    """Remove what processes that were killed had begun to write; the lock of one that lives keeps its file."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for path in target.parent.iterdir():
        if name.fullmatch(path.name):
            with suppress(OSError), open(path, "rb", opener=_without_links) as part:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def writer(target: BinaryIO) -> Callable[[str], object]:
    """What takes text and writes it to a file."""
    return lambda piece: target.write(piece.encode())
