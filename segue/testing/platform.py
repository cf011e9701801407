"""The adapter of a stage that is in the same process."""

import asyncio
from typing import Any

from segue.core.inbound import Inbound
from segue.core.sources import SessionSource
from segue.ports.platform import Arriving, Intake, Post, SendLater, Sent, Traits
from segue.testing.stage import Busy, Stage, Update

NAME = "scripted"
TRAITS = Traits(Arriving.ACK_GATED, longest=4000, has_key=True, can_edit=True, can_attach=True, shows_typing=True)


class ScriptedPlatform:
    """Passes on what is said on a stage, and sends there."""

    def __init__(self, stage: Stage, name: str = NAME, traits: Traits = TRAITS, account: str = "") -> None:
        self.name = name
        self.account = account
        self.stage = stage
        self.traits = traits._replace(has_key=stage.has_key)
        self.typed: list[str] = []

    async def run(self, intake: Intake) -> None:
        intake.connected()
        while True:
            await self.stage.arrival(1.0)
            for number, update in self.stage.waiting():
                await intake.receive(inbound_from(update))
                self.stage.confirm(number)

    async def send(self, post: Post) -> Sent:
        await asyncio.sleep(0)
        try:
            file = None if post.file is None else post.file.as_item()
            return Sent(self.stage.post(post.route.to_dict(), post.text, post.key, file))
        except Busy as error:
            raise SendLater(str(error), error.seconds) from None

    async def edit(self, post: Post, message_id: str) -> None:
        self.stage.edit(message_id, post.text)

    async def typing(self, route: SessionSource) -> None:
        self.typed.append(route.chat_id)


def inbound_from(update: Update) -> Inbound:
    said: dict[str, Any] = dict(update)
    source = SessionSource.from_dict(said["source"])
    return Inbound(source, said["message_id"], said["text"], said.get("edit") or "", is_mention=True)
