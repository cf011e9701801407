"""People talk to a gateway that is killed again and again; afterwards everybody is asked what they got."""

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway_nursery import Nursery
from lane_house import dm
from scripted_gateway import PADDING, STREAMING
from torture_rounds import rounds
from waiting import DEADLINE, POLL_INTERVAL, until

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
LATENCY = 0.02
"""Seconds that everything is on its way while lives end at any moment, so that they end in between as well."""
ENOUGH = rounds(2, in_torture=5)
"""Kills in each place."""
MAX_AIMED = 200
"""Kills that are aimed at places which are still missing, before they count as never reached."""
LONGEST_LIFE, LONGEST_AIM = 3.0, 20.0
"""Seconds after which a life ends although it has not come to what was waited for. No verdict depends on it."""
PLACES = (
    *("before the accept commit", "committed, not acknowledged", "in the model", "in a tool"),
    *("recorded, not sent", "between chunks"),
)
SHOWN = "shown in part"
ACKNOWLEDGED_FIRST = "acknowledged, not committed"
"""Where only a gateway without its guard can be."""


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

    @property
    def dead(self) -> list[str]:
        """Those of `unended` that are dead, by their names."""
        return [one.partition(":")[0] for one in self.unended if ": dead," in one]


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
        self._backstage = Backstage(self._stage, self._folder / "socket")
        self._longest_life = 0.8 if more.get("is_streaming") else 0.4  # edits take their time
        self._said: dict[str, list[str]] = {f"lane{number}": [] for number in range(LANES)}
        self._request = {
            "database": str(database),
            "socket": str(self._folder / "socket"),
            "tool_log": str(self._folder / "tools"),
            "pause": 0.03,
            "has_key": has_key,
            "looks_often": True,
            **more,
        }
        (self._folder / "tools").touch()
        self.report = Report()

    async def run(self, kills: int, places: Collection[str] = ()) -> Report:
        """So many kills at any moment, and then as many as it takes until enough of them fell into each of `places`."""
        began = time.monotonic()
        self._backstage._latency = LATENCY
        async with self._backstage:
            while self.report.kills < kills:
                await self._live_and_die(())
            for _ in range(MAX_AIMED):
                if not (missing := [place for place in places if self.report.places[place] < ENOUGH]):
                    break
                await self._live_and_die(missing)
            await self._finish()
        self.report.seconds = time.monotonic() - began
        self._judge()
        self._store.close()
        return self.report

    async def _live_and_die(self, aims: Collection[str]) -> None:
        """One life, which ends as soon as it is in one of these places, or at any time."""
        self._talk(always=bool(aims))
        pid = await self._born()
        if aims:
            await self._come_to(aims)
        else:
            await self._live()
        await asyncio.to_thread(self._nursery.end, pid)
        self.report.kills += 1
        self.report.places.update(self._places())

    async def _come_to(self, aims: Collection[str]) -> None:
        """Wait until this life, not only what the last one left, is in one of these places."""
        done = self._done()
        deadline = time.monotonic() + LONGEST_AIM
        while (self._done() == done or not self._places() & set(aims)) and time.monotonic() < deadline:
            await asyncio.sleep(0.002)

    def _done(self) -> tuple[int, int]:
        return len(self._stage.confirmed), len(self._stage.posted)

    async def die_at(self, point: str, *nths: int) -> Report:
        """Lives that end where they are told to, and one that goes on."""
        self._said = dict(list(self._said.items())[: LANES // 2])
        async with self._backstage:
            for nth in nths:
                self._talk(always=True)
                pause = 0.1 if self._request.get("is_streaming") else self._request["pause"]  # so that there are edits
                dying = self._request | {"failpoint": point, "nth": nth, "pause": pause}
                pid = await asyncio.to_thread(self._nursery.start, dying)
                deadline = time.monotonic() + 4 * DEADLINE
                while not await asyncio.to_thread(self._nursery.is_gone, pid, 1.0):
                    if time.monotonic() > deadline:
                        await asyncio.to_thread(self._nursery.end, pid)
                        raise TimeoutError(f"{point} was not reached {nth} times")
                    if not self._is_at_work():
                        self._talk(always=True)  # a busy machine did it all without passing there often enough
                self.report.kills += 1
            await self._finish()
        self._judge()
        self._store.close()
        return self.report

    async def crash_loop(self, kills: int, lives: tuple[float, float], poison: str, **afterwards: Any) -> Report:
        """Kill lives of such a length, plant a turn that kills its process, and let lives go on until all is done."""
        async with self._backstage:
            self._stage.say(dm("culprit"), f"{poison} poison", message_id=poison)
            while self.report.kills < kills:
                self._talk()
                pid = await asyncio.to_thread(self._nursery.start, self._request)
                await asyncio.sleep(self._random.uniform(*lives))
                await self._end(pid)
                self.report.kills += 1
            self._request |= afterwards
            deadline = time.monotonic() + 4 * DEADLINE
            while self._is_at_work() and time.monotonic() < deadline:  # what has not come to its end is told
                pid = await asyncio.to_thread(self._nursery.start, self._request)
                while self._is_at_work() and not await self._is_gone(pid) and time.monotonic() < deadline:
                    await asyncio.sleep(POLL_INTERVAL)
                await self._end(pid)
        self._judge()
        self._store.close()
        return self.report

    async def _is_gone(self, pid: int) -> bool:
        return await asyncio.to_thread(self._nursery.is_gone, pid, 0.0)

    async def _end(self, pid: int) -> None:
        """End a life, unless what it did has ended it already."""
        with suppress(ProcessLookupError):
            await asyncio.to_thread(self._nursery.end, pid)

    async def _born(self) -> int:
        """A gateway that has begun to read, or, now and then, one that has not come so far."""
        before = self._stage.looks
        pid = await asyncio.to_thread(self._nursery.start, self._request)
        if self._random.random() < 0.9:
            await until(lambda: self._stage.looks > before, "the first look of a gateway")
        return pid

    async def _live(self) -> None:
        """For any time; and every other life until it has sent something, and a moment."""
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0.005, self._longest_life))
            return
        enough = len(self._stage.posted) + self._random.randint(1, 4)
        deadline = time.monotonic() + LONGEST_LIFE
        while len(self._stage.posted) < enough and time.monotonic() < deadline and self._is_at_work():
            await asyncio.sleep(0.005)
        await asyncio.sleep(self._random.uniform(0, 0.03))

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
        self._backstage._latency = 0.0
        pid = await asyncio.to_thread(self._nursery.start, self._request)
        with suppress(TimeoutError):  # what has not come to its end is told
            await until(lambda: not self._is_at_work(), "the end of everything", DEADLINE + self.report.kills)
        await asyncio.to_thread(self._nursery.end, pid)

    def _is_at_work(self) -> bool:
        """Whether anything was said and not confirmed, or is to be answered or sent."""
        return bool(self._stage._waiting) or self._store.read(OWNER, _is_busy)

    def _places(self) -> set[str]:
        """Where a kill falls, as the rows and the stage tell."""
        known = {entry.message_id for entry in self._store.read(OWNER, _everything)}
        handed_out, confirmed = self._stage.handed_out, self._stage.confirmed
        found = {
            "before the accept commit": bool(handed_out - known - confirmed),
            "committed, not acknowledged": bool((known & handed_out) - confirmed),
            ACKNOWLEDGED_FIRST: bool(confirmed - known),
            **self._store.read(OWNER, _at_work),
        }
        return {place for place, is_there in found.items() if is_there}

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
