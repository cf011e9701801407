"""Every write, with every change of the disk that it needs failing in every way before it may succeed."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest
from all_rows import Rows, all_rows, difference, is_sound
from disk_faults import Fault, FaultyDisk
from power import Image, place
from told_files import Kind
from torture_rounds import rounds

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Scope
from segue.ports.store import Filter, Transaction
from segue.sessions import listing
from segue.sessions.admitting import admit_all
from segue.sessions.watching import Watch, watch
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

ENDS = rounds(12, in_torture=len(Fault))
"""Of so many changes that fail, each kind of fault ends the process at one."""

P = ParamSpec("P")
T = TypeVar("T")


class SweptStore(SqlStore):
    """The store on a disk that fails each of its writes at each change, in each way; then the write is done."""

    def __init__(self, path: Path, disk: FaultyDisk, seed: int) -> None:
        self.engine = SqliteEngine(path)
        super().__init__(self.engine)
        self._disk = disk
        self._chance = random.Random(seed)
        self._seed = seed
        self._image = path.parent.parent / "image"
        self.tally: Counter[str] = Counter()

    def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def once(store: SqlStore) -> T:
            return SqlStore.write(store, scope, work, *args, **kwargs)

        return self.sweep(once, is_repeatable=work is admit_all)

    def sweep(self, act: Callable[[SqlStore], T], *, is_repeatable: bool = False, stride: int = 1) -> T:
        """Have it fail at its first change, at a later one and so on, until it has no more."""
        before = all_rows(self.engine)
        left: list[tuple[str, Rows, Rows | None]] = []
        for nth, fault in every_fault(stride):
            told = f"seed {self._seed}, {fault.name} at change {nth}"
            self._disk.fail(nth, fault)
            try:
                done = act(self)
            except fault.said:
                assert self._disk.failed, told
                self.tally["faults"] += 1
                if self._disk.failed is Kind.SYNC or nth % ENDS == list(Fault).index(fault):
                    left.append((told, *self._found_by_next(act if is_repeatable else None, self._end(), told)))
                self._check_refused(before, fault, told)
                self._disk.mend()
                continue
            self._disk.mend()
            after = all_rows(self.engine)
            assert not self._disk.failed or after != before, f"{told}: it returned, and nothing was written"
            break
        self.tally["writes"] += 1
        found, _ = self._found_by_next(None, self._disk.disk.without_power(self._chance), told)
        assert found == after, f"{told}: it returned, and the power took it: {difference(after, found)}"
        for told, found, again in left:
            assert found in (before, after), f"{told}: torn: {difference(before, found)}"
            assert again in (None, after), f"{told}: brought again: {difference(after, again or after)}"
            self.tally["ambiguous"] += found == after != before
        return done

    def _check_refused(self, before: Rows, fault: Fault, told: str) -> None:
        """What can be read is what there was; and where the fault lasts, nothing else is taken either."""
        found = all_rows(self.engine)
        assert found == before, f"{told}: {difference(before, found)}"
        if fault.is_lasting:
            self.read(OWNER, status)
            with pytest.raises(fault.said):
                SqlStore.write(self, OWNER, lambda tx: tx.meta.set("another", "write"))

    def _end(self) -> Image:
        """This process dies, and the next time the machine."""
        self.tally["ends"] += 1
        disk = self._disk.disk
        return disk.without_process() if self.tally["ends"] % 2 else disk.without_power(self._chance)

    def _found_by_next(
        self, act: Callable[[SqlStore], Any] | None, image: Image, told: str
    ) -> tuple[Rows, Rows | None]:
        """What the next process finds, and what it has when the same is done again."""
        with SqlStore(engine := SqliteEngine(place(image, self._image) / "state.db")) as store:
            assert is_sound(engine), f"{told}: damaged"
            found = all_rows(engine)
            if act is None:
                return found, None
            act(store)
            return found, all_rows(engine)


def every_fault(stride: int = 1) -> Iterator[tuple[int, Fault]]:
    """Which change fails, and how; without an end."""
    for nth in itertools.count(1, stride):
        for fault in Fault:
            yield nth, fault


def status(tx: Transaction) -> tuple[Watch, object]:
    """What `segue status` tells."""
    return watch(tx, lambda _: False), (listing.stats(tx), listing.list_sessions(tx, Filter()))
