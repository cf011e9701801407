"""Batches, as a gateway sees them: nothing arrives by itself, and nothing can be sent.

Whoever runs a batch puts its prompts down in the inbox, a few at a time, and whoever works there answers them.
"""

import asyncio

from segue.core.batches import PLATFORM
from segue.core.sources import SessionSource
from segue.platforms.batch import outbound
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits

TRAITS = Traits(Arriving.CURSOR, longest=1_000_000, can_send=False)


class BatchPlatform:
    """Where the prompts of a file come from."""

    def __init__(self) -> None:
        self.name = PLATFORM
        self.account = ""
        self.traits = TRAITS

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    async def send(self, post: Post) -> Sent:
        raise outbound.refusal(post)

    async def edit(self, post: Post, message_id: str) -> None:  # noqa: ARG002 - as the port has it
        raise outbound.refusal(post)

    async def typing(self, route: SessionSource) -> None: ...
