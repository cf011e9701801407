"""Several gateways on one database: some are paused longer than their leases last, some are killed."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway_nursery import Nursery
from kill_loop import LATENCY, KillLoop, Report
from waiting import DEADLINE

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction

GATEWAYS = 3
LEASE_SECONDS = 0.5


class SharedLoop(KillLoop):
    """The same people and the same questions afterwards; more than one gateway answers."""

    def __init__(self, database: str | Path, nursery: Nursery, **more: Any) -> None:
        super().__init__(database, nursery, lease_seconds=LEASE_SECONDS, **more)
        self._refusals = self._folder / "refusals"
        self._refusals.touch()
        self._request |= {"refusals": str(self._refusals), "pause": 0.1}
        self._living: list[int] = []
        self._paused: dict[int, float] = {}
        self.pauses = 0

    async def share(self, is_enough: Callable[[], bool], seconds: float = 0.0) -> Report:
        """For so long, and then until what happened is enough, or will not be any more."""
        began = time.monotonic()
        self._backstage._latency = LATENCY
        async with self._backstage:
            while (lasted := time.monotonic() - began) < seconds or not is_enough():
                if lasted > seconds + DEADLINE:
                    break
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
        self._store.close()
        return self.report

    @property
    def kinds(self) -> Counter[str]:
        """What was refused to whom had lost it: lanes, sessions, platforms."""
        return Counter(line.partition(":")[0] for line in self._refusals.read_text().splitlines())

    async def _fill_up(self) -> None:
        while len(self._living) < GATEWAYS:
            self._living.append(await asyncio.to_thread(self._nursery.start, self._request))

    def _disturb(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, until in self._paused.items() if until < now]:
            del self._paused[pid]
            os.kill(pid, signal.SIGCONT)
        pid = self._random.choice(self._at_work() or self._living)
        if self._random.random() < 0.06:
            self._paused.pop(pid, None)
            self._living.remove(pid)
            self._nursery.end(pid)
            self.report.kills += 1
        elif pid not in self._paused and len(self._paused) < GATEWAYS - 1:
            os.kill(pid, signal.SIGSTOP)
            self._paused[pid] = now + self._random.choice((0.2, 2 * LEASE_SECONDS, 3 * LEASE_SECONDS))
            self.pauses += 1

    def _at_work(self) -> list[int]:
        """Those that answer something, and do not rest."""
        pids = self._store.read(OWNER, _pids_at_work)
        return [pid for pid in self._living if pid in pids and pid not in self._paused]


def _pids_at_work(tx: Transaction) -> set[int]:
    return {run.pid for run in tx.leases.open_runs() if tx.turns.running_of(run.id)}


def _answered_twice(tx: Transaction) -> list[str]:
    """What more than one answer names."""
    names = Counter[str]()
    for lane in tx.lanes.listed():
        for row in tx.messages.of(lane.session_id or ""):
            if row.role == "assistant" and row.content:
                names.update({word.rstrip(".") for word in row.content.split() if word.startswith("lane")})
    return [f"{name} was answered {times} times" for name, times in names.items() if times > 1]
