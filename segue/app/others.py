"""What installed packages bring: tools beside ours, and agents in place of ours."""

from collections.abc import Callable
from typing import Any

from segue.core.text import one_line
from segue.hookspecs import Group, load
from segue.ports.tool import Tool, ToolSpec


def tools_of_others(tell: Callable[[str], None]) -> list[Tool]:
    """Their tools, for owners as all that reaches the machine; one that cannot be made is told and left out."""
    return [tool for name, make in sorted(load(Group.TOOLS).items()) if (tool := _made(name, make, tell))]


def agent_of_others(name: str) -> Any | None:
    """What a package calls by a name; nothing when none does."""
    return load(Group.AGENTS).get(name)


def _made(name: str, make: Any, tell: Callable[[str], None]) -> Tool | None:
    try:
        tool: Tool = make()
        ToolSpec(*tool.spec)
    except Exception as error:  # noqa: BLE001 - a package that is broken must not keep the agent from working
        tell(f"The tool {one_line(name)} of an installed package cannot be used: {one_line(str(error))}.")
        return None
    return tool
