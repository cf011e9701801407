"""The tool `delegate`: a task of its own for another agent, whose steps do not fill this conversation."""

from collections.abc import Awaitable, Callable
from typing import Any

from segue.ports.tool import ToolSpec
from segue.tools.arguments import checked

NAME = "delegate"
LONGEST_TASK = 50_000
Subagent = Callable[[str, str], Awaitable[str]]
"""Does a task for a session, and says what came of it."""


class Delegate:
    """Waits until the other agent is done."""

    spec = ToolSpec(
        NAME,
        "Hand a task to another agent, which has the same tools, knows nothing of this conversation, works until it is"
        " done and answers once. For work whose many steps do not matter here.",
        {
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "description": "All that it needs to know, and what it should answer with.",
                    "minLength": 1,
                    "maxLength": LONGEST_TASK,
                }
            },
            "required": ["task"],
            "additionalProperties": False,
        },
    )

    def __init__(self, subagent: Subagent) -> None:
        self._subagent = subagent

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return False

    def risk(self, arguments: dict[str, Any]) -> str | None:  # noqa: ARG002 - each of its tools is asked about itself
        return None

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        return await self._subagent(checked(self.spec, arguments)["task"], session_id)
