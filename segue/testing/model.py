"""A model that answers as a function says, word by word."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable

from segue.core.errors import ModelError
from segue.core.events import Reply, Text
from segue.ports.model import Request

_WORD = re.compile(r"\s*\S+|\s+$")

Answering = Callable[[Request], Reply | ModelError]


class ScriptedModel:
    provider = "scripted"

    def __init__(self, answer: Answering, name: str = "scripted", pause: float = 0.0) -> None:
        self.name = name
        self.asked: list[Request] = []
        self._answer = answer
        self._pause = pause

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.asked.append(request)
        answer = self._answer(request)
        if isinstance(answer, ModelError):
            raise answer
        for word in _WORD.findall(answer.text):
            yield Text(word)
            await asyncio.sleep(self._pause)
        yield answer
