"""A crowd talks to a gateway: how soon each message is safe, how soon it is answered, and what that costs.

    just bench-load --lanes 10000 --rate 200 --seconds 60

First everybody says three things at once, then they speak one after another at an even rate. The gateway is the real
one with its store on disk, every message is durable before it is confirmed, and the agent answers at once, so that
all that is measured is ours. A message is accepted from when the platform hands it over until it is on disk; that it
is safe is counted from when it was to be said, so that it matters if the platform did not get to hand it over.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from segue import app
from segue.app.serving import Serving, settle_in
from segue.config import Settings, settings_from
from segue.core.inbound import Inbound
from segue.core.inbox import OPEN
from segue.core.leases import GATEWAY
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits
from segue.storage.store import SqlStore
from segue.upkeep.living import this_run

NAME = "crowd"
AT_ONCE = 3
TRAITS = Traits(Arriving.ACK_GATED, longest=100_000, has_key=True)
_AGENT = """
async def answer(messages):
    said = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        said.append(message["content"])
    return " ".join(reversed(said))
"""


class Wait(NamedTuple):
    """Seconds until a message was safe: since it was handed over, and since it was to be said."""

    accepted: float
    safe: float


@dataclass
class Crowd:
    """A platform with so many people on it, who know what they said and heard."""

    lanes: int
    name: str = NAME
    account: str = ""
    traits: Traits = TRAITS
    intake: "asyncio.Future[Intake]" = field(default_factory=asyncio.Future)
    said: int = 0
    heard: int = 0
    waits: list[float] = field(default_factory=list)
    """How long everybody waited for an answer to each message."""
    mistakes: list[str] = field(default_factory=list)
    _open: list[list[tuple[str, float]]] = field(default_factory=list)
    """What each has said and not heard an answer to, in order."""

    def __post_init__(self) -> None:
        self._open = [[] for _ in range(self.lanes)]

    async def run(self, intake: Intake) -> None:
        self.intake.set_result(intake)
        await asyncio.Event().wait()

    async def send(self, post: Post) -> Sent:
        waiting = self._open[int(post.route.chat_id)]
        for word in post.text.split():
            expected, since = waiting.pop(0) if waiting else ("nothing", 0.0)
            if word != expected:
                self.mistakes.append(f"{post.route.chat_id} heard {word} in place of {expected}")
            self.waits.append(time.perf_counter() - since)
            self.heard += 1
        return Sent(post.key)

    async def edit(self, post: Post, message_id: str) -> None: ...

    async def typing(self, route: SessionSource) -> None: ...

    async def say(self, lane: int, began: float) -> "Wait":
        """Hand over one message; how long it took until it was safe, and since it was to be said."""
        self.said += 1
        word, handed_over = f"w{self.said}", time.perf_counter()
        self._open[lane].append((word, began))
        source = SessionSource(platform=NAME, chat_id=f"{lane}", user_id=f"{lane}", user_name=f"Person {lane}")
        await (await self.intake).receive(Inbound(source, word, word))
        now = time.perf_counter()
        return Wait(now - handed_over, now - began)

    async def all_answered(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.heard < self.said:
                await asyncio.sleep(0.02)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lanes", type=int, default=10_000)
    arguments.add_argument("--rate", type=float, default=200.0, help="messages per second, afterwards")
    arguments.add_argument("--seconds", type=float, default=60.0, help="how long afterwards is")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(Path(folder))
        with app.open_store(chosen=settings) as store:
            asyncio.run(_serve(settings, store, given.lanes, given.rate, given.seconds))
            left = store.read(OWNER, lambda tx: tx.inbox.count(OPEN))
        print(f"{'left in the inbox':<34}{sum(left.values()):>12}")


def _settings(home: Path) -> Settings:
    home.chmod(0o700)
    (home / "crowd_agent.py").write_text(_AGENT)
    said = {"agent": {"entry": "crowd_agent:answer"}, "queue": {"debounce": 0, "cap": 100}}
    return settings_from({**said, "access": {NAME: {"dm": "open"}}, "streaming": {"enabled": False}}, home, {})


async def _serve(settings: Settings, store: SqlStore, lanes: int, rate: float, seconds: float) -> None:
    stop, crowd = asyncio.Event(), Crowd(lanes)
    serving = Serving(settings, store, this_run(GATEWAY), [crowd], stop.set)
    serving.begin()
    settle_in()
    living = asyncio.create_task(serving.gateway.run(stop))
    await crowd.intake
    _row("memory at the beginning", f"{_memory():.0f} MB")
    await _at_once(crowd)
    await _evenly(crowd, rate, seconds)
    _row("answers out of order or twice", f"{len(crowd.mistakes)}")
    stop.set()
    await living
    await serving.close()


async def _at_once(crowd: Crowd) -> None:
    began, spent = time.perf_counter(), time.process_time()
    times = await asyncio.gather(*(crowd.say(lane, began) for _ in range(AT_ONCE) for lane in range(crowd.lanes)))
    print(f"{crowd.lanes} people say {AT_ONCE} things at once")
    _row("all safe after", f"{time.perf_counter() - began:.2f} s")
    _show("safe after", [one.safe for one in times])
    await crowd.all_answered(600.0)
    _row("all answered after", f"{time.perf_counter() - began:.2f} s")
    _show("answered after", crowd.waits)
    _row("work per message", f"{(time.process_time() - spent) / crowd.said * 1e3:.2f} ms")
    _row("memory", f"{_memory():.0f} MB")


async def _evenly(crowd: Crowd, rate: float, seconds: float) -> None:
    print(f"{rate:g} messages a second for {seconds:g} s")
    crowd.waits.clear()
    began, spent, count = time.perf_counter(), time.process_time(), int(rate * seconds)
    memory: list[float] = []
    saying: list[asyncio.Task[Wait]] = []
    for number in range(count):
        due = began + number / rate
        await asyncio.sleep(due - time.perf_counter())
        saying.append(asyncio.create_task(crowd.say(number * 7919 % crowd.lanes, due)))
        if number % max(1, count // 6) == 0:
            memory.append(_memory())
    times = await asyncio.gather(*saying)
    _show("accepted after", [one.accepted for one in times])
    _show("safe after", [one.safe for one in times])
    await crowd.all_answered(120.0)
    _show("answered after", crowd.waits)
    _row("work per message", f"{(time.process_time() - spent) / count * 1e3:.2f} ms")
    _row("memory, every sixth of the time", " ".join(f"{one:.0f}" for one in [*memory, _memory()]) + " MB")


def _show(name: str, times: Sequence[float]) -> None:
    ordered = sorted(times)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    _row(f"{name}: half, 99 %, all", " ".join(f"{one * 1e3:.1f}" for one in (middle, late, ordered[-1])) + " ms")


def _row(name: str, said: str) -> None:
    print(f"  {name:<32}{said:>24}", flush=True)


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
