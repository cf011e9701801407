"""People talk to a gateway that is killed again and again; afterwards everybody is asked what they got."""

import asyncio
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway_nursery import Nursery
from lane_house import dm
from scripted_gateway import PADDING, STREAMING

from segue.core.outbox import UNSENT, OutboxState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import StepKind, StepState, TurnState
from segue.ports.store import Transaction
from segue.storage.engines import engine_at
from segue.storage.examining import complaints
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.remote import Backstage

LANES = 12
ENOUGH = 5
"""Kills in each place; fewer tell nothing of it."""
LONGEST_WORK = 3.0
"""Seconds in which even a busy machine has something to send, if there is anything."""
PLACES = (
    *("before the accept commit", "committed, not acknowledged", "in the model", "in a tool"),
    *("recorded, not sent", "between chunks"),
)
SHOWN = "shown in part"


@dataclass
class Report:
    """What came of it."""

    kills: int = 0
    places: Counter[str] = field(default_factory=Counter)
    said: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    missing_pieces: list[str] = field(default_factory=list)
    pieces_twice: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    tools_twice: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    """What still has a cursor, though it is the last that was sent of it, and what is still called a draft."""
    unended: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """What the database says of itself, when it is a file."""
    seconds: float = 0.0

    @property
    def violations(self) -> dict[str, list[str]]:
        names = (
            *("lost", "twice", "out_of_order", "missing_pieces", "unmarked", "tools_twice", "unended", "unfinished"),
            "damaged",
        )
        return {name: found for name in names if (found := getattr(self, name))}

    def __str__(self) -> str:
        where = ", ".join(f"{place}: {self.places[place]}" for place in (*PLACES, SHOWN))
        return (
            f"{self.kills} kills in {self.seconds:.0f} s, {self.said} messages. They fell: {where}. {self.violations}"
        )


class KillLoop:
    """A stage, a database, and gateways that live shortly."""

    def __init__(
        self, database: str | Path, nursery: Nursery, *, seed: int = 1, has_key: bool = True, **more: Any
    ) -> None:
        self._random = random.Random(seed)
        self._folder = Path(tempfile.mkdtemp(prefix="stage-"))
        self._nursery = nursery
        self._store = SqlStore(engine_at(database))
        self._stage = Stage(has_key=has_key, redelivery=0.1, seed=seed)
        self._has_key = has_key
        self._longest_life = 0.8 if more.get("is_streaming") else 0.4  # edits take their time
        self._said: dict[str, list[str]] = {f"lane{number}": [] for number in range(LANES)}
        self._request = {
            "database": str(database),
            "socket": str(self._folder / "socket"),
            "tool_log": str(self._folder / "tools"),
            "pause": 0.03,
            "has_key": has_key,
            **more,
        }
        (self._folder / "tools").touch()
        self.report = Report()

    async def run(self, kills: int, most: int = 0) -> Report:
        """So many kills, and up to `most` until enough of them fell into every place."""
        began = time.monotonic()
        async with self._open():
            while self.report.kills < kills or (self.report.kills < most and not self._is_telling()):
                self._talk()
                pid = await self._born()
                await self._live()
                await asyncio.to_thread(self._nursery.end, pid)
                self.report.kills += 1
                self._place()
            await self._finish()
        self.report.seconds = time.monotonic() - began
        self._judge()
        self._store.close()
        return self.report

    def _is_telling(self) -> bool:
        """Whether enough kills fell into every place."""
        return all(self.report.places[place] >= ENOUGH for place in PLACES)

    async def die_at(self, point: str, *nths: int) -> Report:
        """Lives that end where they are told to, and one that goes on."""
        async with self._open():
            for nth in nths:
                self._talk(always=True)
                pause = 0.3 if self._request.get("is_streaming") else self._request["pause"]  # so that there are edits
                dying = self._request | {"failpoint": point, "nth": nth, "pause": pause}
                pid = await asyncio.to_thread(self._nursery.start, dying)
                if await asyncio.to_thread(self._nursery.is_gone, pid, 10.0):
                    self.report.kills += 1
                else:
                    await asyncio.to_thread(self._nursery.end, pid)
            await self._finish()
        self._judge()
        self._store.close()
        return self.report

    async def _born(self) -> int:
        """A gateway that has begun to read, or, now and then, one that has not come so far."""
        before = self._stage.looks
        pid = await asyncio.to_thread(self._nursery.start, self._request)
        until = time.monotonic() + (2.0 if self._random.random() < 0.9 else 0.0)
        while self._stage.looks == before and time.monotonic() < until:
            await asyncio.sleep(0.002)
        return pid

    async def _live(self) -> None:
        """For any time; and every other life until it has sent something, however slow the machine is, and a moment."""
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0.005, self._longest_life))
            return
        enough = len(self._stage.posted) + self._random.randint(1, 4)
        until = time.monotonic() + LONGEST_WORK
        while len(self._stage.posted) < enough and time.monotonic() < until:
            await asyncio.sleep(0.002)
        await asyncio.sleep(self._random.uniform(0, 0.03))

    def _open(self) -> Backstage:
        return Backstage(self._stage, self._folder / "socket", latency=0.02)

    def _talk(self, *, always: bool = False) -> None:
        """Some people say something; some of it needs a tool."""
        for lane, said in self._said.items():
            if always or self._random.random() < 0.3:
                name = f"{lane}n{len(said) + 1}"
                said.append(name)
                needs_tool = len(self._stage.said) % 2 if always else self._random.random() < 0.4
                self._stage.say(dm(lane), f"{name} {'tool' if needs_tool else 'please'}", message_id=name)

    async def _finish(self) -> None:
        """A life that nobody ends before everything has come to its end."""
        pid = await asyncio.to_thread(self._nursery.start, self._request)
        try:
            longest = 5 if self._request.get("control") else max(60, self.report.kills)  # a control need not end well
            async with asyncio.timeout(longest):
                while bool(self._stage.waiting()) or self._store.read(OWNER, _is_busy):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pass  # and what has not come to its end is told
        await asyncio.to_thread(self._nursery.end, pid)

    def _place(self) -> None:
        """Where a kill fell, as the rows and the stage tell."""
        known = {entry.message_id for entry in self._store.read(OWNER, _everything)}
        handed_out, confirmed = self._stage.handed_out, self._stage.confirmed
        found = {
            "before the accept commit": bool(handed_out - known - confirmed),
            "committed, not acknowledged": bool((known & handed_out) - confirmed),
            **self._store.read(OWNER, _at_work),
        }
        self.report.places.update(place for place, is_there in found.items() if is_there)

    def _judge(self) -> None:
        entries = self._store.read(OWNER, _everything)
        self.report.said = len(self._stage.said)
        answered = Counter(entry.message_id for entry in entries if entry.state == "done")
        self.report.unended = [f"{one.message_id}: {one.state}, {one.reason}" for one in entries if one.state != "done"]
        self.report.unfinished = self._store.read(OWNER, _drafts)
        for lane, said in self._said.items():
            transcript = self._store.read(OWNER, _said_in, f"agent:main:scripted:dm:{lane}")
            counted = Counter(transcript)
            self.report.lost += [name for name in said if not counted[name] or not answered[name]]
            self.report.twice += [name for name in counted if counted[name] > 1 or answered[name] > 1]
            once = list(dict.fromkeys(transcript))
            if once != [name for name in said if name in counted]:
                self.report.out_of_order.append(lane)
            self._judge_pieces(lane, said)
        if isinstance(engine := self._store._engine, SqliteEngine):
            with engine.reading() as connection:
                self.report.damaged = [one.says for one in complaints(connection)]
        tools = Counter((self._folder / "tools").read_text().split())
        self.report.tools_twice = [name for name, times in tools.items() if times > 1]

    def _judge_pieces(self, lane: str, said: list[str]) -> None:
        """What arrived on the stage: every answer whole, in order, once; what may be there twice is marked."""
        told = [one for one in self._stage.posted if one.route["chat_id"] == lane]
        posted = [one for one in told if ":waits" not in one.key]  # which is no answer to anything
        unmarked = [one for one in posted if not one.text.startswith("(sent again) ")]
        repeated = [key for key, times in Counter(one.key for one in unmarked).items() if times > 1]
        self.report.unmarked += repeated
        whole = {one.key: one.text.removeprefix("(sent again) ") for one in posted}
        self.report.unfinished += [key for key, text in whole.items() if STREAMING.cursor in text]
        words = " ".join(" ".join(whole.values()).split())
        named = [word.rstrip(".") for word in words.split() if word.startswith("lane")]
        if named != said:
            at = next((at for at, pair in enumerate(zip(named, said, strict=False)) if pair[0] != pair[1]), len(named))
            self.report.missing_pieces.append(f"{lane} heard {named[at : at + 3]} in place of {said[at : at + 3]}")
        elif words.count("word") != PADDING.count("word") * words.count("."):
            self.report.missing_pieces.append(f"{lane} heard half of an answer")


def _is_busy(tx: Transaction) -> bool:
    return bool(tx.inbox.open_lanes()) or bool(tx.outbox.listed(UNSENT, 1))


def _drafts(tx: Transaction) -> list[str]:
    return [letter.key for letter in tx.outbox.listed((OutboxState.DRAFT,))]


def _everything(tx: Transaction) -> list[Any]:
    return tx.inbox.listed(("waiting", "running", "done", "cancelled", "refused", "dead"))


def _said_in(tx: Transaction, lane_key: str) -> list[str]:
    lane = tx.lanes.find(lane_key)
    rows = tx.messages.of(lane.session_id) if lane and lane.session_id else []
    return [(row.content or "").split()[0] for row in rows if row.role == "user"]


def _at_work(tx: Transaction) -> dict[str, bool]:
    """What was going on in turns and letters."""
    running = [entry.turn_id for entry in tx.inbox.listed(("running",)) if entry.turn_id]
    turns = [turn for name in set(running) if (turn := tx.turns.find(name)) and turn.state == TurnState.RUNNING]
    begun = {step.kind for turn in turns for step in tx.turns.steps(turn.id) if step.state == StepState.BEGUN}
    unsent = tx.outbox.listed(UNSENT)
    partly = any(
        any(one.state == "delivered" for one in tx.outbox.of_turn(letter.turn_id))
        for letter in unsent
        if letter.turn_id
    )
    return {
        "in the model": StepKind.MODEL in begun,
        "in a tool": StepKind.TOOL in begun,
        "recorded, not sent": bool(unsent),
        "between chunks": partly,
        SHOWN: bool(_drafts(tx)),
    }
