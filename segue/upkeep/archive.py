"""A backup as one file: a ZIP archive with a manifest that names every other member, its size and its SHA-256.

Nothing is believed that the manifest does not say, and nothing is unpacked that cannot lie in a home.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from segue.config.settings import CONFIG_FILE, DATABASE_FILE
from segue.core.errors import Invalid
from segue.core.json_text import parse_json
from segue.core.text import printable, storable

MANIFEST = "manifest.json"
DATABASE, CONFIG = DATABASE_FILE, CONFIG_FILE
FOLDERS = ("memory", "attachments")

_FORMAT = "segue_backup"
_FORMAT_VERSION = 1
_LARGEST_MANIFEST = 1 << 28
_CHUNK = 1 << 20

Advance = Callable[[int], object]


class Member(NamedTuple):
    bytes: int
    sha256: str


class Contents(NamedTuple):
    """What a backup holds."""

    made_at: float
    program: str
    schema: int
    sessions: int
    messages: int
    files: dict[str, Member]


def pack(archive: IO[bytes], contents: Contents, files: dict[str, Path], advance: Advance) -> Contents:
    """Write files under their names, then the manifest; the contents as they were written."""
    written: dict[str, Member] = {}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as opened:
        for name, path in files.items():
            if not _belongs(name):
                raise Invalid(f"{path!r} has a name that no backup can hold; rename it first.")
            with _source(path) as source, opened.open(_entry(name), "w", force_zip64=True) as target:
                written[name] = _pour(source, target.write, advance)
        contents = contents._replace(files=written)
        opened.writestr(_entry(MANIFEST), json.dumps({_FORMAT: _FORMAT_VERSION, **contents._asdict()}))
    return contents


def read_contents(archive: Path) -> Contents:
    """What a backup says that it holds."""
    with _opened(archive) as opened:
        return _manifest(opened, archive)


def verify(archive: Path, advance: Advance = bool) -> Contents:
    """Read a backup to its end; an error when a single byte of it is not what was written."""
    return _each_member(archive, lambda _name: _nowhere(), advance)


def unpack(archive: Path, folder: Path, advance: Advance = bool) -> Contents:
    """Verify a backup while its files are written into a folder, for their owner alone."""
    return _each_member(archive, lambda name: _private(folder, name), advance)


def take_out(archive: Path, name: str, folder: Path) -> bool:
    """One file of a backup, written into a folder; False when the backup has none of that name."""
    with _opened(archive) as opened:
        expected = _manifest(opened, archive).files.get(name)
        if expected is None:
            return False
        part = f"{name}.{os.urandom(4).hex()}.part"
        try:
            with opened.open(name) as source, _private(folder, part) as write:
                is_sound = _pour(source, write, bool, most=expected.bytes) == expected
            if is_sound:
                (folder / part).replace(folder / name)
            return is_sound
        finally:
            (folder / part).unlink(missing_ok=True)


def _each_member(archive: Path, target_of: Callable[[str], Any], advance: Advance) -> Contents:
    with _opened(archive) as opened:
        contents = _manifest(opened, archive)
        if {*opened.namelist()} != {MANIFEST, *contents.files}:
            raise Invalid(f"{archive} holds other files than it says; it was not used.")
        for name, expected in contents.files.items():
            with opened.open(name) as source, target_of(name) as write:
                found = _pour(source, write, advance, most=expected.bytes)
            if found != expected:
                raise Invalid(f"{archive} is damaged: {name} is not what was backed up; nothing was changed.")
    return contents


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as opened:
            yield opened
    except OSError as error:
        raise Invalid(f"{archive} cannot be read: {error.strerror or error}.") from error
    except Invalid:
        raise
    except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError, zlib.error) as error:
        raise Invalid(
            f"{archive} is no backup that `segue backup` wrote, or it is damaged; nothing was changed."
        ) from error


def _manifest(opened: zipfile.ZipFile, archive: Path) -> Contents:
    try:
        with opened.open(MANIFEST) as manifest:
            said = parse_json(manifest.read(_LARGEST_MANIFEST))
        version = said.pop(_FORMAT)
        files = {str(name): Member(int(size), str(digest)) for name, (size, digest) in said.pop("files").items()}
        contents = Contents(**said, files=files)
        _check_numbers(contents)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Invalid(f"{archive} is no backup that `segue backup` wrote; nothing was changed.") from error
    if version != _FORMAT_VERSION:
        raise Invalid(f"{archive} is a backup of a newer Segue; update Segue to use it.")
    if DATABASE not in files or not all(map(_belongs, files)):
        raise Invalid(f"{archive} holds files that cannot be in a home; it was not used.")
    return contents


def _check_numbers(contents: Contents) -> None:
    if not all(isinstance(value, int | float) for value in (contents.made_at, *contents[2:5])):
        raise TypeError(contents)


def _belongs(name: str) -> bool:
    """Whether a member may lie in a home under its name."""
    path = PurePosixPath(name)
    is_plain = name == str(path) and ".." not in path.parts and storable(printable(name)) == name and "\\" not in name
    return is_plain and (name in (DATABASE, CONFIG) or (len(path.parts) > 1 and path.parts[0] in FOLDERS))


@contextmanager
def _source(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as source:
            yield source
    except OSError as error:
        raise Invalid(f"{path} could not be read: {error.strerror}.") from error


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # no clock: equal homes are equal archives
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _pour(source: IO[bytes], write: Callable[[bytes], object], advance: Advance, most: int | None = None) -> Member:
    digest, size = sha256(), 0
    while (chunk := source.read(_CHUNK)) and (most is None or size <= most):
        digest.update(chunk)
        write(chunk)
        size += len(chunk)
        advance(len(chunk))
    return Member(size, digest.hexdigest())


@contextmanager
def _nowhere() -> Iterator[Callable[[bytes], object]]:
    yield len


@contextmanager
def _private(folder: Path, name: str) -> Iterator[Callable[[bytes], object]]:
    path = folder / name
    for above in reversed(PurePosixPath(name).parents[:-1]):
        (folder / above).mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "wb") as target:
        yield target.write
        target.flush()
        os.fsync(target.fileno())
