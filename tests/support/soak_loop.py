"""A gateway under load for long: it is killed and paused, and whatever it has of memory, files and log is measured.

    python tests/support/soak_loop.py 30

In the first half one life follows another; the second half is one long life that is only held up now and then, so that
what grows in it can be seen. Afterwards everybody is asked what they got, as after any other kill.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gateway_nursery import Nursery
from kill_loop import KillLoop
from lane_house import dm

from segue.core.scope import OWNER_AT_CONSOLE as OWNER

LANES = 400
RATE = 20.0
"""Messages in a second."""
TICK = 0.25
LIFE, LIFE_UNTIL_PAUSED, PAUSE = 30.0, 60.0, 2.0
LONGEST_LOG = 64.0
"""Megabytes."""
GROWTH_PER_HOUR, NOISE = 1.0, 4.0
"""Megabytes that a life may grow by, and those that come and go in any."""
MOST_MORE_FILES = 8
SETTLED = 0.25
"""The share of the long life after which it has all that it needs."""
ROWS = 16


class Sample(NamedTuple):
    """A gateway at one moment; sizes in megabytes."""

    seconds: float
    said: int
    waiting: int
    memory: float
    files: int
    log: float
    kills: int
    pid: int


def slope(samples: Sequence[Sample]) -> float:
    """Megabytes of memory in an hour, by the line that is nearest to all of them."""
    if len(samples) < 2:
        return 0.0
    middle = sum(one.seconds for one in samples) / len(samples)
    mean = sum(one.memory for one in samples) / len(samples)
    spread = sum((one.seconds - middle) ** 2 for one in samples)
    return 3600 * sum((one.seconds - middle) * (one.memory - mean) for one in samples) / spread


def growth(samples: Sequence[Sample], longest_log: float = LONGEST_LOG) -> list[str]:
    """What grew, a sentence each: in the last life, and the log in all of them."""
    found = []
    life = [one for one in samples if one.pid == samples[-1].pid]
    first = life[0].seconds + SETTLED * (life[-1].seconds - life[0].seconds)
    settled = [one for one in life if one.seconds >= first]
    hours = (settled[-1].seconds - settled[0].seconds) / 3600
    if slope(settled) * hours > GROWTH_PER_HOUR * hours + NOISE:
        found.append(f"Memory grows by {slope(settled):.1f} MB in an hour.")
    if max(one.files for one in settled) - settled[0].files > MOST_MORE_FILES:
        found.append(f"{settled[0].files} open files became {max(one.files for one in settled)}.")
    if (largest := max(one.log for one in samples)) > longest_log:
        found.append(f"The log was {largest:.0f} MB long.")
    return found


def table(samples: Sequence[Sample]) -> str:
    head = f"{'minutes':>8}{'said':>9}{'waiting':>9}{'RSS MB':>9}{'files':>7}{'log MB':>8}{'kills':>7}"
    return "\n".join([head, *(_row(one) for one in samples[:: max(1, len(samples) // ROWS)])])


def _row(one: Sample) -> str:
    sizes = f"{one.memory:>9.1f}{one.files:>7}{one.log:>8.1f}"
    return f"{one.seconds / 60:>8.1f}{one.said:>9}{one.waiting:>9}{sizes}{one.kills:>7}"


class SoakLoop(KillLoop):
    """Many people, who go on and on."""

    def __init__(self, database: Path, nursery: Nursery, *, rate: float = RATE, **more: Any) -> None:
        super().__init__(database, nursery, looks_often=False, **more)
        self._request["pause"] = 0.0
        self._database = database
        self._rate = rate
        self._said = {f"lane{number}": [] for number in range(LANES)}
        self._pid = 0
        self.samples: list[Sample] = []
        self.pauses = 0

    async def soak(self, seconds: float) -> list[str]:
        """So long; everything that is wrong then."""
        began = time.monotonic()
        async with self._backstage:
            self._pid = await self._born()
            talking = asyncio.create_task(self._talk_on())
            measuring = asyncio.create_task(self._measure(began))
            while self.report.kills == 0 or time.monotonic() - began < seconds / 2 - LIFE / 2:
                await asyncio.sleep(min(LIFE, seconds / 6))
                await asyncio.to_thread(self._nursery.end, self._pid)
                self.report.kills += 1
                self.report.places.update(self._places())
                self._pid = await self._born()
            while (left := seconds - (time.monotonic() - began)) > 0:
                await asyncio.sleep(min(LIFE_UNTIL_PAUSED, left))
                await self._pause()
            for task in (measuring, talking):
                task.cancel()
            await asyncio.to_thread(self._nursery.end, self._pid)
            await self._finish()
        self.report.seconds = time.monotonic() - began
        self._judge()
        self._store.close()
        return [*growth(self.samples), *(f"{name}: {some[:5]}" for name, some in self.report.violations.items())]

    async def _talk_on(self) -> None:
        owed = 0.0
        while True:
            await asyncio.sleep(TICK)
            owed += self._rate * TICK
            for _ in range(int(owed)):
                lane = self._random.choice(list(self._said))
                said = self._said[lane]
                said.append(f"{lane}n{len(said) + 1}")
                wish = "tool" if self._random.random() < 0.2 else "please"
                self._stage.say(dm(lane), f"{said[-1]} {wish}", message_id=said[-1])
            owed -= int(owed)

    async def _pause(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        await asyncio.sleep(PAUSE)
        os.kill(self._pid, signal.SIGCONT)
        self.pauses += 1

    async def _measure(self, began: float) -> None:
        log = self._database.with_name(f"{self._database.name}-wal")
        while True:
            await asyncio.sleep(2.0)
            process = Path(f"/proc/{self._pid}")
            waiting = self._store.read(OWNER, lambda tx: sum(tx.inbox.count(("waiting", "running")).values()))
            with suppress(OSError, StopIteration):  # it was killed a moment ago
                memory = next(one for one in (process / "status").read_text().splitlines() if one.startswith("VmRSS"))
                sample = Sample(
                    time.monotonic() - began,
                    len(self._stage.said),
                    waiting,
                    int(memory.split()[1]) / 1024,
                    len(list((process / "fd").iterdir())),
                    log.stat().st_size / 2**20 if log.exists() else 0.0,
                    self.report.kills,
                    self._pid,
                )
                self.samples.append(sample)


def soaked(folder: Path, minutes: float, rate: float = RATE, **more: Any) -> tuple[SoakLoop, list[str]]:
    """A soak, told; and everything that is wrong after it."""
    nursery = Nursery()
    try:
        loop = SoakLoop(folder / "state.db", nursery, rate=rate, **more)
        wrong = asyncio.run(loop.soak(60 * minutes))
    finally:
        nursery.close()
    last = [one for one in loop.samples if one.pid == loop.samples[-1].pid]
    print(table(loop.samples))
    print(loop.report)
    print(f"{loop.pauses} pauses. The last life: {slope(last[int(SETTLED * len(last)) :]):+.1f} MB an hour.")
    print(*(wrong or ["Nothing was lost, twice or out of order, and nothing grew."]), sep="\n")
    return loop, wrong


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("minutes", type=float, nargs="?", default=30.0)
    arguments.add_argument("--rate", type=float, default=RATE, help="messages per second")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        _, wrong = soaked(Path(folder), given.minutes, given.rate)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
