"""How long an answer takes, how fast a store fills, and how large it is: all sides in turns, over the same text."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.rounds import seconds, slowest, turns
from benchmarks.search.asking import Asked
from benchmarks.search.conversations import Library, written
from benchmarks.search.processes import OURS, Process, Side, opened
from benchmarks.search.queries import Draw, Kind, answers

SEED = 20250305
_SAMPLED = 100  # conversations
_FEW_ROUNDS = 1_000_000  # messages from which on there are fewer


class Plan(NamedTuple):
    queries: int
    """Of each row."""
    rounds: int
    late_rounds: int
    """Of the largest stores."""

    def rounds_for(self, messages: int) -> int:
        return self.late_rounds if messages >= _FEW_ROUNDS else self.rounds


FULL = Plan(queries=10, rounds=8, late_rounds=4)
QUICK = Plan(queries=4, rounds=3, late_rounds=3)


class Cell(NamedTuple):
    """What a side needs for the queries of a row that it has an answer to."""

    median: float
    slowest: float
    answered: int
    """Queries; the others found nothing true."""
    asked: int


class Row(NamedTuple):
    kind: Kind
    cells: dict[str, Cell]
    """By side; one without the filter has none."""


class Measured(NamedTuple):
    """All about stores of one size."""

    messages: int
    text: int
    measurements: int
    rows: list[Row]
    rates: dict[str, float]
    """Messages a second, stored and indexed."""
    index_rates: dict[str, float]
    """Messages a second when Segue makes its index anew."""
    sizes: dict[str, float]
    """Bytes on disk for each byte of text."""


def measured(sides: Sequence[Side], messages: int, plan: Plan, folder: Path, say: Callable[[str], None]) -> Measured:
    """Fill every side and search it."""
    folder.mkdir(mode=0o700)
    say(f"writing {messages:,} messages")
    library = written(folder / "sessions.jsonl", messages, SEED, time.time())
    rates, sizes = {}, {}
    for side in sides:
        say(f"{side.title}: filling with {messages:,} messages")
        rates[side.name] = messages / _fill(side, folder, library)
        sizes[side.name] = side.keeper.size(folder / side.name) / library.text
    rounds = plan.rounds_for(messages)
    with opened(sides, folder) as processes:
        draw = Draw(library.sample(_SAMPLED), SEED)
        rows = []
        for kind in Kind:
            say(f"{messages:,} messages: {kind}")
            rows.append(_row(processes, library, kind, draw.queries(kind, plan.queries), rounds))
    index_rates = {}
    with opened([side for side in sides if side.name in OURS], folder) as processes:
        for process in processes:
            say(f"{process.side.title}: making the index anew")
            index_rates[process.side.name] = messages / process.ask("reindex")
    shutil.rmtree(folder)
    return Measured(messages, library.text, plan.queries * rounds, rows, rates, index_rates, sizes)


def _fill(side: Side, folder: Path, library: Library) -> float:
    with opened([side], folder) as [process]:
        spent = float(process.ask("fill", file=str(library.file)))
        process.close()
    return spent


def _row(processes: Sequence[Process], library: Library, kind: Kind, queries: list[Asked], rounds: int) -> Row:
    able = [process for process in processes if _can(process.side, queries[0])]
    known = {process.side.name: [one for one in queries if _finds(process, library, one)] for process in able}
    spent: dict[str, list[list[int]]] = {name: [] for name in known}
    for number in range(rounds):
        for place, asked in enumerate(queries):
            for process in turns(able, number + place):
                if asked in known[process.side.name]:
                    spent[process.side.name].append([process.search(asked).spent])
    cells = {name: _cell(times, len(known[name]), len(queries)) for name, times in spent.items()}
    return Row(kind, cells)


def _can(side: Side, asked: Asked) -> bool:
    return (not asked.source or "source" in side.filters) and (not asked.since or "since" in side.filters)


def _finds(process: Process, library: Library, asked: Asked) -> bool:
    """Whether one of the conversations found is an answer; it also brings the store into memory."""
    numbers = {int(session.rpartition("_")[2]) for session in process.search(asked).sessions}
    return any(answers(library.session(number), asked) for number in numbers)


def _cell(spent: list[list[int]], answered: int, asked: int) -> Cell:
    if not answered:
        return Cell(0.0, 0.0, 0, asked)
    return Cell(seconds({"": spent})[""], slowest({"": spent})[""], answered, asked)
