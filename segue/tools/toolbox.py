"""Who gets which tools: always in the same order, so that a model is told the same bytes every time."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from segue.core.scope import OWNER, Scope
from segue.ports.tool import Tool
from segue.tools.memory import Memory
from segue.tools.read_file import ReadFile
from segue.tools.session_search import SessionSearch
from segue.tools.terminal import Terminal

_PEOPLE = "people"


def tools_for(
    *, is_owner: bool, cwd: Path, environment: Mapping[str, str], notes: Path, search: SessionSearch
) -> list[Tool]:
    """An owner gets every tool; anybody else what reaches only what is theirs."""
    own: list[Tool] = [search, Memory(notes)]
    return [ReadFile(cwd), Terminal(cwd, environment), *own] if is_owner else own


def notes_of(scope: Scope, memory: Path) -> Path:
    """The folder of somebody's notes. A room has its own: what was noted in private is not read out there."""
    if scope.principal == OWNER and scope.room is None:
        return memory
    whose = "\n".join([scope.principal, scope.room or ""])
    return memory / _PEOPLE / hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:32]
