"""Files to and from a homeserver, piece by piece; in encrypted rooms they are encrypted, and checked."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import unpaddedbase64
from Crypto.Cipher import AES
from Crypto.Util import Counter
from nio.crypto import async_encrypt_attachment  # type: ignore[import-untyped]

from segue.core.attachments import Attachment, attachment
from segue.core.errors import SegueError
from segue.platforms.matrix.asking import Line, place
from segue.platforms.matrix.events import Media, mapping
from segue.platforms.matrix.failing import Refused, Trouble, Unanswered
from segue.ports.files import Files

PIECE = 64 * 1024
DEADLINE = 30.0
"""Seconds for a file that somebody sent; while it comes nobody is heard, and whoever says stop least of all."""
PATIENCE = 60.0
"""Seconds for a file that we send."""
LONGEST_PAUSE = 10.0
_SCHEME = "mxc://"


class _NotHad(SegueError):
    """A file that is not what it is said to be."""


async def fetched(line: Line, files: Files, media: Media) -> Attachment:
    """The file that a message tells of, kept; or why it is not. Raises `Trouble` when nobody can be asked."""
    if media.size is not None and media.size > files.largest:
        told = f"it is larger than {files.largest / 1_000_000:g} MB"
        return attachment(media.name, media.kind, media.size, reason=told)
    try:
        async with asyncio.timeout(DEADLINE):
            return await _fetched(line, files, media)
    except TimeoutError:
        return attachment(media.name, media.kind, media.size, reason="it could not be fetched in time")


async def _fetched(line: Line, files: Files, media: Media) -> Attachment:
    for is_last in (False, True):
        try:
            async with aclosing(_pieces(line, media)) as pieces:
                return await files.keep(pieces, media.name, media.kind)
        except (Refused, Unanswered, _NotHad) as error:
            if is_last or not _may_pass(error):
                return attachment(media.name, media.kind, media.size, reason=str(error))
            await asyncio.sleep(min(getattr(error, "seconds", None) or 1.0, LONGEST_PAUSE))
    raise AssertionError("one of two is the last")


def _may_pass(error: SegueError) -> bool:
    """Whether the same may go well in a moment."""
    return isinstance(error, Unanswered) or (isinstance(error, Refused) and (error.is_busy or error.is_broken))


async def sent(line: Line, path: Path, file: Attachment, *, encrypt: bool) -> dict[str, Any]:
    """Where a file lies on the homeserver, as a message says it. Raises `Trouble`."""
    keys: dict[str, Any] = {}
    pieces = _sealed_pieces(path, keys) if encrypt else _pieces_of(path)
    headers = {
        "Content-Type": "application/octet-stream" if encrypt else file.kind,
        "Content-Length": str(path.stat().st_size),
    }
    address = place("upload", base="/_matrix/media/v3/") + ("" if encrypt else f"?{urlencode({'filename': file.name})}")
    async with line.answering("POST", address, pieces, PATIENCE, headers) as answer:
        uri = mapping(await answer.json()).get("content_uri")
    if not isinstance(uri, str):
        raise Trouble("The homeserver took a file, and did not say where it lies.")
    return {"file": {**keys, "url": uri}} if encrypt else {"url": uri}


async def _pieces(line: Line, media: Media) -> AsyncGenerator[bytes]:
    server, _, name = media.uri.removeprefix(_SCHEME).partition("/")
    if not media.uri.startswith(_SCHEME) or not server or not name:
        raise _NotHad("it does not lie on a homeserver")
    opening = None if media.sealed is None else _Opening(media.sealed)
    async with line.answering("GET", place("v1", "media", "download", server, name), seconds=DEADLINE) as answer:
        async for piece in answer.content.iter_chunked(PIECE):
            yield piece if opening is None else opening.opened(piece)
    if opening is not None:
        opening.check()


class _Opening:
    """A file that is being decrypted."""

    def __init__(self, sealed: Any) -> None:
        try:
            key = _decoded(sealed["key"]["k"])
            start = _decoded(sealed["iv"])
            self._expected = _decoded(sealed["hashes"]["sha256"])
            counter = Counter.new(64, prefix=start[:8], initial_value=int.from_bytes(start[8:], "big"))
            self._cipher = AES.new(key, AES.MODE_CTR, counter=counter)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise _NotHad("its key is no key") from error
        self._digest = hashlib.sha256()

    def opened(self, piece: bytes) -> bytes:
        self._digest.update(piece)
        return bytes(self._cipher.decrypt(piece))

    def check(self) -> None:
        if not hmac.compare_digest(self._digest.hexdigest().encode(), self._expected.hex().encode()):
            raise _NotHad("somebody has changed it on the way")


def _decoded(said: object) -> bytes:
    if not isinstance(said, str):
        raise TypeError("no text")
    return bytes(unpaddedbase64.decode_base64(said))


async def _pieces_of(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


async def _sealed_pieces(path: Path, keys: dict[str, Any]) -> AsyncIterator[bytes]:
    """The file encrypted; what decrypts it is in `keys` at the end."""
    async for piece in async_encrypt_attachment(_pieces_of(path)):
        if isinstance(piece, dict):
            keys.update(piece)
        else:
            yield piece
