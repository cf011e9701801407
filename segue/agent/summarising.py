"""A summary of a conversation of any length: in pieces that fit whoever makes it, and without anybody if need be."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from segue.core.compaction import chunks
from segue.core.errors import ContextOverflow, ModelError
from segue.core.events import Reply
from segue.core.messages import Said
from segue.core.sizes import UNKNOWN_WINDOW
from segue.core.summaries import INSTRUCTIONS, accepted, fitted, plain_summary, request
from segue.ports.model import Model, Request

SECONDS = 90.0
"""For one question to the model that summarises."""
_SHARE = 0.4
"""Of a window, what one piece may take: the summary so far and the answer need room, and sizes are guessed."""
_SHARE_OF_SUMMARY = 0.2
_SMALLEST_WINDOW = 1_000
"""Tokens; whoever cannot read that many cannot be asked."""


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
        while True:
            most = min(most_tokens, int(self._window * _SHARE_OF_SUMMARY))
            try:
                return Summary(await self._in_pieces(earlier, told, most, focus, replies), tuple(replies))
            except ContextOverflow as error:
                self._window //= 2  # it reads less than was thought
                if self._window >= _SMALLEST_WINDOW:
                    continue
                trouble = str(error)
            except ModelError as error:
                trouble = str(error)
            except TimeoutError:
                trouble = f"no answer came in {self._seconds:g} seconds"
            return Summary(plain_summary(earlier, told, most_tokens), tuple(replies), trouble)

    async def _in_pieces(
        self, earlier: str, told: Sequence[Said], most_tokens: int, focus: str, replies: list[Reply]
    ) -> str:
        """What a model makes of it, piece by piece; each of its answers is added to the replies."""
        summary = fitted(earlier, most_tokens)
        for piece in chunks(told, int(self._window * _SHARE)):
            reply = await self._asked(request(summary, piece, focus, most_tokens))
            replies.append(reply)
            taken = accepted(reply.text, f"{summary}\n{piece}", most_tokens)
            if taken is None:
                raise ModelError("its answer was of no use")
            summary = taken
        return summary

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
