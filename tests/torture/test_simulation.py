"""Thousands of histories of a gateway, each told by a seed: whatever happens in them, what was promised is true.

`SEGUE_SEED=123 pytest -s -k whatever tests/torture/test_simulation.py` tells one of them again, line by line.
"""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from simulated_judge import SIGHTS, complaints, sights
from simulated_store import MemoryEngine
from simulated_world import World
from torture_rounds import rounds

from segue.core.inbound import Inbound, Receipt
from segue.core.inbox import Entry
from segue.core.leases import Lease
from segue.gateway import delivery
from segue.gateway.desk import Desk
from segue.gateway.lanes import Lanes
from segue.ports.store import Transaction
from segue.sessions import answering
from segue.storage.inbox import SqlInbox
from segue.storage.leases import SqlLeases

ONE = os.environ.get("SEGUE_SEED")
SEEDS = rounds(100, in_torture=10_000)
MAX_MORE = 2_000
"""Histories that are told besides, until everything that a run has to show was seen."""
HISTORIES = [range(int(ONE), int(ONE) + 1)] if ONE else [range(part * SEEDS, (part + 1) * SEEDS) for part in range(4)]
MOST_UNTIL_FOUND = 2_000
"""Histories in which a fault that was put in must show."""

pytestmark = pytest.mark.timeout(rounds(900, in_torture=7200))


@pytest.fixture(scope="module")
def engine() -> Iterator[MemoryEngine]:
    made = MemoryEngine()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """So much goes wrong that nobody would read it; of one history it is told."""
    if ONE is None:
        logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def told(seed: int, engine: MemoryEngine) -> tuple[World, list[str]]:
    world = World(seed, engine)
    try:
        world.run()
    except AssertionError as error:
        return world, [str(error)]
    return world, complaints(world)


@pytest.mark.torture
@pytest.mark.parametrize("seeds", HISTORIES, ids=str)
def test_whatever_happens_what_was_promised_is_true(engine: MemoryEngine, seeds: range) -> None:
    seen, wrong = Counter[str](), list[str]()
    more = range(1_000_000 + seeds.start, 1_000_000 + seeds.start + MAX_MORE)
    for seed in chain(seeds, () if ONE else more):
        if seed in more and all(seen[sight] for sight in SIGHTS):
            break
        world, found = told(seed, engine)
        seen.update(sights(world))
        if found:
            wrong.append(f"SEGUE_SEED={seed}: {' '.join(found)}")
            print(wrong[-1])
        if ONE:
            print(world.plan, *world.history, sep="\n")
    print(f"{len(seeds)} histories and more: {dict(sorted(seen.items()))}")
    assert wrong == []
    assert ONE or all(seen[sight] for sight in SIGHTS), f"the run is void: {seen}"


def test_the_same_seed_tells_the_same_history(engine: MemoryEngine) -> None:
    seeds = range(20)
    first = [told(seed, engine)[0].fingerprint for seed in seeds]
    again = [told(seed, engine)[0].fingerprint for seed in reversed(seeds)]
    assert first == again[::-1]
    assert len(set(first)) == len(seeds)


def hold_everything(patch: pytest.MonkeyPatch) -> None:
    """Whoever has lost a lease goes on as if it were theirs."""
    careful = SqlLeases.hold

    def hold(self: SqlLeases, lease: Lease, seconds: float) -> bool:
        careful(self, lease, seconds)
        return True

    patch.setattr(SqlLeases, "hold", hold)


def look_then_accept(patch: pytest.MonkeyPatch) -> None:
    """Whether a message is known is asked first, and then it is put down whatever has come between."""
    careful, add = Desk.receive, SqlInbox.add

    async def receive(self: Desk, inbound: Inbound) -> Receipt:
        def is_known(tx: Transaction) -> bool:
            entries = tx.inbox.listed(("waiting", "running", "done", "cancelled", "refused", "dead"))
            return any((one.message_id, one.edit) == (inbound.message_id, inbound.edit) for one in entries)

        if await self._door.read(is_known):
            return Receipt.KNOWN
        await asyncio.sleep(0)
        return await careful(self, inbound)

    def add_anyway(self: SqlInbox, entry: Entry) -> int | None:
        return add(self, entry) or add(self, entry._replace(message_id=f"{entry.message_id}-again"))

    patch.setattr(Desk, "receive", receive)
    patch.setattr(SqlInbox, "add", add_anyway)


def choose_then_begin(patch: pytest.MonkeyPatch) -> None:
    """What was chosen to be answered is answered, though somebody may have cancelled it since."""
    patch.setattr(answering, "is_waiting", lambda _tx, _entry: True)


def say_nothing_of_repeats(patch: pytest.MonkeyPatch) -> None:
    """What may have arrived is sent again as if it had not."""
    patch.setattr(delivery, "marked", lambda text, _traits: text)


def wake_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A lane in which something came is looked at again, also if it was looked at since."""
    careful = Lanes._begin

    def begin(self: Lanes, key: str) -> None:
        is_woken = key in self._again
        careful(self, key)
        if is_woken:
            self._again.add(key)

    patch.setattr(Lanes, "_begin", begin)


@pytest.mark.torture
@pytest.mark.parametrize(
    "fault", [hold_everything, look_then_accept, choose_then_begin, say_nothing_of_repeats, wake_for_ever]
)
def test_a_fault_that_is_put_in_is_found(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], None]
) -> None:
    fault(monkeypatch)
    for seed in range(MOST_UNTIL_FOUND):
        _, found = told(seed, engine)
        if found:
            print(f"{fault.__name__} shows in history {seed}: {found}")
            return
    pytest.fail(f"Nothing shows in {MOST_UNTIL_FOUND} histories.")
