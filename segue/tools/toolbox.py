"""Who gets which tools: always in the same order, so that a model is told the same bytes every time."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from segue.core.scope import OWNER, Scope
from segue.ports.tool import Tool
from segue.tools.background import Background
from segue.tools.delegate import Delegate, Subagent
from segue.tools.memory import Memory
from segue.tools.process import ProcessTool
from segue.tools.read_file import ReadFile
from segue.tools.session_search import SessionSearch
from segue.tools.terminal import Terminal
from segue.tools.web_fetch import WebFetch
from segue.tools.write_file import WriteFile

_PEOPLE = "people"


class Machine(NamedTuple):
    """What an owner's tools work on."""

    cwd: Path
    environment: Mapping[str, str]
    home: Path
    """Of this program, where no tool writes."""
    background: Background
    subagent: Subagent | None = None
    """Does a task by itself; a subagent has none of its own."""
    servers: Sequence[Tool] = ()
    """What MCP servers bring. They come last, so that what stands before them is the same without them."""


def tools_for(*, machine: Machine | None, notes: Path, search: SessionSearch) -> list[Tool]:
    """An owner gets the machine with every tool; anybody else what reaches only what is theirs or everybody's."""
    own: list[Tool] = [search, Memory(notes), WebFetch()]
    return own if machine is None else [*_at(machine), *own, *machine.servers]


def _at(machine: Machine) -> list[Tool]:
    cwd, background = machine.cwd, machine.background
    return [
        ReadFile(cwd),
        WriteFile(cwd, machine.home),
        Terminal(cwd, machine.environment, background),
        ProcessTool(background),
        *([Delegate(machine.subagent)] if machine.subagent else []),
    ]


def notes_of(scope: Scope, memory: Path) -> Path:
    """The folder of somebody's notes. A room has its own: what was noted in private is not read out there."""
    if scope.principal == OWNER and scope.room is None:
        return memory
    whose = "\n".join([scope.principal, scope.room or ""])
    return memory / _PEOPLE / hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:32]
