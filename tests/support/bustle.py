"""People who talk and agents who answer, one step after another, as chance wants it."""

import random

from lane_bench import Bench
from lane_model import FRESHNESS, IDLE, SEATS

from segue.core.inbound import Cursor, Inbound
from segue.core.turns import TurnState
from segue.ports.store import Store

COMMANDS = ("/new", "/title tea", "/status", "/undo", "/retry", "/queue followup", "/stop", "/new let us begin")


def bench_on(store: Store, life: int = 0) -> Bench:
    """A gateway in its so many-th life."""
    begun = 1_750_000_000.0 + life * 1_000
    return Bench(store, "collect", "old", 5, False, IDLE, FRESHNESS, now=begun, lives=life, turns=life * 10_000)


class Bustle:
    """What happens in the lanes of a bench."""

    def __init__(self, bench: Bench, chance: random.Random, life: int) -> None:
        self._bench = bench
        self._chance = chance
        self._life = life
        self._steps = 0
        self.brought: list[Inbound] = []
        """What has been put down, or is being put down."""

    def go_on(self) -> None:
        self._steps += 1
        self._bench.now += 1
        self._bench.fresh = f"session-{self._life}-{self._steps}"
        lane = self._chance.choice(SEATS).lane
        if self._chance.random() < 0.5:
            self._arrive()
        elif lane not in self._bench.doing:
            self._bench.work(lane, self._bench.due(lane))
        elif self._chance.random() < 0.5:
            self._bench.say_between(lane, self._words(), f"result {self._steps}")
        else:
            self._bench.end(lane, TurnState.DONE, self._words())

    def _arrive(self) -> None:
        if self.brought and self._chance.random() < 0.1:
            assert not self._bench.arrive(self._chance.choice(self.brought)).is_new
            return
        text = self._chance.choice(COMMANDS) if self._chance.random() < 0.2 else self._words()
        name = f"m{self._life}-{self._steps}"
        self.brought.append(Inbound(self._chance.choice(SEATS).source, name, text, cursor=Cursor("offset", name)))
        self._bench.arrive(self.brought[-1])

    def _words(self) -> str:
        much = 2_000 if self._chance.random() < 0.1 else 20
        return f"words {self._steps} " + "and more " * self._chance.randrange(much // 10)
