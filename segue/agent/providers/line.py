"""One question after the other over one wire: what is asked, what comes back piece by piece, and what that was."""

import asyncio
import warnings
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai.messages import (
    InstructionPart,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from segue.agent.choosing import Endpoint
from segue.agent.providers.converting import Voice, model_messages, reply_from
from segue.agent.providers.failing import failure, judge
from segue.agent.providers.pieces import Pieces
from segue.agent.providers.pricing import window
from segue.agent.providers.wires import settings, wire
from segue.core.events import Reasoning, Reply, Text
from segue.core.prices import Terms
from segue.ports.model import Request
from segue.ports.tool import ToolSpec

_LIBRARIES = r"(pydantic|pydantic_ai|openai|anthropic)(\.|$)"


class Line:
    """A model of an endpoint, connected from one event loop."""

    def __init__(self, endpoint: Endpoint, name: str, silence: float, terms: Terms) -> None:
        # The libraries warn of what a provider sends as if we had written it; what matters of it is judged here.
        warnings.filterwarnings("ignore", module=_LIBRARIES)
        self.loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        self._name = name
        self._silence = silence
        self._terms = terms
        self._wire = wire(endpoint, name, silence)

    async def ask(self, request: Request) -> AsyncGenerator[Text | Reasoning | Reply]:
        """What the model answers, piece by piece; whatever goes wrong is a `ModelError`."""
        pieces = Pieces()
        messages, field = model_messages(request.conversation, self._voice())
        speaker = self._wire.speaker(field)
        said = settings(self._endpoint, request.effort)
        try:
            async with speaker.request_stream(messages, said, _parameters(request)) as answer:
                async for event in answer:
                    pieces.count(_arguments(event))
                    for piece in pieces.take(*_words(event)):
                        yield piece
                response = answer.get()
            for piece in pieces.rest():
                yield piece
            reply = self._reply(response, speaker)
        except Exception as error:  # noqa: BLE001 - the libraries raise a hundred things, and each becomes one of ours
            raise failure(error, self._endpoint, self._name, self._silence) from None
        yield reply

    async def aclose(self) -> None:
        await self._wire.connections.aclose()

    def _voice(self) -> Voice:
        name = "anthropic" if self._endpoint.kind == "anthropic" else self._endpoint.provider
        return Voice(self._endpoint.kind, name)

    def _reply(self, response: ModelResponse, speaker: Model[Any]) -> Reply:
        judge(response, self._endpoint, self._name)
        return reply_from(response, self._endpoint, self._name, window(speaker), self._terms)


def _words(event: ModelResponseStreamEvent) -> tuple[type[Text] | type[Reasoning], str]:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return Text, text
        case PartStartEvent(part=ThinkingPart(content=text)):
            return Reasoning, text
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought)):
            return Reasoning, thought or ""
    return Text, ""


def _arguments(event: ModelResponseStreamEvent) -> str:
    """What an event adds to the arguments of a call."""
    match event:
        case PartStartEvent(part=ToolCallPart(args=str(text))):
            return text
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
            return text
    return ""


def _parameters(request: Request) -> ModelRequestParameters:
    parts = [InstructionPart(content=request.system)] if request.system else None
    return ModelRequestParameters(function_tools=[_tool(spec) for spec in request.tools], instruction_parts=parts)


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name, parameters_json_schema=spec.parameters, description=spec.description, strict=False
    )
