"""The tool `send_file`: a file of this machine, to the chat that is being answered."""

import mimetypes
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import IO, Any

from segue.core.attachments import Attachment
from segue.core.errors import Invalid
from segue.core.text import size
from segue.ports.files import Files
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.paths import path_in, shown
from segue.tools.threads import in_thread
from segue.tools.visible import on_one_line

_AT_ONCE = 1 << 20
LONGEST_TEXT = 800

Enclose = Callable[[str, Attachment, str], Awaitable[None]]
"""Sends a file to whoever a session is answering, with what stands below it."""


class SendFile:
    """Keeps a copy of the file as it is now, and sends that."""

    spec = ToolSpec(
        "send_file",
        "Send a file of this machine to the person you are talking with. It arrives before your answer.",
        {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The file: relative to the working folder, absolute, or with ~.",
                    "minLength": 1,
                    "maxLength": 4_096,
                },
                "text": {
                    "type": "string",
                    "description": "What stands below it.",
                    "maxLength": LONGEST_TEXT,
                    "default": "",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def __init__(self, cwd: Path, home: Path, files: Files, enclose: Enclose) -> None:
        self._cwd = cwd
        self._home = home
        self._files = files
        self._enclose = enclose

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True  # the same file is sent once, however often this is asked for in one answer

    def risk(self, arguments: dict[str, Any]) -> str | None:
        try:
            path = path_in(self._cwd, checked(self.spec, arguments)["path"])
        except ToolFailed:
            return None  # and nothing will be sent
        real = path.resolve()
        leads = "" if real == path else f", which really is {on_one_line(str(real))}"
        return f"send {on_one_line(str(path))}{leads} to this chat"

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        given = checked(self.spec, arguments)
        path = path_in(self._cwd, given["path"])
        length = await in_thread(self._measure, path)
        with path.open("rb") as file:
            kept = await self._files.keep(_pieces(file), path.name, mimetypes.guess_type(path.name)[0])
        if kept.sha256 is None:
            raise ToolFailed(f"{shown(path)} was not sent: {kept.reason}.")
        try:
            await self._enclose(session_id, kept, given["text"])
        except Invalid as error:
            raise ToolFailed(str(error)) from None
        return f"{shown(path)} ({size(length)}) is on its way."

    def _measure(self, path: Path) -> int:
        home, real = self._home.resolve(), path.resolve()
        if real.is_relative_to(home) and not real.is_relative_to(home / "attachments"):
            raise ToolFailed(f"{shown(path)} is Segue's own, and is not sent.")
        try:
            found = path.stat()
        except OSError as error:
            raise ToolFailed(f"{shown(path)} cannot be read: {error.strerror}.") from None
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailed(f"{shown(path)} is not a file.")
        if found.st_size > self._files.largest:
            raise ToolFailed(f"{shown(path)} is larger than {size(self._files.largest)}, which is what can be sent.")
        return found.st_size


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await in_thread(file.read, _AT_ONCE):
        yield piece
