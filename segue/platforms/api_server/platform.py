"""The place where programs are answered. They call the gateway's door, so nothing has to be connected here."""

import asyncio

from segue.core.sources import API_SERVER, SessionSource
from segue.platforms.api_server import outbound
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits

TRAITS = Traits(Arriving.ACK_GATED, longest=10_000_000, has_key=True, is_listener=True)


class ApiPlatform:
    """Whatever is said there lies ready for whoever asked."""

    def __init__(self) -> None:
        self.name = API_SERVER
        self.account = ""
        self.traits = TRAITS

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    async def send(self, post: Post) -> Sent:
        return outbound.laid_ready(post)

    async def edit(self, post: Post, message_id: str) -> None: ...

    async def typing(self, route: SessionSource) -> None: ...
