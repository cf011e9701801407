"""A model that answers word by word: what was said, how much it was told, or what a tool found.

`slowly` takes its time between words, `held` says one word and goes on when `Wordy.go_on` is set, `look` uses a tool
after a few words, `fail` is not answered.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import ClassVar

import pytest
from serving_house import use_obedient_model

from segue.app import crew
from segue.core.errors import BadKey
from segue.core.events import Reply, Text, ToolCall
from segue.core.usage import Usage
from segue.ports.model import Request

_calls = itertools.count(1)
PAUSE = 0.05


class Wordy:
    """Stands where a model of a provider would."""

    name, provider = "wordy", "test"
    asked: ClassVar[list[Request]] = []
    go_on: ClassVar[asyncio.Event] = asyncio.Event()

    def __init__(self, *_: object, **__: object) -> None: ...

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        if request.system.startswith("Give a conversation a title"):
            yield Reply("A talk")
            return
        self.asked.append(request)
        last = request.conversation[-1]
        said = str(last["content"])
        if "fail" in said:
            raise BadKey("The provider does not accept the key.")
        calls: tuple[ToolCall, ...] = ()
        if last["role"] == "tool":
            text = "There it is."
        elif said.startswith("look") and request.tools:
            text, calls = "Let me look.", (ToolCall(f"call_{next(_calls)}", "session_search", '{"query": "x"}'),)
        else:
            text = f"You said: {said}"
        for word in text.split(" "):
            yield Text(word if word == text.split(" ")[0] else f" {word}")
            await asyncio.sleep(PAUSE if "slowly" in said else 0)
            if "held" in said:
                await self.go_on.wait()
        finish = "tool_calls" if calls else "stop"
        yield Reply(text, calls, finish_reason=finish, usage=Usage(input_tokens=7, output_tokens=3, api_call_count=1))

    async def aclose(self) -> None: ...


def use_wordy_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else answers."""
    use_obedient_model(monkeypatch)
    monkeypatch.setattr(crew, "ProviderModel", Wordy)
    monkeypatch.setattr(Wordy, "asked", [])
    monkeypatch.setattr(Wordy, "go_on", asyncio.Event())
