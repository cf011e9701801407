"""The other side of the scripted platform, for the kit; and adapters that do not do what every adapter does."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from segue.core.sources import SessionSource
from segue.ports.platform import Intake, Platform, Post, SendLater, SendRefused, SendUnknown, Sent
from segue.testing import ScriptedPlatform, Stage
from segue.testing.kit import Counterpart, Trouble
from segue.testing.platform import inbound_from
from segue.testing.stage import Update

ALICE = SessionSource(platform="scripted", chat_id="alice", user_id="alice", user_name="Alice")


class Wire(ScriptedPlatform):
    """An adapter whose connection can be in trouble."""

    def __init__(self, stage: Stage, other: "StageCounterpart") -> None:
        super().__init__(stage)
        self._other = other

    async def run(self, intake: Intake) -> None:
        self._other.check_line()
        intake.connected()
        while True:
            self._other.check_line()
            await self.stage.arrival(0.02)
            for number, update in self.stage.waiting():
                self._other.check_line()
                await self._bring(intake, number, update)

    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        if update["edit"] == "deleted":
            await intake.withdraw(SessionSource.from_dict(update["source"]), update["message_id"])
        else:
            await intake.receive(inbound_from(update))
        self.stage.confirm(number)

    async def send(self, post: Post) -> Sent:
        if post.route.chat_id == "nobody":
            raise SendRefused("There is no such chat.")
        trouble = self._other.next_trouble()
        if trouble is Trouble.BUSY:
            raise SendLater("Busy.", self._other.busy_seconds)
        if trouble is Trouble.UNREACHABLE:
            raise SendLater("Nobody listens there.")
        if trouble in (Trouble.BROKEN, Trouble.LOST_BEFORE):
            raise SendUnknown("Nobody answered.")
        sent = await super().send(post)
        if trouble is Trouble.LOST_AFTER:
            raise SendUnknown("Nobody answered.")
        return sent

    async def edit(self, post: Post, message_id: str) -> None:
        if message_id in self._other.gone:
            raise SendRefused("It is not there any more.")
        await super().edit(post, message_id)


class StageCounterpart(Counterpart):
    cannot: ClassVar[Mapping[str, str]] = {
        "forged": "there is no secret",
        "oversize": "there is no limit",
        "skewed clock": "what is said has no date",
        "garbled": "what is said is Python's text",
        "odd event": "what is said is what a test wrote, and has one shape",
        "with file": "there are no files",
        "file of nobody": "there are no files",
        "sent with file": "there are no files",
    }
    busy_seconds = 0.2

    def __init__(self, wire: type[Wire] = Wire, *, has_key: bool = True) -> None:
        self.stage = Stage(has_key=has_key)
        self.gone: set[str] = set()
        self._wire = wire
        self._troubles: list[Trouble] = []
        self._is_away = False

    def adapter(self) -> Platform:
        return self._wire(self.stage, self)

    def route(self) -> SessionSource:
        return ALICE

    def nowhere(self) -> SessionSource:
        return SessionSource(platform="scripted", chat_id="nobody")

    async def close(self) -> None: ...

    def check_line(self) -> None:
        if self._is_away:
            raise ConnectionError("The line is cut.")

    def next_trouble(self) -> Trouble | None:
        return self._troubles.pop() if self._troubles else None

    def trouble(self, trouble: Trouble, times: int = 1) -> None:
        self._troubles = [trouble] * times

    async def say(self, text: str) -> str:
        return self.stage.say(ALICE, text)

    async def say_many(self, texts: list[str]) -> None:
        for text in texts:
            self.stage.say(ALICE, text)

    async def edit(self, message_id: str, text: str) -> None:
        self.stage.say(ALICE, text, message_id=message_id, edit=f"version {len(self.stage.said)}")

    async def delete(self, message_id: str) -> None:
        self.gone.add(message_id)
        self.stage.say(ALICE, "", message_id=message_id, edit="deleted")

    async def read(self) -> list[str]:
        return self.stage.posted_to("alice")

    async def bring_again(self, message_id: str, *, as_new: bool) -> None:
        said: dict[str, Any] = next(one for one in self.stage.said if one["message_id"] == message_id)
        self.stage.say(ALICE, said["text"], message_id=message_id, edit=said["edit"])

    async def bring_out_of_order(self, texts: list[str]) -> None:
        for number in (2, 0, 1):
            self.stage.say(ALICE, texts[number], message_id=f"o{number}")

    async def go_away(self) -> None:
        self._is_away = True
        await asyncio.sleep(0.1)

    async def come_back(self) -> None:
        self._is_away = False
