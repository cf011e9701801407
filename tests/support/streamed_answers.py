"""What servers of models stream, piece by piece, and a model that is asked with it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from raw_model_server import Play, RawModelServer
from waiting import DEADLINE

from segue.agent.choosing import Endpoint, Kind
from segue.agent.providers.model import ProviderModel
from segue.core.errors import ModelError
from segue.core.events import Reasoning, Reply, Text
from segue.ports.model import Request

KINDS: tuple[Kind, ...] = ("openai", "anthropic")
KEY = "sk-not-a-real-key-0123456789abcdef"


def ask(
    server: RawModelServer,
    kind: Kind,
    *plays: Play,
    request: Request | None = None,
    silence: float = DEADLINE,
    provider: str | None = None,
) -> tuple[list[Text | Reasoning], Reply | None, ModelError | None]:
    """What was shown, and what came of it."""
    server.play(*plays)
    base_url = server.url + ("/v1" if kind == "openai" else "")
    endpoint = Endpoint(provider or kind, kind, base_url, KEY, "SOME_API_KEY")
    return asyncio.run(asyncio.wait_for(_ask(endpoint, request or Request("", [user("hello")]), silence), 2 * DEADLINE))


async def _ask(
    endpoint: Endpoint, request: Request, silence: float
) -> tuple[list[Text | Reasoning], Reply | None, ModelError | None]:
    model = ProviderModel(endpoint, "some-model", silence=silence)
    shown: list[Text | Reasoning] = []
    reply = None
    try:
        async for piece in model.stream(request):
            if isinstance(piece, Reply):
                assert reply is None
                reply = piece
            else:
                shown.append(piece)
    except ModelError as error:
        assert reply is None
        return shown, None, error
    finally:
        await model.aclose()
    return shown, reply, None


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text_of(shown: Sequence[Text | Reasoning]) -> str:
    return "".join(piece.text for piece in shown if isinstance(piece, Text))


def sse(*chunks: Any, event: bool = False) -> bytes:
    lines = []
    for chunk in chunks:
        if event and isinstance(chunk, dict):
            lines.append(f"event: {chunk.get('type')}\n")
        lines.append(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n")
    return "".join(lines).encode()


def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "some-model", "choices": [choice]}


def call_delta(index: int | None, name: str | None = None, arguments: str | None = None, **more: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return delta(tool_calls=[{"index": index, "type": "function", "function": function} | more])
