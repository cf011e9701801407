"""The rows of the table, measured. Each scenario fills stores of its own and yields what was asked for."""

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpus import DAY, Corpus, text_bytes, write
from benchmarks.rounds import Plan, interleaved, seconds, slowest, turns
from benchmarks.rows import Row, Unit
from benchmarks.sides import Process, Run, Side, home_of, opened, run

SEED = 20250305
NEW_LANES = 1_000_000  # lanes counted from here are new
PRUNED_AFTER = 90.0  # days
PROCESSES = 4


class Bench:
    """A run: the sides, the corpus and the folder that holds their stores."""

    def __init__(self, sides: Sequence[Side], plan: Plan, folder: Path, wanted: Collection[str]) -> None:
        self.sides = sides
        self.plan = plan
        self.wanted = wanted
        self.facts: dict[str, dict[str, str]] = {side.name: {} for side in sides}
        """What each side says of itself."""
        self._folder = folder
        self._began = time.monotonic()
        self.messages = folder / "messages.jsonl"
        most = max(plan.sustained, plan.crowd, plan.append_rounds * plan.appends)
        write(self.messages, Corpus(SEED, time.time()).messages(most))

    def rows(self) -> Iterator[Row]:
        for names, scenario in SCENARIOS.items():
            if not self.wanted or set(names) & set(self.wanted):
                folder = self._folder / names[0]
                yield from scenario(self, folder)
                shutil.rmtree(folder)

    def wants(self, name: str) -> bool:
        return not self.wanted or name in self.wanted

    def say(self, sentence: str) -> None:
        print(f"[{time.monotonic() - self._began:5.0f} s] {sentence}", file=sys.stderr)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[list[Process]]:
        """A worker for each side."""
        with opened(self.sides, folder) as processes:
            for process in processes:
                self.facts[process.side.name] |= process.ask("facts")
            yield processes

    def corpus(self, days_ago: float = 30) -> Corpus:
        return Corpus(SEED + int(days_ago), time.time() - days_ago * DAY)

    def fill(self, processes: Sequence[Process], file: Path, first: int, beyond: int) -> None:
        for process in processes:
            self.say(f"{process.side.title}: filling, {beyond:,} sessions")
            process.ask("fill", file=str(file), first=first, beyond=beyond)


def appends(bench: Bench, folder: Path) -> Iterator[Row]:
    """One message at a time, into a new session and into long ones; and long ones read back."""
    plan = bench.plan
    file = _written(folder, "long", (next(bench.corpus().sessions(1, n, begin=n)) for n in plan.lengths))
    names = {length: f"bench_{length:06d}" for length in plan.lengths}
    with bench.opened(folder) as processes:

        def append_to(session: str) -> dict[str, list[list[int]]]:
            def act(process: Process, number: int) -> list[int]:
                at = {"first": number * plan.appends, "beyond": (number + 1) * plan.appends}
                return list(process.ask("append", session=session, file=str(bench.messages), **at)["spent"])

            return interleaved(processes, plan.append_rounds, act)

        if bench.wants("append"):
            bench.say("append: one message after another")
            for process in processes:
                process.ask("begin", session="fresh")
            spent = append_to("fresh")
            yield Row("append", "one durable append", Unit.SECONDS, seconds(spent))
            yield Row("append", "one durable append, 99th percentile", Unit.SECONDS, slowest(spent))
            yield from _unsafe_append(bench, processes, append_to)
        if bench.wants("length"):
            bench.fill(processes, file, 0, len(plan.lengths))
            for length, session in names.items():
                told = {process.side.title: process.ask("digest", session=session) for process in processes}
                assert len({tuple(digest) for digest in told.values()}) == 1, told
                bench.say(f"length: {length:,} messages")
                times = max(2, 2_000 // length)

                def load(process: Process, _: int, session: str = session, times: int = times) -> list[int]:
                    return list(process.ask("load", session=session, times=times))

                loads = interleaved(processes, plan.rounds, load)
                yield Row("length", f"load a conversation of {length:,} messages", Unit.SECONDS, seconds(loads))
            for length, session in names.items():
                label = f"append to a conversation of {length:,} messages"
                yield Row("length", label, Unit.SECONDS, seconds(append_to(session)), reason="append")


def _unsafe_append(
    bench: Bench, processes: Sequence[Process], append_to: Callable[[str], dict[str, list[list[int]]]]
) -> Iterator[Row]:
    """The peer as it comes, when its own level of safety is lower."""
    for process in processes:
        level = process.ask("facts").get("synchronous by default", "FULL")
        if level not in ("FULL", "EXTRA"):
            process.ask("relax")
            label = f"for information: {process.side.title} with its own synchronous={level}"
            yield Row("append", label, Unit.SECONDS, seconds(append_to("fresh")), is_information=True)


def crowd(bench: Bench, folder: Path) -> Iterator[Row]:
    """Several processes append to one store at once, each into a session of its own."""
    bench.say(f"crowd: {PROCESSES} processes at once")
    rates: dict[str, list[float]] = {side.name: [] for side in bench.sides}
    worst: dict[str, list[list[int]]] = {side.name: [] for side in bench.sides}
    troubles: dict[str, Counter[str]] = {side.name: Counter() for side in bench.sides}
    for number in range(bench.plan.heavy_rounds):
        for side in turns(bench.sides, number):
            told, lost = _crowd_of(side, folder / str(number), bench)
            done = sum(len(one["spent"]) - sum(one["errors"].values()) for one in told)
            rates[side.name].append(done / (max(one["ended"] for one in told) - min(one["began"] for one in told)))
            worst[side.name].append([spent for one in told for spent in one["spent"]])
            troubles[side.name].update({"errors": sum(sum(one["errors"].values()) for one in told), "lost": lost})
    remarks = {name: f"{trouble['errors']} errors, {trouble['lost']} lost" for name, trouble in troubles.items()}
    values = {name: median(found) for name, found in rates.items()}
    yield Row("crowd", f"{PROCESSES} processes appending at once, together", Unit.PER_SECOND, values, remarks)
    yield Row("crowd", f"one append among {PROCESSES} processes, 99th percentile", Unit.SECONDS, slowest(worst))


def _crowd_of(side: Side, folder: Path, bench: Bench) -> tuple[list[dict[str, Any]], int]:
    """What each process tells, and how many messages that were acknowledged are not there."""
    home = home_of(side, folder)
    with ExitStack() as running:
        processes = []
        for number in range(PROCESSES):
            processes.append(Process(side, home))
            running.callback(processes[-1].end)
            processes[-1].ask("begin", session=f"crowd_{number}")
        at = time.monotonic() + 0.5
        for number, process in enumerate(processes):
            span = {"first": 0, "beyond": bench.plan.crowd, "at": at}
            process.tell("append", session=f"crowd_{number}", file=str(bench.messages), **span)
        told = [process.answer() for process in processes]
        there = sum(processes[0].ask("count", session=f"crowd_{number}") for number in range(PROCESSES))
        acknowledged = sum(len(one["spent"]) - sum(one["errors"].values()) for one in told)
        for process in processes:
            process.close()
        return told, acknowledged - there


def lists(bench: Bench, folder: Path) -> Iterator[Row]:
    """The 20 most recently active of more and more sessions, in a running program and from a cold start."""
    plan = bench.plan
    most = plan.sessions if bench.wants("list") else plan.sessions[:2]
    file = _written(folder, "many", bench.corpus().sessions(most[-1], 4, is_short=True))
    with bench.opened(folder) as processes:
        before = 0
        for number, sessions in enumerate(most):
            bench.fill(processes, file, before, sessions)
            before = sessions
            if bench.wants("list"):
                yield from _lists_at(bench, processes, sessions)
            if bench.wants("cold") and number == 1:
                yield from _cold_lists(bench, folder, sessions)


def _lists_at(bench: Bench, processes: Sequence[Process], sessions: int) -> Iterator[Row]:
    bench.say(f"list: {sessions:,} sessions")
    spent = interleaved(processes, bench.plan.rounds, lambda process, _: process.ask("newest", times=5))
    yield Row("list", f"list 20 of {sessions:,} sessions, last active first", Unit.SECONDS, seconds(spent))
    if sessions == bench.plan.sessions[-1] and "hermes" in spent:

        def by_start(process: Process, _: int) -> list[int]:
            order = "newest_started" if process.side.name == "hermes" else "newest"
            return list(process.ask("newest", times=5, order=order))

        spent = interleaved(processes, bench.plan.rounds, by_start)
        label = "for information: Hermes by start, its own order"
        yield Row("list", label, Unit.SECONDS, seconds(spent), is_information=True)


def _cold_lists(bench: Bench, folder: Path, sessions: int) -> Iterator[Row]:
    bench.say(f"cold: a process that lists, {sessions:,} sessions")
    spent: dict[str, list[float]] = {side.name: [] for side in bench.sides}
    bare = []
    for number in range(bench.plan.cold_rounds):
        for side in turns(bench.sides, number):
            spent[side.name].append(run(side.lists, home_of(side, folder)).seconds)
        bare.append(run((sys.executable, "-c", "pass"), folder).seconds)
    values = {name: median(times) for name, times in spent.items()}
    remarks = {"raw": f"`python -c pass` alone {median(bare) * 1e3:.0f} ms"}
    yield Row("cold", f"a cold process that lists 20 of {sessions:,}", Unit.SECONDS, values, remarks)


def archive(bench: Bench, folder: Path) -> Iterator[Row]:
    """A store with long outputs in it: how large it is, how it leaves, how it grows, how half of it goes."""
    sessions, messages = bench.plan.archive
    old = bench.corpus(400).sessions(sessions // 2, messages)
    recent = bench.corpus().sessions(sessions - sessions // 2, messages, begin=sessions // 2)
    file = _written(folder, "archive", chain(old, recent))
    with bench.opened(folder) as processes:
        bench.fill(processes, file, 0, sessions)
        for process in processes:
            process.close()
            kept = process.side.keeper.text_indexes(home_of(process.side, folder))
            bench.facts[process.side.name]["full-text indexes"] = str(kept)
    size = f"{sessions * messages:,} messages"
    if bench.wants("size"):
        with file.open(encoding="utf-8") as lines:
            text = sum(text_bytes(message) for line in lines for message in json.loads(line)["messages"])
        values = {side.name: side.keeper.size(home_of(side, folder)) / text for side in bench.sides}
        yield Row("size", f"bytes on disk per byte of text, {size}", Unit.TIMES, values)
    if bench.wants("export"):
        bench.say("export: all, as a process")
        runs: dict[str, list[Run]] = {side.name: [] for side in bench.sides}
        for number in range(bench.plan.heavy_rounds):
            for side in turns(bench.sides, number):
                target = folder / f"{side.name}.jsonl"
                runs[side.name].append(run(side.exports, home_of(side, folder), file=target))
                assert sum(1 for _ in target.open("rb")) == sessions, f"{side.title} exported not all"
        values = {name: median(one.seconds for one in found) for name, found in runs.items()}
        yield Row("export", f"export all, {size}", Unit.SECONDS, values)
        peaks = {name: float(median(one.peak for one in found)) for name, found in runs.items()}
        yield Row("export", "export all, peak memory", Unit.BYTES, peaks)
    if bench.wants("prune"):
        yield from _prune(bench, folder)
    if bench.wants("sustained"):
        yield from _sustained(bench, folder, size)


def _prune(bench: Bench, folder: Path) -> Iterator[Row]:
    bench.say("prune: the older half")
    spent: dict[str, list[list[int]]] = {side.name: [] for side in bench.sides}
    half = bench.plan.archive[0] // 2
    for number in range(bench.plan.heavy_rounds):
        for side in turns(bench.sides, number):
            copy = folder / f"copy_{number}" / side.name
            side.keeper.copy(home_of(side, folder), copy)
            with opened([side], copy.parent) as [process]:
                nanoseconds, pruned = process.ask("prune", days=PRUNED_AFTER)
                process.close()
            assert pruned == half, (side.title, pruned)
            spent[side.name].append([nanoseconds])
            shutil.rmtree(copy)
    yield Row("prune", f"prune {half:,} of {2 * half:,} sessions", Unit.SECONDS, seconds(spent))


def _sustained(bench: Bench, folder: Path, size: str) -> Iterator[Row]:
    count = bench.plan.sustained
    with bench.opened(folder) as processes:

        def act(process: Process, number: int) -> list[int]:
            bench.say(f"sustained: {process.side.title}, {count:,} appends")
            process.ask("begin", session=f"sustained_{number}")
            span = {"file": str(bench.messages), "first": 0, "beyond": count}
            return list(process.ask("append", session=f"sustained_{number}", **span)["spent"])

        spent = interleaved(processes, bench.plan.heavy_rounds, act)
    rates = {name: count / (median(map(sum, rounds)) / 1e9) for name, rounds in spent.items()}
    yield Row("sustained", f"{count:,} appends in a row, store of {size}", Unit.PER_SECOND, rates)
    longest = {name: max(chain.from_iterable(rounds)) / 1e9 for name, rounds in spent.items()}
    yield Row("sustained", f"the slowest of {count:,} appends in a row", Unit.SECONDS, longest)


def lanes(bench: Bench, folder: Path) -> Iterator[Row]:
    """Which session a message belongs to, decided and kept."""
    plan = bench.plan
    with bench.opened(folder) as processes:
        before = 0
        for count in plan.lanes:
            for process in processes:
                bench.say(f"{process.side.title}: {count:,} lanes")
                process.ask("fill_lanes", first=before, beyond=count)
            before = count

            def old(process: Process, number: int, count: int = count) -> list[int]:
                known = [(number * plan.routed + one) * 7 % count for one in range(plan.routed)]
                return list(process.ask("route", lanes=known))

            def new(process: Process, number: int, count: int = count) -> list[int]:
                first = NEW_LANES + count * 1000 + number * plan.routed
                return list(process.ask("route", lanes=list(range(first, first + plan.routed))))

            label = f"route a message, {count:,} lanes"
            yield Row("routing", label, Unit.SECONDS, seconds(interleaved(processes, plan.rounds, old)))
            label = f"route the first message of a new lane, {count:,} lanes"
            yield Row("routing", label, Unit.SECONDS, seconds(interleaved(processes, plan.rounds, new)))


def _written(folder: Path, name: str, items: Iterator[object]) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{name}.jsonl"
    write(file, items)
    return file


SCENARIOS: dict[tuple[str, ...], Callable[[Bench, Path], Iterator[Row]]] = {
    ("append", "length"): appends,
    ("size", "export", "prune", "sustained"): archive,
    ("crowd",): crowd,
    ("list", "cold"): lists,
    ("routing",): lanes,
}
