"""A tool: something that an agent may do in the world."""

from typing import Any, NamedTuple, Protocol

from segue.core.errors import SegueError


class ToolSpec(NamedTuple):
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """A JSON schema."""


class ToolFailed(SegueError):
    """What a tool could not do, in a sentence that the model is told."""


class Tool(Protocol):
    spec: ToolSpec

    def is_idempotent(self, arguments: dict[str, Any]) -> bool:
        """Whether running it twice with these is the same as running it once. Never raises."""

    def risk(self, arguments: dict[str, Any]) -> str | None:
        """What somebody should agree to before it runs, as one line; nothing when it is harmless. Never raises."""

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        """Do it, and tell the model what came of it. When cancelled, it leaves nothing running."""
