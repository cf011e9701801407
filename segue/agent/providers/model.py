"""A model of a provider: what it says as it comes, and whatever goes wrong as one of our errors.

The libraries behind it take seconds to load, so they are loaded when a model is first asked, or by `warm_up` before.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, cast

from segue.agent.choosing import Endpoint
from segue.core.errors import NoModel
from segue.core.events import Reasoning, Reply, Text
from segue.core.prices import UNKNOWN_TERMS, Terms
from segue.ports.model import Request

if TYPE_CHECKING:
    from segue.agent.providers.line import Line

SILENCE_SECONDS = 120.0
"""How long a model may say nothing in the middle of an answer."""
_LINE = "segue.agent.providers.line"
_SPEAKERS = {"openai": "pydantic_ai.models.openai", "anthropic": "pydantic_ai.models.anthropic"}


def warm_up(kind: str) -> None:
    """Load what talking to this kind of endpoint needs; meant for a thread in the background."""
    import_module(_LINE)
    import_module(_SPEAKERS[kind])


class ProviderModel:
    """A model of an endpoint. Its connections stay open between questions, until it is closed."""

    def __init__(
        self, endpoint: Endpoint, name: str, *, silence: float = SILENCE_SECONDS, terms: Terms = UNKNOWN_TERMS
    ) -> None:
        self.name = name
        self.provider = endpoint.provider
        self._endpoint = endpoint
        self._silence = silence
        self._terms = terms
        self._line: Line | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reasoning | Reply]:
        line = await self._open()
        async with aclosing(line.ask(request)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """Let go of the connections."""
        if self._line is not None:
            line, self._line = self._line, None
            await line.aclose()

    async def _open(self) -> "Line":
        """The line of this event loop: connections belong to the loop that made them."""
        if not self._endpoint.key and not self._endpoint.is_local:
            raise NoModel(
                f"There is no key for {self.provider}: set {self._endpoint.key_name or 'one'}, or use another."
            )
        if self._line is None or self._line.loop is not asyncio.get_running_loop():
            await _load(self._endpoint.kind)
            module = import_module(_LINE)
            self._line = cast("Line", module.Line(self._endpoint, self.name, self._silence, self._terms))
        return self._line


async def _load(kind: str) -> None:
    """Load what is not loaded yet, while others go on."""
    if {_LINE, _SPEAKERS[kind]} <= sys.modules.keys():
        return
    try:
        await asyncio.to_thread(warm_up, kind)
    except ImportError:
        raise NoModel("What models are asked with is not installed: run pip install 'segue[models]'.") from None
