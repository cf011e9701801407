"""The gateway that is killed: the product's own, with an agent that takes its time and a tool that leaves a trace."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

from lane_house import Building
from places import Probe

from segue.agent import holding
from segue.core import crash_recovery
from segue.core.events import Reply, ToolCall
from segue.core.inbound import Receipt
from segue.core.leases import Lease, Run
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.queueing import QueueRules
from segue.core.silence import FAREWELL_REQUEST
from segue.core.streaming import Streaming
from segue.gateway import connecting, lanes, watching
from segue.gateway import desk as desks
from segue.gateway.lanes import Lanes
from segue.gateway.watching import Watching
from segue.ports.failpoints import Point, arm
from segue.ports.model import Request
from segue.ports.platform import Arriving, Traits
from segue.ports.tool import ToolSpec
from segue.sessions import accepting, admitting, drafting, leasing, recovering
from segue.storage.engines import engine_at
from segue.storage.leases import SqlLeases
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage
from segue.testing.remote import RemotePlatform
from segue.upkeep.living import is_gone, this_run

PIECE = 80
"""Characters of one message on the stage, so that an answer takes several."""
PADDING = "word " * 30
LOOK_INTERVAL = 0.05
"""Seconds between two looks of a gateway that is in a hurry."""

STREAMING = Streaming(edit_interval=0.01, buffer_threshold=8)


def answer(request: Request) -> Reply:
    """Names what it answers, at length; what asks for a tool gets one first."""
    if _is_farewell(request):
        return _remembered(request)
    said: list[str] = []
    has_result = False
    for message in reversed(request.conversation):
        if message["role"] == "tool":
            has_result = True
        elif message["role"] == "assistant" and not message.get("tool_calls"):
            break
        elif message["role"] == "user":
            said.append(str(message["content"]))
    if not has_result and any("poison" in text for text in said):
        return Reply("", (ToolCall("call-poison", "poison", "{}"),), finish_reason="tool_calls")
    if not has_result and any("tool" in text for text in said):
        name = "-".join(text.split()[0] for text in reversed(said))
        return Reply("", (ToolCall(f"call-{name}", "probe", f'{{"name": "{name}"}}'),), finish_reason="tool_calls")
    return Reply(f"{' '.join(text.split()[0] for text in reversed(said))}.\n\n{PADDING}")


def _is_farewell(request: Request) -> bool:
    return any(message["content"] == FAREWELL_REQUEST for message in request.conversation)


def _remembered(request: Request) -> Reply:
    """The note that an agent takes leaves a trace in the log of the tool."""
    if request.conversation[-1]["role"] == "tool":
        return Reply("NO_REPLY")
    first = str(request.conversation[0]["content"]).split()[0]
    call = ToolCall(f"call-{first}", "probe", f'{{"name": "remembered-{first}"}}')
    return Reply("", (call,), finish_reason="tool_calls")


class Poison(Probe):
    """A tool that takes its program with it, and may be run again."""

    def __init__(self, log: Path) -> None:
        async def die(_arguments: dict[str, Any]) -> str:
            with log.open("a") as file:
                file.write("poison\n")
            os.kill(os.getpid(), signal.SIGKILL)
            return "survived"

        super().__init__(die)
        self.spec = ToolSpec("poison", "For tests.", {"type": "object"})

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True


class Forgetful(list[Any]):
    """Keeps nothing: here nobody asks what happened, and a gateway that lives long would grow by it."""

    def append(self, _one: Any) -> None: ...


async def live(request: dict[str, Any]) -> None:
    """One life, until a signal ends it."""
    log = Path(request["tool_log"])

    async def probe(arguments: dict[str, Any]) -> str:
        with log.open("a") as file:
            file.write(f"{arguments['name']}\n")
        await asyncio.sleep(request["pause"])
        return "looked"

    if request.get("lease_seconds"):
        _lease_for(request["lease_seconds"])
    if request.get("refusals"):
        _note_refusals(Path(request["refusals"]))
    if request.get("looks_often"):
        _look_often()
    if request.get("looks"):
        _note_looks(Path(request["looks"]))
    if request.get("crash_span"):
        setattr(crash_recovery, "CRASH_SPAN", timedelta(seconds=request["crash_span"]))  # noqa: B010 - as a test does it
    if request.get("control"):
        _CONTROLS[request["control"]]()
    if request.get("failpoint"):
        _arm(request["failpoint"], request["nth"])
    store = SqlStore(engine_at(request["database"]))
    is_streaming = request.get("is_streaming", False)
    traits = Traits(Arriving.ACK_GATED, longest=PIECE, has_key=request["has_key"], can_edit=is_streaming)
    building = Building(
        store,
        Stage(),
        model=ScriptedModel(answer, pause=request["pause"] / 10),
        tools=[Probe(probe), Poison(log)],
        name=f"run{os.getpid()}",
        queue=QueueRules(debounce=timedelta(0), cap=10_000),
        is_gone=is_gone,
        run=_run(request),
        only=[RemotePlatform(Path(request["socket"]), traits)],
        policies=_policies(request.get("idle")),
        watching=Watching(seconds=request.get("watch", 300.0)),
        streaming=STREAMING._replace(is_enabled=is_streaming),
        most_attempts=request.get("most_attempts", 1_000_000),
    )
    building.events, building.model.asked = Forgetful(), Forgetful()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await building.gateway.run(stop)
    building.gateway.close()
    store.close()


def _run(request: dict[str, Any]) -> Run:
    """A life with a name of its own has never died before; on another machine nobody here can say whether it has."""
    run = this_run(request.get("program", f"gateway {os.getpid()}"))
    return run._replace(host=request.get("host", run.host))


def _policies(idle: float | None) -> ResetPolicies:
    if idle is None:
        return ResetPolicies()
    return ResetPolicies(default=ResetPolicy(ResetMode.IDLE, idle=timedelta(seconds=idle)))


def _arm(name: str, nth: int) -> None:
    """Die when a point is passed for the nth time."""
    passed = 0

    def act(point: Point) -> None:
        nonlocal passed
        if point == name:
            passed += 1
            if passed == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    arm(act)


def _acknowledge_first() -> None:
    """Without the guard: a message is confirmed before it is put down."""
    careful = desks.Desk.receive
    later: set[asyncio.Task[Any]] = set()

    async def receive(self: Any, inbound: Any) -> Any:
        async def eventually() -> None:
            await asyncio.sleep(0.02)
            await careful(self, inbound)

        later.add(asyncio.create_task(eventually()))
        return Receipt.ACCEPTED

    desks.Desk.receive = receive  # type: ignore[method-assign]


def _forget_names() -> None:
    """Without the guard: a message that is brought again is another message."""
    careful = accepting.accept
    numbers = iter(range(10**9))

    def accept(tx: Any, entry: Any, *rest: Any, **more: Any) -> Any:
        return careful(tx, entry._replace(edit=f"{os.getpid()}-{next(numbers)}"), *rest, **more)

    admitting.accept = accept  # type: ignore[attr-defined]


def _note_no_farewell() -> None:
    """Without the guard: that an agent has remembered is written nowhere."""

    def end_farewell(*_: Any) -> bool:
        return True

    setattr(watching, "end_farewell", end_farewell)  # noqa: B010 - which is only imported there


def _forget_drafts() -> None:
    """Without the guard: what is shown of an answer has no row that the answer would find."""
    careful = drafting.begin_draft

    def begin_draft(tx: Any, lease: Any, posting: Any, envelope: Any, *rest: Any, **more: Any) -> Any:
        return careful(tx, lease, posting, envelope._replace(name=f"{envelope.name}-{os.getpid()}"), *rest, **more)

    drafting.begin_draft = begin_draft


def _blame_everybody() -> None:
    """Without the guard: whatever was open when the process died has one try less, however soon it died again."""

    def blame_for_crash(*_: Any) -> float:
        return 1.0

    def resume_time(*_: Any) -> None:
        return None

    setattr(recovering, "blame_for_crash", blame_for_crash)  # noqa: B010 - which are only imported there
    setattr(recovering, "resume_time", resume_time)  # noqa: B010


def _lease_for(seconds: float) -> None:
    for module in (leasing, holding, recovering):
        setattr(module, "LEASE_SECONDS", seconds)  # noqa: B010 - as a test does it
    setattr(holding, "RENEWAL_SECONDS", seconds / 3)  # noqa: B010


def _look_often() -> None:
    """Look for what others have left every moment."""
    setattr(lanes, "LOOK_SECONDS", LOOK_INTERVAL)  # noqa: B010 - as a test does it
    setattr(connecting, "FIRST_PAUSE", LOOK_INTERVAL)  # noqa: B010


def _note_looks(looks: Path) -> None:
    """A line for each look for what others have left."""
    careful = Lanes._wake_open

    async def wake_open(self: Lanes) -> None:
        await careful(self)
        with looks.open("a") as file:
            file.write("looked\n")

    setattr(Lanes, "_wake_open", wake_open)  # noqa: B010


def _note_refusals(refusals: Path) -> None:
    """A line for everything that was refused because a lease had changed hands."""
    careful = SqlLeases.hold

    def hold(self: SqlLeases, lease: Lease, span: float) -> bool:
        is_ours = careful(self, lease, span)
        if not is_ours:
            with refusals.open("a") as file:
                file.write(f"{lease.name}\n")
        return is_ours

    setattr(SqlLeases, "hold", hold)  # noqa: B010


def _hold_everything() -> None:
    """Without the guard: whoever has lost a lease goes on as if it were theirs."""
    careful = SqlLeases.hold

    def hold(self: SqlLeases, lease: Lease, span: float) -> bool:
        careful(self, lease, span)
        return True

    setattr(SqlLeases, "hold", hold)  # noqa: B010


_CONTROLS = {
    "acknowledge first": _acknowledge_first,
    "forget names": _forget_names,
    "note no farewell": _note_no_farewell,
    "forget drafts": _forget_drafts,
    "hold everything": _hold_everything,
    "blame everybody": _blame_everybody,
}
