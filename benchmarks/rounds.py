"""How much is measured, and in which order: sides take turns, so that whatever the machine does hits all alike."""

from collections.abc import Callable, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple, TypeVar

from benchmarks.sides import Process

T = TypeVar("T")


class Plan(NamedTuple):
    """How much of everything."""

    rounds: int
    append_rounds: int
    """Many short ones: a disk that is busy for a moment must not hit one side alone."""
    appends: int
    """Of one round."""
    sustained: int
    crowd: int
    """Messages of each process."""
    lengths: tuple[int, ...]
    sessions: tuple[int, ...]
    archive: tuple[int, int]
    """Sessions, and the messages of each."""
    lanes: tuple[int, ...]
    routed: int
    heavy_rounds: int
    cold_rounds: int


FULL = Plan(
    rounds=10,
    append_rounds=80,
    appends=8,
    sustained=2000,
    crowd=250,
    lengths=(100, 1_000, 10_000),
    sessions=(1_000, 10_000, 25_000),
    archive=(500, 40),
    lanes=(100, 1_000, 10_000),
    routed=2,
    heavy_rounds=3,
    cold_rounds=9,
)
QUICK = Plan(
    rounds=4,
    append_rounds=20,
    appends=5,
    sustained=300,
    crowd=60,
    lengths=(100, 1_000),
    sessions=(1_000, 10_000),
    archive=(100, 40),
    lanes=(100, 1_000),
    routed=2,
    heavy_rounds=1,
    cold_rounds=3,
)


def turns(those: Sequence[T], number: int) -> list[T]:
    """The order of a round: another one begins each time."""
    first = number % len(those)
    return [*those[first:], *those[:first]]


def interleaved(processes: Sequence[Process], rounds: int, act: Callable[[Process, int], T]) -> dict[str, list[T]]:
    """What each side gave in each round."""
    given: dict[str, list[T]] = {process.side.name: [] for process in processes}
    for number in range(rounds):
        for process in turns(processes, number):
            given[process.side.name].append(act(process, number))
    return given


def seconds(spent: dict[str, list[list[int]]]) -> dict[str, float]:
    return {name: median(chain.from_iterable(rounds)) / 1e9 for name, rounds in spent.items()}


def slowest(spent: dict[str, list[list[int]]]) -> dict[str, float]:
    """The 99th percentile."""
    ranked = {name: sorted(chain.from_iterable(rounds)) for name, rounds in spent.items()}
    return {name: times[min(len(times) - 1, len(times) * 99 // 100)] / 1e9 for name, times in ranked.items()}
