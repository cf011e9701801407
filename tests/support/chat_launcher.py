"""`segue` with something changed that only a test changes:

    python chat_launcher.py '{"kill": ["after_tool_begins", 2], "trace": FILE, "scripted": true}' ARGUMENT…

kill: ends the process at the nth time that a point is reached. trace: writes down every point that is reached.
fill: fills the disk that a file is on, at the nth time that a point is reached.
scripted: a model in this process that wants two tools, then says that it is done. cold: what models need is loaded only
when one is asked, not in advance. blind: whatever has no result is run
again, which is the control of the tests that kill. halved: a compression leaves its turn behind, which is another.
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from segue.core.events import Reply, Text, ToolCall
from segue.core.silence import FLUSH_REQUEST
from segue.core.summaries import INSTRUCTIONS
from segue.core.turns import Fate
from segue.core.usage import Usage
from segue.ports import failpoints
from segue.ports.failpoints import Point
from segue.ports.model import Request

CALLS = (
    ToolCall("call_look", "read_file", '{"path": "notes.txt"}'),
    ToolCall("call_act", "terminal", '{"command": "echo ran >> marker; echo acted"}'),
)


class Scripted:
    """Wants both tools at once; with their results it is done."""

    name, provider = "scripted", "test"

    def __init__(self, *_: object, **__: object) -> None: ...

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        if request.system == INSTRUCTIONS:
            yield Reply("They talked about leeks and lockers.", usage=Usage(7, api_call_count=1))
        elif request.conversation[-1]["content"] == FLUSH_REQUEST:
            yield Reply("NO_REPLY", usage=Usage(5, api_call_count=1))
        elif request.conversation[-1]["role"] == "tool":
            yield Text("All ")
            yield Text("done.")
            yield Reply("All done.", provider=self.provider)
        else:
            yield Text("At once.")
            yield Reply("At once.", CALLS, provider=self.provider, finish_reason="tool_calls")

    async def aclose(self) -> None: ...


def main() -> None:
    wanted: Mapping[str, Any] = json.loads(sys.argv[1])
    counts: Counter[str] = Counter()

    def act(point: Point) -> None:
        counts[point] += 1
        if "trace" in wanted:
            with Path(wanted["trace"]).open("a") as file:
                file.write(f"{point}\n")
        if wanted.get("kill") == [point, counts[point]]:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fill" in wanted and wanted["fill"][:2] == [point, counts[point]]:
            fill(Path(wanted["fill"][2]))

    failpoints.arm(act)
    if wanted.get("scripted") or wanted.get("cold"):
        from segue.app import crew

        setattr(crew, "warm_up", len)  # noqa: B010 - as a test does it
        if wanted.get("scripted"):
            setattr(crew, "ProviderModel", Scripted)  # noqa: B010
    if wanted.get("blind"):
        from segue.sessions import turning

        setattr(turning, "salvage", _run_all)  # noqa: B010
    if wanted.get("halved"):
        from segue.sessions import compressing

        setattr(compressing, "move_turn", lambda _tx, turn, _child: turn)  # noqa: B010
    sys.argv = ["segue", *sys.argv[2:]]
    from segue.cli import main as segue

    segue()


def fill(ballast: Path) -> None:
    """Write until the disk takes nothing more, not even a byte."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


def _run_all(calls: Sequence[ToolCall], answered: set[str], _steps: object) -> Mapping[str, Fate]:
    return {call.id: Fate.RUN for call in calls if call.id not in answered}


if __name__ == "__main__":
    main()
