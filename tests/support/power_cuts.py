"""A gateway whose power is cut at moments of chance, and what the next one finds.

A cut is a picture of the disk at one of its changes: what a machine would start from. The gateway goes on meanwhile,
so that many cuts cost one life; the next life begins from one of them.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Concatenate, ParamSpec, TypeVar

import pytest
from all_rows import Rows, all_rows, difference, is_sound
from bustle import Bustle, bench_on
from lane_house import dm
from power import Disk, Image, place
from power_camera import Camera, Moment
from told_files import told_of

from segue.core.inbound import Inbound
from segue.core.scope import Scope
from segue.ports.store import Transaction
from segue.storage import checkpoints
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

STEPS = 110
SELDOM, OFTEN = 0.04, 0.8
"""How likely a write is watched for cuts: often while the log is to be taken into the file."""

COMPACTED = 0.3
NEXT_LIFE = 9_999
GONE_ON = 4
"""Behind every so many-th cut, messages are brought again and a new one comes."""
LIVES_OF_ONE = 8
"""So many follow one another before a new home is made."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Cut:
    """The power was gone at a moment of a write: what had returned before is `before`."""

    where: str
    moment: Moment
    before: Rows
    after: Rows
    brought: list[Inbound]
    """What had been put down, and is brought again."""
    told: str = ""


@dataclass
class Tally:
    """What many cuts came to."""

    cuts: int = 0
    writes: int = 0
    """That returned."""
    acknowledged: int = 0
    """Messages that had been put down before a cut, counted at each."""
    lost: int = 0
    """Of these."""
    wrong: list[str] = field(default_factory=list)
    """Cuts after which there was anything but what had returned, with or without the write that was cut off."""
    undone: int = 0
    """Cuts after which the write that was cut off was as if it had never been; the others found it whole."""
    moments: set[str] = field(default_factory=set)
    """What was being done to which file."""

    def __str__(self) -> str:
        return (
            f"{self.cuts} cuts in {self.writes} writes; {self.acknowledged} messages acknowledged at the cuts,"
            f" {self.lost} lost; {len(self.wrong)} cuts left something wrong, {self.undone} undid what they cut off"
        )


class CutStore(SqlStore):
    """The store, some of whose writes are cut off."""

    def __init__(self, path: Path, camera: Camera, chance: random.Random) -> None:
        with camera.on() as taken:
            self.engine = SqliteEngine(path)
        super().__init__(self.engine)
        self._camera = camera
        self._chance = chance
        self.writes = 0
        self.cuts: list[Cut] = []
        self.brought: list[Inbound] = []
        opened = all_rows(self.engine)
        self._note("as it opened", taken, opened, opened)

    def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self.writes += 1
        is_log_taken_in = self.engine._checkpoints._at_work.locked()
        if self._chance.random() > (OFTEN if is_log_taken_in else SELDOM):
            return super().write(scope, work, *args, **kwargs)
        before = all_rows(self.engine)
        with self._camera.on() as taken:
            done = super().write(scope, work, *args, **kwargs)
        rest = self._camera.now()
        after = all_rows(self.engine)
        self._note(f"in write {self.writes}", taken, before, after)
        self._note(f"behind write {self.writes}", [rest], after, after)
        return done

    def compact(self) -> None:
        rows = all_rows(self.engine)
        with self._camera.on() as taken:
            super().compact()
        self._note("as it was rewritten", taken, rows, rows)

    def close(self) -> None:
        rows = all_rows(self.engine)
        self._camera.do_what_waits()
        with self._camera.on() as taken:
            super().close()
        self._note("as it closed", taken, rows, rows)

    def _note(self, where: str, taken: list[Moment], before: Rows, after: Rows) -> None:
        self.cuts += [Cut(where, moment, before, after, self.brought[:-1]) for moment in taken]


def cut_lives(folder: Path, seed: int, cuts: int, *, is_repeatable: bool = True) -> Tally:
    """Life after life until there were so many cuts. The same seed gives the same cuts, unless threads have a say."""
    tally = Tally()
    image: Image = {}
    life = 0
    while tally.cuts < cuts:
        life += 1
        chance = random.Random(f"{seed}:{life}")
        store = _live(folder / "life", image, life, chance, is_repeatable=is_repeatable)
        tally.writes += store.writes
        for cut in store.cuts:
            cut.told = f"seed {seed}, life {life}, {cut.where}, at a {cut.moment.at}"
            try:
                _judge(place(cut.moment.image, folder / "image") / "state.db", cut, tally)
            except Exception as error:
                error.add_note(cut.told)
                raise
        image = chance.choice(store.cuts).moment.image if life % LIVES_OF_ONE else {}
    return tally


def _live(folder: Path, image: Image, life: int, chance: random.Random, *, is_repeatable: bool) -> CutStore:
    camera = Camera(Disk(place(image, folder)), chance)
    with told_of(folder, camera.told), pytest.MonkeyPatch.context() as patch:
        if is_repeatable:
            patch.setattr(checkpoints, "threading", SimpleNamespace(Lock=threading.Lock, Thread=camera.later))
        with CutStore(folder / "state.db", camera, chance) as store:
            bench = bench_on(store, life)
            bustle = Bustle(bench, chance, life)
            store.brought = bustle.brought
            for _ in range(STEPS):
                bustle.go_on()
            if chance.random() < COMPACTED:
                store.compact()
            bench.close()
    return store


def _judge(path: Path, cut: Cut, tally: Tally) -> None:
    """Open what the power left, with nobody between SQLite and the disk."""
    tally.cuts += 1
    tally.moments.add(cut.moment.at)
    before = {row[0] for row in cut.before["inbox"]}
    tally.acknowledged += len(before)
    with SqlStore(engine := SqliteEngine(path)) as store:
        assert is_sound(engine), "the file is damaged"
        found = all_rows(engine)
        if found not in (cut.before, cut.after):
            tally.lost += len(before - {row[0] for row in found["inbox"]})
            tally.wrong.append(f"{cut.told}: {difference(cut.before, found)}")
            return
        tally.undone += cut.before != cut.after and found == cut.before
        if tally.cuts % GONE_ON:
            return
        bench = bench_on(store, NEXT_LIFE)
        for inbound in cut.brought[-3:]:
            assert not bench.arrive(inbound).is_new, f"{inbound.message_id} was put down twice"
        assert bench.arrive(Inbound(dm(), "afterwards", "Are you there?")).is_new
        bench.close()
