"""A model that does what people tell it: `use TOOL {arguments}` uses a tool, `wait SECONDS` takes its time,
`wait until FILE` begins to answer and goes on when the file is there.

To anything else it says what was said. Everything that it was ever asked is kept.
"""

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import ClassVar

from waiting import until

from segue.core.events import Reply, Text, ToolCall
from segue.ports.model import Request

_USE = re.compile(r"use (?P<name>[a-z_]+) (?P<arguments>\{.*\})", re.DOTALL)
_WAIT = re.compile(r"wait (?P<seconds>[0-9.]+)")
_HOLD = re.compile(r"wait until (?P<file>\S+)")
_calls = itertools.count(1)


class Obedient:
    """Stands where a model of a provider would."""

    name, provider = "obedient", "test"
    asked: ClassVar[list[Request]] = []

    def __init__(self, *_: object, **__: object) -> None: ...

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        self.asked.append(request)
        said = str(request.conversation[-1]["content"])
        if request.conversation[-1]["role"] == "tool":
            yield Reply(f"The tool said: {said}")
        elif (use := _USE.search(said)) and request.tools:
            call = ToolCall(f"call_{next(_calls)}", use["name"], use["arguments"])
            yield Reply("", (call,), finish_reason="tool_calls")
        else:
            if wait := _WAIT.search(said):
                yield Text("Let me see. ")
                await asyncio.sleep(float(wait["seconds"]))
            elif hold := _HOLD.search(said):
                yield Text("Let me see. ")
                await until(Path(hold["file"]).exists)
            yield Reply(f"You said: {said}")

    async def aclose(self) -> None: ...
