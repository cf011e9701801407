"""The tool `terminal`: a command for bash, its output and how it ended; or a process that goes on in the background.

When an awaited command returns, is cancelled, or this program ends in whatever way, what runs in its session is ended.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.background import Background
from segue.tools.endings import ending
from segue.tools.environment import environment_for
from segue.tools.head_and_tail import HeadAndTail
from segue.tools.paths import path_in, shown
from segue.tools.shell import HeardShell
from segue.tools.visible import on_one_line

HEAD, TAIL = 10_000, 20_000
"""Characters of the output that are kept: what went wrong is mostly said at the end."""
_PATIENCE = 2.0  # seconds between asking to end and killing
_DRAINING = 0.5  # seconds for what is still being said when bash has ended
_DYING = 0.2  # seconds for a process that has said its last


class Terminal:
    """Runs commands as the user of this machine."""

    spec = ToolSpec(
        "terminal",
        "Run a command with bash and get its output and exit code. There is no input, and what it leaves running is"
        " stopped when it ends. What has to go on, such as a server, is run with background; see the tool process.",
        {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command, as bash reads it.",
                    "minLength": 1,
                    "maxLength": 30_000,
                },
                "timeout": {
                    "type": "number",
                    "description": "Seconds after which it is stopped.",
                    "minimum": 1,
                    "maximum": 1_800,
                    "default": 120,
                },
                "cwd": {
                    "type": "string",
                    "description": "The folder to run it in, if not the working folder.",
                    "minLength": 1,
                    "maxLength": 4_096,
                },
                "background": {
                    "type": "boolean",
                    "description": "Return at once with the id of a process that goes on; it has no timeout.",
                    "default": False,
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )

    def __init__(self, cwd: Path, environment: Mapping[str, str], background: Background | None = None) -> None:
        self._cwd = cwd
        self._environment = environment_for(environment)
        self._background = background

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return False

    def risk(self, arguments: dict[str, Any]) -> str | None:
        try:
            given = checked(self.spec, arguments)
        except ToolFailed:
            return None  # and it will not run
        moving = f"cd {shlex.quote(given['cwd'])} && " if given["cwd"] else ""
        where = "in the background: " if given["background"] else ""
        return where + on_one_line(moving + given["command"])

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        given = checked(self.spec, arguments)
        folder = path_in(self._cwd, given["cwd"] or ".")
        try:
            if not folder.is_dir():
                raise ToolFailed(f"The folder {shown(folder)} is not there (any more); give another one as cwd.")
            if given["background"]:
                return await self._sent_off(given["command"], folder, session_id)
            return await self._awaited(given["command"], folder, given["timeout"])
        except OSError as error:
            raise ToolFailed(f"bash cannot be started in {shown(folder)}: {error.strerror}.") from None

    async def _sent_off(self, command: str, folder: Path, session_id: str) -> str:
        if self._background is None:
            raise ToolFailed("Nothing can be kept in the background here; run it without background.")
        process = await self._background.start(session_id, command, folder, self._environment)
        return f"Process {process.id} runs in the background; the tool process shows its output and stops it."

    async def _awaited(self, command: str, folder: Path, timeout: float) -> str:
        output = HeadAndTail(HEAD, TAIL)
        shell = await HeardShell.start(command, folder, self._environment, output.add)
        try:
            is_in_time = await shell.running.ended(timeout)
            if not is_in_time:
                await shell.running.stop(_PATIENCE)
            await shell.silent(_DRAINING)
            is_alone = await shell.running.alone(_DYING)
        finally:
            await shell.close()
        output.add(b"", is_last=True)
        ends = [ending(shell.running.exit_code) if is_in_time else f"stopped after {timeout:g} s: the timeout"]
        ends += ["what it left in the background was stopped"] * (not is_alone)
        return _told(output.text(), ends)


def _told(output: str, ends: list[str]) -> str:
    said = output.rstrip("\n") or "(no output)"
    return "\n".join([said, *(f"[{end}]" for end in ends)])
