"""The tool `process`: what runs in the background, what it has said since the last look, and its end."""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from segue.core.background import Process, ProcessState
from segue.core.text import count, one_line, shorten, size, storable
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.background import Background
from segue.tools.endings import ending
from segue.tools.head_and_tail import HeadAndTail

HEAD, TAIL = 5_000, 15_000
"""Characters of new output that are told at once."""
_LONGEST_COMMAND = 100
_MOST_LISTED = 50


class Action(StrEnum):
    LIST = "list"
    OUTPUT = "output"
    STOP = "stop"


class ProcessTool:
    """Looks after what `terminal` has started in the background."""

    spec = ToolSpec(
        "process",
        "List what runs in the background, get what a process has said since you asked last, or stop it.",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": [str(action) for action in Action], "maxLength": 10},
                "id": {
                    "type": "string",
                    "description": "The process; output and stop need it.",
                    "minLength": 1,
                    "maxLength": 100,
                },
            },
            "required": ["action"],
            "additionalProperties": False,
        },
    )

    def __init__(self, background: Background, *, now: Callable[[], float] = time.time) -> None:
        self._background = background
        self._now = now

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True

    def risk(self, arguments: dict[str, Any]) -> str | None:  # noqa: ARG002 - somebody agreed to what it stops
        return None

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        given = checked(self.spec, arguments)
        action = Action(given["action"])
        if action is Action.LIST:
            return storable(self._listed(await self._background.around(session_id), session_id))
        if given["id"] is None:
            raise ToolFailed(f"process needs the argument id for {action}; list shows the ids.")
        process = await self._get(given["id"])
        if action is Action.STOP and process.state == ProcessState.RUNNING:
            await self._background.stop(process)
            process = await self._get(process.id)
        return storable(await self._said(process))

    async def _get(self, process_id: str) -> Process:
        process = await self._background.find(process_id)
        if process is None:
            raise ToolFailed(f"There is no process {shorten(one_line(process_id), 40)}; list shows those that are.")
        return process

    async def _said(self, process: Process) -> str:
        found = await self._background.output(process.id)
        before = self._background.told.get(process.id, 0)
        missed = max(found.left_out - before, 0)
        kept = HeadAndTail(HEAD, TAIL)
        kept.add(found.rest[max(before - found.left_out, 0) :], is_last=True)
        self._background.told[process.id] = found.left_out + len(found.rest)
        said = kept.text().rstrip("\n") or "(no new output)"
        lost = [f"[{size(missed)} before this are not kept]"] if missed else []
        return "\n".join([*lost, said, f"[{_state(process)}]"])

    def _listed(self, processes: list[Process], session_id: str) -> str:
        if not processes:
            return "Nothing runs in the background."
        left_out = len(processes) - _MOST_LISTED
        told = [f"[{count(left_out, 'earlier process')} not shown]"] if left_out > 0 else []
        return "\n".join([*told, *(self._line(one, session_id) for one in processes[-_MOST_LISTED:])])

    def _line(self, process: Process, session_id: str) -> str:
        minutes = max(self._now() - process.started_at, 0) / 60
        elsewhere = "" if process.session_id == session_id else f", of session {process.session_id}"
        command = shorten(one_line(process.command), _LONGEST_COMMAND)
        return f"- {process.id}: {_state(process)}, started {minutes:,.0f} min ago{elsewhere}: {command}"


def _state(process: Process) -> str:
    match process.state:
        case ProcessState.RUNNING:
            return "running"
        case ProcessState.ENDED:
            return ending(process.exit_code)
        case ProcessState.STOPPED:
            return "stopped"
    return "ended with the program that kept it"
