"""A summary of a conversation of any length: in pieces that fit whoever makes it, and without anybody if need be."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from segue.core.compaction import chunks
from segue.core.errors import ModelError
from segue.core.events import Reply
from segue.core.messages import Said
from segue.core.sizes import UNKNOWN_WINDOW
from segue.core.summaries import INSTRUCTIONS, accepted, plain_summary, request
from segue.ports.model import Model, Request

SECONDS = 90.0
"""For one question to the model that summarises."""
_SHARE = 0.4
"""Of a window, what one piece may take: the summary so far and the answer need room, and sizes are guessed."""


class Summary(NamedTuple):
    text: str
    replies: tuple[Reply, ...] = ()
    """What the model answered on the way, for what it cost."""
    trouble: str = ""
    """Why no model made it; nothing when one did."""


class Summariser:
    """Asks one model, which may be slow, silent or wrong: then the summary is made without it."""

    def __init__(self, model: Model | None, window: int = UNKNOWN_WINDOW, seconds: float = SECONDS) -> None:
        self._model = model
        self._window = window
        self._seconds = seconds

    async def summarise(self, earlier: str, told: Sequence[Said], most_tokens: int, focus: str = "") -> Summary:
        """Of what is known and what was said after it, at most so many tokens."""
        replies: list[Reply] = []
        summary = earlier
        try:
            for piece in chunks(told, int(self._window * _SHARE)):
                reply = await self._asked(request(summary, piece, focus, most_tokens))
                replies.append(reply)
                taken = accepted(reply.text, f"{summary}\n{piece}", most_tokens)
                if taken is None:
                    return self._plain(earlier, told, most_tokens, replies, "its answer was of no use")
                summary = taken
        except ModelError as error:
            return self._plain(earlier, told, most_tokens, replies, str(error))
        except TimeoutError:
            return self._plain(earlier, told, most_tokens, replies, f"no answer came in {self._seconds:g} seconds")
        return Summary(summary, tuple(replies))

    def _plain(
        self, earlier: str, told: Sequence[Said], most_tokens: int, replies: list[Reply], trouble: str
    ) -> Summary:
        return Summary(plain_summary(earlier, told, most_tokens), tuple(replies), trouble)

    async def _asked(self, question: str) -> Reply:
        if self._model is None:
            raise ModelError("there is no model to ask")
        async with asyncio.timeout(self._seconds):
            return await answer_of(self._model, Request(INSTRUCTIONS, [{"role": "user", "content": question}]))


async def answer_of(model: Model, request: Request) -> Reply:
    """The whole of what a model answers."""
    answer = None
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            answer = piece if isinstance(piece, Reply) else answer
    if answer is None:
        raise ModelError(f"{model.name} answered nothing")
    return answer
