"""The tool `terminal`: a command for bash, its output and how it ended.

When it returns, or is cancelled, nothing of the command is left running.
"""

import re
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.environment import environment_for
from segue.tools.head_and_tail import HeadAndTail
from segue.tools.paths import path_in, shown
from segue.tools.shell import Shell

HEAD, TAIL = 10_000, 20_000
"""Characters of the output that are kept: what went wrong is mostly said at the end."""
_PATIENCE = 2.0  # seconds between asking to end and killing
_DRAINING = 0.5  # seconds for what is still being said when bash has ended
_DYING = 0.2  # seconds for a process that has said its last
_LONGEST_RISK = 200
_RISK_HEAD, _RISK_TAIL = 110, 60
_SPACES = re.compile(" {2,}")


class Terminal:
    """Runs commands as the user of this machine."""

    spec = ToolSpec(
        "terminal",
        "Run a command with bash and get its output and exit code. There is no input, and what is left in the"
        " background is stopped when the command ends.",
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
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )

    def __init__(self, cwd: Path, environment: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environment = environment_for(environment)

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return False

    def risk(self, arguments: dict[str, Any]) -> str | None:
        try:
            given = checked(self.spec, arguments)
        except ToolFailed:
            return None  # and it will not run
        moving = f"cd {shlex.quote(given['cwd'])} && " if given["cwd"] else ""
        return _on_one_line(moving + given["command"])

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:  # noqa: ARG002 - the same in every session
        given = checked(self.spec, arguments)
        folder = path_in(self._cwd, given["cwd"] or ".")
        output = HeadAndTail(HEAD, TAIL)
        shell = await self._started(given["command"], folder, output)
        try:
            is_in_time = await shell.ended(given["timeout"])
            if not is_in_time:
                await shell.stop(_PATIENCE)
            await shell.silent(_DRAINING)
            is_alone = await shell.alone(_DYING)
        finally:
            await shell.close()
        output.add(b"", is_last=True)
        ends = [_ending(shell.exit_code) if is_in_time else f"stopped after {given['timeout']:g} s: the timeout"]
        ends += ["what it left in the background was stopped"] * (not is_alone)
        return _told(output.text(), ends)

    async def _started(self, command: str, folder: Path, output: HeadAndTail) -> Shell:
        try:
            if not folder.is_dir():
                raise ToolFailed(f"The folder {shown(folder)} is not there (any more); give another one as cwd.")
            return await Shell.start(command, folder, self._environment, output.add)
        except OSError as error:
            raise ToolFailed(f"bash cannot be started in {shown(folder)}: {error.strerror}.") from None


def _told(output: str, ends: list[str]) -> str:
    said = output.rstrip("\n") or "(no output)"
    return "\n".join([said, *(f"[{end}]" for end in ends)])


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "it could not be stopped"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"


def _on_one_line(command: str) -> str:
    """A command as somebody is asked about it: every character that bash reads and no eye sees is written out."""
    visible = "".join(_visible(character) for character in command.strip())
    line = _SPACES.sub(" ", visible)
    if len(line) <= _LONGEST_RISK:
        return line
    gap = f" …{len(line) - _RISK_HEAD - _RISK_TAIL:,} more characters… "
    return line[:_RISK_HEAD] + gap + line[-_RISK_TAIL:]


def _visible(character: str) -> str:
    if character == "\n":
        return " ⏎ "
    if character == "\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode()
