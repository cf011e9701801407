"""What a simulated gateway talks to: a platform as unkind as chance wants it, a model that may fail, and a tool."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any

from segue.core.errors import ModelUnavailable, StreamBroken
from segue.core.events import Reply, Text, ToolCall
from segue.core.sources import SessionSource
from segue.ports.model import Request
from segue.ports.platform import Arriving, Intake, Post, SendLater, SendUnknown, Sent, Traits
from segue.ports.tool import ToolSpec
from segue.testing.platform import NAME, inbound_from
from segue.testing.stage import Stage, Update

Passes = Callable[[str], None]
"""Asked before and after everything that lasts; it may raise."""


class Weather:
    """How unkind the world is."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"weather {seed}")
        self.is_calm = False
        """Whether nothing goes wrong any more."""

    def strikes(self, chance: float) -> bool:
        return not self.is_calm and self.random.random() < chance

    async def takes(self, *longest: float) -> None:
        """Somebody is waited for, up to one of these."""
        await asyncio.sleep(self.random.choice(longest) * self.random.random())


class SimulatedStage(Stage):
    """A stage that rings when there is something, for nobody looks at a clock that does not move by itself."""

    def __init__(self, seed: int, *, has_key: bool) -> None:
        super().__init__(has_key=has_key, redelivery=0.15, seed=seed)
        self._bell = asyncio.Event()

    async def arrival(self, seconds: float) -> None:
        self._bell.clear()
        if not self._waiting:
            await self._bell.wait()

    def _bring(self, update: Update) -> None:
        super()._bring(update)
        self._bell.set()


class SimulatedPlatform:
    """Brings things twice, late, at once and in any order; sends, fails to, and does not say which."""

    name, account = NAME, ""

    def __init__(self, stage: SimulatedStage, weather: Weather, passes: Passes, *, longest: int, edits: bool) -> None:
        self.stage = stage
        self.traits = Traits(Arriving.ACK_GATED, longest=longest, has_key=stage.has_key, can_edit=edits)
        self._weather = weather
        self._passes = passes

    async def run(self, intake: Intake) -> None:
        intake.connected()
        while True:
            await self.stage.arrival(1.0)
            brought = self.stage.waiting()
            if self._weather.strikes(0.2):
                self._weather.random.shuffle(brought)
            if self._weather.strikes(0.04):
                raise ConnectionError("The line is cut.")
            if brought and self._weather.strikes(0.3):
                brought.append(self._weather.random.choice(brought))  # somebody was too impatient
                await asyncio.gather(*(self._bring(intake, number, update) for number, update in brought))
            else:
                for number, update in brought:
                    await self._bring(intake, number, update)

    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        await self._weather.takes(0.0, 0.02)
        self._passes("brings")
        await intake.receive(inbound_from(update))
        self._passes("received")
        if not self._weather.strikes(0.08):
            self.stage.confirm(number)

    async def send(self, post: Post) -> Sent:
        await self._weather.takes(0.0, 0.03, 0.5)
        self._passes("sends")
        self._may_fail()
        message_id = self.stage.post(post.route.to_dict(), post.text, post.key)
        self._passes(f"sent {post.text}")
        await self._weather.takes(0.0, 0.03)
        if self._weather.strikes(0.05):
            raise SendUnknown("The answer was lost.")
        return Sent(message_id)

    async def edit(self, post: Post, message_id: str) -> None:
        await self._weather.takes(0.0, 0.03)
        self._passes("edits")
        self._may_fail()
        self.stage.edit(message_id, post.text)
        self._passes("edited")

    def _may_fail(self) -> None:
        if self._weather.strikes(0.06):
            raise SendLater("It takes nothing at the moment.", self._weather.random.choice((None, 0.5)))
        if self._weather.strikes(0.04):
            raise SendUnknown("The line was cut.")

    async def typing(self, route: SessionSource) -> None: ...


class SimulatedModel:
    """Says which messages it answers; what speaks of a tool gets one first."""

    name, provider = "simulated", "simulated"

    def __init__(self, weather: Weather) -> None:
        self._weather = weather

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        await self._weather.takes(0.0, 0.05, 0.5, 3.0)
        if self._weather.strikes(0.04):
            raise ModelUnavailable("It is too busy.")
        answer = _answer(request)
        if answer.text:
            first, rest = answer.text[:4], answer.text[4:]
            yield Text(first)
            await self._weather.takes(0.0, 0.3)
            if self._weather.strikes(0.03):
                raise StreamBroken("It broke off.")
            yield Text(rest)
        yield answer


def _answer(request: Request) -> Reply:
    names, has_result, needs_tool = list[str](), False, False
    for message in reversed(request.conversation):
        if message["role"] == "tool":
            has_result = True
        elif message["role"] == "assistant" and not message.get("tool_calls"):
            break
        elif message["role"] == "user" and not str(message["content"]).startswith("["):
            name, _, rest = str(message["content"]).partition(" ")
            names.insert(0, name)
            needs_tool |= "tool" in rest
    if needs_tool and not has_result:
        call = ToolCall(f"call-{'-'.join(names)}", "simulated", '{"name": "' + "-".join(names) + '"}')
        return Reply("", (call,), finish_reason="tool_calls")
    return Reply("re: " + " ".join(names))


class SimulatedTool:
    """Leaves a trace, and must not be used twice for the same."""

    spec = ToolSpec("simulated", "For tests.", {"type": "object"})

    def __init__(self, weather: Weather, used: list[str], passes: Passes) -> None:
        self._weather = weather
        self._used = used
        self._passes = passes

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return False

    def risk(self, _arguments: dict[str, Any]) -> str | None:
        return None

    async def run(self, arguments: dict[str, Any], _session_id: str) -> str:
        self._passes("uses a tool")
        self._used.append(str(arguments["name"]))
        self._passes("has used a tool")
        await self._weather.takes(0.0, 0.1, 1.0)
        return "looked"
