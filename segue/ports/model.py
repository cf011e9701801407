"""A language model that can be asked."""

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple, Protocol

from segue.core.events import Chat, Reasoning, Reply, Text
from segue.ports.tool import ToolSpec


class Request(NamedTuple):
    """All that a model is told, the same bytes first every time."""

    system: str
    conversation: Sequence[Chat]
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    """How long it may think: none, low, medium or high; nothing said leaves it to the provider."""


class Model(Protocol):
    name: str
    provider: str

    def stream(self, request: Request) -> AsyncGenerator[Text | Reasoning | Reply]:
        """Pieces as they come, then the whole of them as the last thing. Raises `ModelError`."""
