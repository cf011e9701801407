"""Several gateways on one database: some are paused longer than their leases last, some are killed."""

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from gateway_nursery import Nursery
from kill_loop import KillLoop, Report

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction

GATEWAYS = 3
LEASE_SECONDS = 0.8


class SharedLoop(KillLoop):
    """The same people and the same questions afterwards; more than one gateway answers."""

    def __init__(self, database: str | Path, nursery: Nursery, **more: Any) -> None:
        super().__init__(database, nursery, lease_seconds=LEASE_SECONDS, **more)
        self._refusals = self._folder / "refusals"
        self._refusals.touch()
        self._request["refusals"] = str(self._refusals)
        self._living: list[int] = []
        self._paused: dict[int, float] = {}
        self.pauses = 0
        self.kinds: Counter[str] = Counter()
        """What was refused to whom had lost it: lanes, sessions, platforms."""

    async def share(self, seconds: float) -> Report:
        began = time.monotonic()
        async with self._open():
            while time.monotonic() - began < seconds:
                await self._fill_up()
                self._talk()
                self._disturb()
                await asyncio.sleep(self._random.uniform(0.05, 0.3))
            for pid in self._living:
                os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(LEASE_SECONDS)  # whoever was away says what it wanted to say
            for pid in self._living:
                await asyncio.to_thread(self._nursery.end, pid)
            await self._finish()
        self.report.seconds = time.monotonic() - began
        self._judge()
        self.report.twice += self._store.read(OWNER, _answered_twice)
        self.kinds = Counter(line.partition(":")[0] for line in self._refusals.read_text().splitlines())
        self._store.close()
        return self.report

    async def _fill_up(self) -> None:
        while len(self._living) < GATEWAYS:
            self._living.append(await asyncio.to_thread(self._nursery.start, self._request))

    def _disturb(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, until in self._paused.items() if until < now]:
            del self._paused[pid]
            os.kill(pid, signal.SIGCONT)
        pid = self._random.choice(self._living)
        if self._random.random() < 0.06:
            self._paused.pop(pid, None)
            self._living.remove(pid)
            self._nursery.end(pid)
            self.report.kills += 1
        elif pid not in self._paused and len(self._paused) < GATEWAYS - 1:
            os.kill(pid, signal.SIGSTOP)
            self._paused[pid] = now + self._random.choice((0.2, 2 * LEASE_SECONDS, 3 * LEASE_SECONDS))
            self.pauses += 1


def _answered_twice(tx: Transaction) -> list[str]:
    """What more than one answer names."""
    names = Counter[str]()
    for lane in tx.lanes.listed():
        for row in tx.messages.of(lane.session_id or ""):
            if row.role == "assistant" and row.content:
                names.update({word.rstrip(".") for word in row.content.split() if word.startswith("lane")})
    return [f"{name} was answered {times} times" for name, times in names.items() if times > 1]
