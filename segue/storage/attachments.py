"""The folder of attachments: each file lies under the digest of what it says, and nothing else names it.

What is kept is on the disk before anybody is told so. A file that is being written has a name that no digest has, so
that whatever breaks off leaves nothing behind that could be taken for a file.
"""

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from segue.core.attachments import Attachment, attachment, is_digest, place_of
from segue.core.errors import NotFound, StoreFull
from segue.ports.files import Files
from segue.storage.guards import make_private_folder

LARGEST, MOST = 20_000_000, 2_000_000_000
ABANDONED_SECONDS = 3600.0
"""After which a file that nobody finished to write, or that no message has come to need, is nobody's."""
_PART = ".part"

P = ParamSpec("P")
T = TypeVar("T")


class AttachmentFolder(Files):
    def __init__(self, folder: Path, largest: int = LARGEST, most: int = MOST) -> None:
        self._folder = folder
        self.largest = largest
        self._most = most
        self._held: int | None = None
        """Bytes of everything that is there; counted when it is first asked for."""

    async def keep(self, pieces: AsyncIterable[bytes], name: str | None, kind: str | None) -> Attachment:
        part = await self._ours(self._begin)
        digest, size = hashlib.sha256(), 0
        try:
            with part.open("r+b") as file:
                async for piece in pieces:
                    size += len(piece)
                    if reason := await self._ours(self._refusal, size):
                        return attachment(name, kind, reason=reason)
                    digest.update(piece)
                    await self._ours(file.write, piece)
                await self._ours(_onto_disk, file)
            await self._ours(self._settle, part, digest.hexdigest(), size)
        finally:
            part.unlink(missing_ok=True)
        return attachment(name, kind, size, digest.hexdigest())

    async def _ours(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Work on the disk, in a thread; what goes wrong there is the store's trouble, and nobody else's."""
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except OSError as error:
            raise StoreFull(f"A file that was sent cannot be kept in {self._folder}: {error.strerror}.") from error

    def path_of(self, file: Attachment) -> Path:
        path = self._folder / place_of(file.sha256) if is_digest(file.sha256) else None
        if path is None or not path.is_file() or path.is_symlink():
            raise NotFound(f"The file “{file.name}” is not there any more.")
        return path

    def remove(self, digests: Collection[str], before: float | None = None) -> int:
        """Remove files for good; how many there were. What was kept, or kept again, since a moment stays."""
        gone = 0
        for path in (self._folder / place_of(digest) for digest in digests if is_digest(digest)):
            found = _stat(path)
            if found is not None and (before is None or found.st_mtime < before):
                path.unlink(missing_ok=True)
                gone += 1
        self._held = None
        return gone

    def unneeded(self, needed: Collection[str], now: float | None = None) -> list[str]:
        """The files that no message needs, and none can be about to; what broke off is removed on the way."""
        before = (time.time() if now is None else now) - ABANDONED_SECONDS
        for part in self._folder.glob(f"*{_PART}"):
            if _is_older(part, before):
                part.unlink(missing_ok=True)
        kept = [path for path in self._folder.glob("??/*") if is_digest(path.name) and path.name not in needed]
        return [path.name for path in kept if _is_older(path, before)]

    def _refusal(self, size: int) -> str | None:
        if size > self.largest:
            return f"it is larger than {self.largest / 1_000_000:g} MB"
        if self._count() + size > self._most:
            self._held = None  # others may have removed some
            if self._count() + size > self._most:
                return "there is no room left for attachments"
        return None

    def _count(self) -> int:
        if self._held is None:
            found = (_stat(path) for path in self._folder.glob("??/*"))
            self._held = sum(one.st_size for one in found if one is not None)
        return self._held

    def _begin(self) -> Path:
        make_private_folder(self._folder.parent)
        make_private_folder(self._folder)
        part = self._folder / f"{secrets.token_hex(8)}{_PART}"
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR, 0o600))
        return part

    def _settle(self, part: Path, digest: str, size: int) -> None:
        """Give what is complete its name; what is there already is as good, and counts as new."""
        place = self._folder / place_of(digest)
        make_private_folder(place.parent)
        if not place.exists():
            self._held = self._count() + size
        part.replace(place)
        for folder in (place.parent, self._folder):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                with suppress(OSError):
                    os.close(descriptor)


def _stat(path: Path) -> os.stat_result | None:
    """What is known of a file that others may just be removing or naming."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_older(path: Path, moment: float) -> bool:
    found = _stat(path)
    return found is not None and found.st_mtime < moment


def _onto_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
