"""The folder of attachments: each file lies under the digest of what it says, and nothing else names it.

What is kept is on the disk before anybody is told so. A file that is being written has a name that no digest has, so
that whatever breaks off leaves nothing behind that could be taken for a file.
"""

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterable, Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

from segue.core.attachments import Attachment, attachment, is_digest, place_of
from segue.core.errors import NotFound, StoreError, StoreFull
from segue.ports.files import Files
from segue.storage.guards import make_private_folder

LARGEST, MOST = 20_000_000, 2_000_000_000
ABANDONED_SECONDS = 3600.0
"""After which a file that nobody finished to write, or that no message has come to need, is nobody's."""
_PART = ".part"


class AttachmentFolder(Files):
    def __init__(self, folder: Path, largest: int = LARGEST, most: int = MOST) -> None:
        self._folder = folder
        self.largest = largest
        self._most = most
        self._held: int | None = None
        """Bytes of everything that is there; counted when it is first asked for."""

    async def keep(self, pieces: AsyncIterable[bytes], name: str | None, kind: str | None) -> Attachment:
        part = await asyncio.to_thread(self._begin)
        digest, size = hashlib.sha256(), 0
        try:
            with part.open("r+b") as file:
                async for piece in pieces:
                    size += len(piece)
                    if reason := self._refusal(size):
                        return attachment(name, kind, reason=reason)
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
                await asyncio.to_thread(_onto_disk, file)
            await asyncio.to_thread(self._settle, part, digest.hexdigest(), size)
        except OSError as error:
            if error.errno is None or isinstance(error, ConnectionError | TimeoutError):
                raise  # of whoever brings the pieces
            raise StoreFull(f"A file that was sent cannot be kept in {self._folder}: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)
        return attachment(name, kind, size, digest.hexdigest())

    def path_of(self, file: Attachment) -> Path:
        path = self._folder / place_of(file.sha256) if is_digest(file.sha256) else None
        if path is None or not path.is_file() or path.is_symlink():
            raise NotFound(f"The file “{file.name}” is not there any more.")
        return path

    def remove(self, digests: Collection[str]) -> int:
        """Remove files for good; how many there were."""
        found = [self._folder / place_of(digest) for digest in digests if is_digest(digest)]
        there = [path for path in found if path.is_file()]
        for path in there:
            path.unlink(missing_ok=True)
        self._held = None
        return len(there)

    def unneeded(self, needed: Collection[str], now: float | None = None) -> list[str]:
        """The files that no message needs, and none can be about to; what broke off is removed on the way."""
        before = (time.time() if now is None else now) - ABANDONED_SECONDS
        for part in self._folder.glob(f"*{_PART}"):
            if part.stat().st_mtime < before:
                part.unlink(missing_ok=True)
        kept = [path for path in self._folder.glob("??/*") if is_digest(path.name) and path.name not in needed]
        return [path.name for path in kept if path.stat().st_mtime < before]

    def _refusal(self, size: int) -> str | None:
        if size > self.largest:
            return f"it is larger than {self.largest / 1_000_000:g} MB"
        if self._count() + size > self._most:
            return "there is no room left for attachments"
        return None

    def _count(self) -> int:
        if self._held is None:
            self._held = sum(path.stat().st_size for path in self._folder.glob("??/*"))
        return self._held

    def _begin(self) -> Path:
        try:
            make_private_folder(self._folder.parent)
            make_private_folder(self._folder)
            part = self._folder / f"{secrets.token_hex(8)}{_PART}"
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(f"Nothing can be kept in {self._folder}: {error.strerror}.") from error
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


def _onto_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
