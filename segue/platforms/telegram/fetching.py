"""Files that people send are fetched while their message is taken in; one that cannot be had costs no message."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import httpx
from telegram.error import BadRequest, TelegramError

from segue.core.attachments import Attachment, attachment
from segue.platforms.telegram import failing
from segue.platforms.telegram.contents import Media
from segue.platforms.telegram.wire import Line
from segue.ports.files import Files

Fetch = Callable[[Media], Awaitable[Attachment]]

FETCHING_SECONDS = 30.0
"""For one file in all: whoever waits for it hears nothing else meanwhile, not even that somebody wants to stop."""
TRIES = 2


async def fetch(line: Line, files: Files, media: Media) -> Attachment:
    """The file, kept; or why it is not."""
    if (media.size or 0) > files.largest:
        return _missing(media, f"it is larger than {files.largest / 1_000_000:g} MB")
    try:
        async with asyncio.timeout(FETCHING_SECONDS):
            return await _tried(line, files, media)
    except TimeoutError:
        return _missing(media, f"it could not be fetched within {FETCHING_SECONDS:g} seconds")


async def _tried(line: Line, files: Files, media: Media) -> Attachment:
    reason = ""
    for _ in range(TRIES):
        try:
            async with aclosing(line.file(media.file_id)) as pieces:
                return await files.keep(pieces, media.name, media.kind)
        except BadRequest as error:
            return _missing(media, f"Telegram does not give it: {failing.told(error)}")
        except TelegramError as error:
            reason = failing.reason_of(error)
        except httpx.HTTPStatusError as error:
            reason = f"Telegram answered {error.response.status_code}"
        except httpx.HTTPError:
            reason = "the connection broke"
    return _missing(media, f"it could not be fetched: {reason}")


def _missing(media: Media, reason: str) -> Attachment:
    return attachment(media.name, media.kind, media.size, reason=reason)
