"""The table, and what a reader must know to judge it. Sentences are chosen by what was measured."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from benchmarks.peer import PACKAGE, VERSION
from benchmarks.rows import NAMES, Row, Unit
from segue.storage.guards import file_system_of

_WITHIN = 2.0
"""How many times the cost of raw SQLite needs no reason."""


class Reason(NamedTuple):
    """Why Segue costs more than another side; said only when it does."""

    than_raw: str
    than_peer: str


REASONS = {
    "append": Reason(
        "a message is checked and brought into one form first, and in the same commit its session keeps its counters,"
        " its preview and its place in two lists",
        "nearly all of an append is waiting for the disk, and both wait for the same one",
    ),
    "length": Reason(
        "every column is read, and the conversation is made valid for a provider: each result is put behind its call,"
        " and a missing one is filled in",
        "the peer gives the rows back as they are, where Segue puts each result behind its call",
    ),
    "sustained": Reason(
        "each message pays for the checks and the lists of its session, as in a single append",
        "nearly all of an append is waiting for the disk, and both wait for the same one",
    ),
    "crowd": Reason(
        "each transaction is longer than the raw one, so that the others wait longer for their turn",
        "whoever waits for the file comes back after a random pause, which costs throughput and saves processor time",
    ),
    "list": Reason(
        "a row has 29 fields instead of 10, earlier parts of a conversation are left out, and tags are looked up",
        "the peer reads fewer columns",
    ),
    "cold": Reason(
        "nearly all of it is Python importing the command line, the settings and the store",
        "nearly all of both is Python importing",
    ),
    "size": Reason("there are more columns and more indexes", "there are more columns and more indexes"),
    "export": Reason(
        "every column of every message in every state is written, in a spelling that is the same on every machine, and"
        " looked through for keys and passwords",
        "Segue looks through all that it writes for keys and passwords, which the peer does only when asked to",
    ),
    "prune": Reason(
        "what is pruned is kept whole in the trash until that is emptied, and freed pages are overwritten;"
        " the raw program only deletes",
        "what is pruned is kept whole in the trash until that is emptied, and freed pages are overwritten;"
        " the peer only deletes",
    ),
    "routing": Reason(
        "the lane and its session are read, its reset policy is applied and the lane is written back with its version,"
        " where the raw program writes one row",
        "the lane and its session are read in the same transaction that writes them",
    ),
}

_BOUNDS = {"raw": "twice the cost of raw SQLite", "hermes": f"the cost of {PACKAGE}"}
TITLES = {
    "segue": "Segue",
    "postgres": "Segue on PostgreSQL",
    "raw": "raw SQLite",
    "hermes": f"{PACKAGE} {VERSION}",
}


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table; behind each other side's figure, how many times Segue's cost that is."""
    sides = [name for name in TITLES if any(name in row.values for row in rows)]
    lines = ["| | " + " | ".join(TITLES[side] for side in sides) + " |", "|---" * (len(sides) + 1) + "|"]
    ordered = sorted(rows, key=lambda row: NAMES.index(row.name))
    lines += [f"| {row.label} | " + " | ".join(_cell(row, side) for side in sides) + " |" for row in ordered]
    return "\n".join(lines)


def _cell(row: Row, side: str) -> str:
    if side not in row.values or (row.is_information and side != "hermes"):
        return ""
    times = "" if side == "segue" else f" ({factor(row.cost(side))})"
    remark = f"; {row.remarks[side]}" if side in row.remarks else ""
    return figure(row.values[side], row.unit) + times + remark


def figure(value: float, unit: Unit) -> str:
    match unit:
        case Unit.PER_SECOND:
            return f"{value:,.0f}/s"
        case Unit.BYTES:
            return f"{value / 1e6:,.0f} MB"
        case Unit.TIMES:
            return f"{value:.2f}"
    for limit, scale, name in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{_short(value * scale)} {name}"
    return f"{_short(value)} s"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def factor(times: float) -> str:
    return f"×{times:,.0f}" if times >= 10 else f"×{times:.1f}" if times >= 1 else f"×{times:.2f}"


class Findings(NamedTuple):
    """A run, ready to be told."""

    rows: Sequence[Row]
    facts: Mapping[str, Mapping[str, str]]
    """What each side says of itself."""
    machine: str
    command: str


def machine(folder: Path) -> str:
    """Where it was measured, in one sentence."""
    mounts = Path("/proc/self/mountinfo")
    system = file_system_of(folder.resolve(), mounts.read_text("utf-8", "replace")) if mounts.exists() else None
    cores = f"{os.cpu_count()} cores ({_processor()})"
    return f"{platform.system()} on {cores}, Python {platform.python_version()}, stores on {system or 'unknown'}"


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text("utf-8", "replace").splitlines() if described.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def summary(found: Findings) -> str:
    """What is printed when no page is written."""
    parts = [f"{found.machine}.", table(found.rows), "\n".join(map(_bullet, judgements(found.rows))), sides(found)]
    return "\n\n".join(filter(None, parts))


def judgements(rows: Sequence[Row]) -> list[str]:
    """Where Segue is not ahead of the peer, or not within twice of raw SQLite: by how much, and why."""
    return [*_behind(rows, "raw", _WITHIN), *_behind(rows, "hermes", 1.0)]


def _behind(rows: Sequence[Row], side: str, allowed: float) -> Iterator[str]:
    for name, reason in REASONS.items():
        own = [row for row in rows if (row.reason or row.name) == name and side in row.values]
        times = {row.label: 1 / row.cost(side) for row in own if not row.is_information}
        behind = {label: factor for label, factor in times.items() if factor > allowed}
        if behind:
            said = ", ".join(
                f"{label} ({factor:.{1 if factor >= 1.2 else 2}f} times)" for label, factor in behind.items()
            )
            why = reason.than_raw if side == "raw" else reason.than_peer
            yield f"More than {_BOUNDS[side]}: {said}. Why: {why}."


def sides(found: Findings) -> str:
    """What the sides are, as far as it was found out in the run."""
    facts = {TITLES[name]: told for name, told in found.facts.items() if told}
    lines = [
        f"- {title}: {', '.join(f'{fact} {value}' for fact, value in told.items())}" for title, told in facts.items()
    ]
    return "\n".join(lines)


_PAGE = """\
# Benchmarks

What the usual acts cost in Segue, on SQLite and on PostgreSQL, beside the same acts in raw SQLite and in the session
store of another agent. Figures depend on the machine; the factor behind each, how many times the cost of Segue on
SQLite it is, does so much less. A factor above 1 is slower or larger than that, one below 1 is faster or smaller.

{table}

## Where Segue costs more

{judgements}

## How it was measured

`{command}` on {date}: {machine}.

All sides had the same text: English, other scripts, emoji, tool calls, and tool outputs of up to 50 kB. Each side ran
in a process of its own; the sides took turns within every round, and figures are medians unless the row says otherwise.
Every commit was flushed to disk on all sides (`synchronous=FULL` in SQLite). An index that one side keeps and another
does not is part of what it costs here.

{sides}

Segue on PostgreSQL is the same Segue, called in the same way, with a server on the same machine: reached through a
socket, with the settings it comes with, as a role that sees only what it may. Every statement there is a question to
another process, and over a network it takes longer. What the server does by itself within a minute after many new rows
(`VACUUM ANALYZE`) was done before anything was measured. Its size is that of the database less an empty one, without
the server's log; its memory is that of the command, without the server's.

Raw SQLite is the simplest program that does the work: two tables, one transaction for each message, no product around
it. {package} {version} was called through its own Python classes and its own command line, installed from the package
index into an environment of its own. Cold processes and exports are whole commands, from start to exit.

`just bench --quick` runs a smaller version in a few minutes, `just bench --rows list cold` measures only those rows,
and `just bench --write` rewrites this page. The programs are in `benchmarks/`.
"""


def _bullet(sentence: str) -> str:
    return fill(f"- {sentence}", 120, subsequent_indent="  ", break_on_hyphens=False)


def page(found: Findings) -> str:
    """docs/benchmarks.md."""
    return _PAGE.format(
        table=table(found.rows),
        judgements="\n".join(map(_bullet, judgements(found.rows))) or "Nowhere in this table.",
        command=found.command,
        date=f"{datetime.now().astimezone():%Y-%m-%d}",
        machine=found.machine,
        sides=sides(found),
        package=PACKAGE,
        version=VERSION,
    )
