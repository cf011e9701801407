"""Where files that people send are kept, and files that are sent come from."""

from collections.abc import AsyncIterable
from pathlib import Path
from typing import Protocol

from segue.core.attachments import Attachment


class Files(Protocol):
    largest: int
    """Bytes of a file that is kept."""

    async def keep(self, pieces: AsyncIterable[bytes], name: str | None, kind: str | None) -> Attachment:
        """Keep what comes, once however often it comes, and on the disk when this returns.

        What is too large is not kept, and the attachment says so. Raises `StoreError` when the disk does not take it,
        and whatever the pieces raise.
        """

    def path_of(self, file: Attachment) -> Path:
        """Where a file that is kept lies; raises `NotFound` when it is not there any more."""
