"""The page about search: what was measured, where Segue is behind, and what a reader must know to judge it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from textwrap import fill
from typing import NamedTuple

from benchmarks.report import factor, figure
from benchmarks.rows import Unit
from benchmarks.search.asking import LIMIT
from benchmarks.search.processes import OURS, POSTGRES, SEGUE
from benchmarks.search.recall import FIRST, Quality
from benchmarks.search.speed import Cell, Measured, Row
from segue.sessions.searching import RANKED

NOTHING = "finds nothing"
NO_FILTER = "–"
MEDIAN, SLOWEST = "median", "99th percentile"
_WHY_SLOWER = (
    f"Why it is slower there: the index is asked first whether it is whole, and up to {RANKED} matches are read and"
    " compared by Segue itself, not by SQLite; neither grows much with the store."
)


class Findings(NamedTuple):
    """A run, ready to be told."""

    titles: Mapping[str, str]
    """Of the sides, in the order of the columns."""
    speed: Sequence[Measured]
    quality: Quality | None
    facts: Mapping[str, Mapping[str, str]]
    """What each side says of itself."""
    machine: str
    command: str


def speed_table(found: Measured, titles: Mapping[str, str]) -> str:
    """Medians and 99th percentiles; behind each, how many times Segue's that is."""
    sides = [name for name in titles if name in found.rates]
    lines = _head("", [titles[side] for side in sides])
    lines += [_line(row.kind, [_cell(row, side) for side in sides]) for row in found.rows]
    rates = [_per_second(found.rates, side) for side in sides]
    sizes = [figure(found.sizes[side], Unit.TIMES) + _larger(found, side) for side in sides]
    lines.append(_line("messages stored and indexed", rates))
    lines.append(_line("messages indexed anew", [_per_second(found.index_rates, side) for side in sides]))
    lines.append(_line("bytes on disk per byte of text", sizes))
    return "\n".join(lines)


def _head(corner: str, titles: Sequence[str]) -> list[str]:
    return [_line(corner, titles), "|---" * (len(titles) + 1) + "|"]


def _line(label: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([label, *cells])} |"


def _cell(row: Row, side: str) -> str:
    cell = row.cells.get(side)
    if cell is None:
        return NO_FILTER
    if not cell.answered:
        return NOTHING
    own = row.cells[SEGUE]
    told = _figures(cell)
    if side != SEGUE and own.answered:
        told += f" ({factor(cell.median / own.median)}, {factor(cell.slowest / own.slowest)})"
    return told if cell.answered == cell.asked else f"{told}; finds {cell.answered} of {cell.asked}"


def _figures(cell: Cell) -> str:
    return f"{figure(cell.median, Unit.SECONDS)}, {figure(cell.slowest, Unit.SECONDS)}"


def _per_second(rates: Mapping[str, float], side: str) -> str:
    if side not in rates:
        return ""
    behind = "" if side == SEGUE else f" ({factor(rates[SEGUE] / rates[side])})"
    return figure(rates[side], Unit.PER_SECOND) + behind


def _larger(found: Measured, side: str) -> str:
    return "" if side == SEGUE else f" ({factor(found.sizes[side] / found.sizes[SEGUE])})"


def quality_table(found: Quality, titles: Mapping[str, str]) -> str:
    """Shares of the questions; a row for each kind of them."""
    sides = [name for name in titles if name in found.scores]
    scores = [found.scores[side] for side in sides]
    lines = _head("questions", [titles[side] for side in sides])
    for kind, count in found.counts.items():
        lines.append(_line(f"{kind.replace('_', ' ')} ({count})", [_percent(one.shares[kind]) for one in scores]))
    total = sum(found.counts.values())
    lines.append(_line(f"**all ({total})**", [f"**{_percent(one.overall)}**" for one in scores]))
    lines.append(_line(f"those with CJK ({found.cjk})", [_percent(one.cjk) for one in scores]))
    lines.append(_line(f"outdated fact first ({found.outdated})", [_percent(one.outdated) for one in scores]))
    lines.append(_line(f"refused with an error ({total})", [str(one.troubles) for one in scores]))
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def judgements(found: Findings) -> list[str]:
    """Where Segue is not ahead: by how much."""
    slower = [*_slower(found, MEDIAN), *_slower(found, SLOWEST)]
    said = [*slower, *([_WHY_SLOWER] if slower else []), *_slower_to_fill(found)]
    return [*said, *_worse(found.quality, found.titles)] if found.quality else said


def _others(sides: Iterable[str]) -> list[str]:
    """Those that are not the product itself."""
    return [side for side in sides if side not in OURS]


def _slower(found: Findings, which: str) -> Iterator[str]:
    for store in found.speed:
        for side in _others(store.rates):
            factors = {row.kind: _cost(row, side, which) for row in store.rows}
            behind = {kind: factor for kind, factor in factors.items() if factor > 1}
            told = [f"{kind} ({factor:.{1 if factor >= 1.2 else 2}f} times)" for kind, factor in behind.items()]
            if told:
                yield f"Slower than {found.titles[side]} at {store.messages:,} messages, {which}: {'; '.join(told)}."


def _cost(row: Row, side: str, which: str) -> float:
    """How many times as long as a side that answers as much Segue takes; 0 when it answers less."""
    cell, own = row.cells.get(side), row.cells[SEGUE]
    if cell is None or not cell.answered or cell.answered < own.answered:
        return 0.0
    return own.median / cell.median if which == MEDIAN else own.slowest / cell.slowest


def _slower_to_fill(found: Findings) -> Iterator[str]:
    for store in found.speed:
        for side in _others(store.rates):
            if store.rates[side] > store.rates[SEGUE]:
                yield f"Slower to fill than {found.titles[side]} at {store.messages:,} messages."
            if store.sizes[side] < store.sizes[SEGUE]:
                yield f"Larger on disk than {found.titles[side]} at {store.messages:,} messages."


def _worse(quality: Quality, titles: Mapping[str, str]) -> Iterator[str]:
    own = quality.scores[SEGUE]
    if quality.scores.get(POSTGRES, own) != own:
        yield f"{titles[POSTGRES]} did not answer every question as Segue on SQLite did."
    for side in _others(quality.scores):
        score = quality.scores[side]
        better = [kind.replace("_", " ") for kind, share in score.shares.items() if share > own.shares[kind]]
        if better:
            yield f"Finds less than {titles[side]} for these questions: {', '.join(better)}."
        if score.outdated < own.outdated:
            but = f"; {titles[side]} finds fewer facts altogether" if score.overall < own.overall else ""
            yield f"Puts an outdated fact first more often than {titles[side]}{but}."


_PAGE = """\
# Search benchmarks

How fast search answers, and how often it finds what was said, in Segue, on SQLite and on PostgreSQL, and in two other
stores of conversations. Figures depend on the machine; the factors behind them, how many times those of Segue on SQLite
they are, do so much less. A factor above 1 is slower or larger than that, one below 1 is faster or smaller.

{speed}{quality}## Where Segue is behind

{judgements}

## How it was measured

`{command}` on {date}: {machine}.

{sides}

All sides had the same conversations: English, other scripts, tool calls and their results, names that are said only
once. Each side ran in a process of its own and in its own environment, and the sides took turns at every query. Queries
were drawn from words that do occur, and asked once before the clock ran; a query counts when at least one of the
conversations found is a true answer. A dash is a filter that a side does not have.

Segue on PostgreSQL is the same Segue, called in the same way, with a server on the same machine: reached through a
socket, with the settings it comes with, as a role that sees only what it may. Every statement there is a question to
another process, and over a network it takes longer. What the server does by itself within a minute after many new rows
(`VACUUM ANALYZE`) is part of filling it. Its size is that of the database less an empty one, without the server's log.

Each side searches as it comes. Segue compares the newest {ranked} matches with each other, gives up after a quarter
of a second, and leaves the output of tools out unless asked; parts of words were asked for as `~part`. hermes-agent
ranks all matches, those in the output of tools included, looks through every message for one or two CJK characters,
and adds what was said around each hit, as Segue does. llm is what `llm logs -q` calls: a question and its answer are
one row there, the output of tools is not searched, and each row found comes with its conversation; days are told by
its ids, which begin with the time.

Filling is the import of each side: Segue commits every conversation by itself, llm was given the same, hermes-agent
takes hundreds at once. BM25 alone is Segue with the same index and the same fallbacks that ranks all matches by their
words alone, leaving out age, title and origin. Questions were asked as they stand; one that a side refuses with an
error is one that it does not find.

`just bench-search --quick` runs a smaller version, `just bench-search --sizes 40k` measures stores of that size, and
`just bench-search --write` rewrites this page. The programs are in `benchmarks/search/`, the facts and the questions in
`benchmarks/quality/`.
"""

_SPEED = """\
## How fast

Each cell is the median and the 99th percentile of a search for the {limit} best messages.

{tables}

"""

_TABLE = """\
### {messages:,} messages

{text} of text, {measurements} measurements of each cell.

{table}
"""

_QUALITY = """\
## How well

The share of the questions for which a wanted conversation is among the first {first} found, of {conversations:,}. Facts
and questions were written before the ranking. An outdated fact is one that a later conversation replaced; who finds
neither of the two makes no mistake there.

{table}

"""


def page(found: Findings) -> str:
    """docs/search-benchmarks.md."""
    return _PAGE.format(
        speed=_speed(found) if found.speed else "",
        quality=_quality(found.quality, found.titles) if found.quality else "",
        judgements="\n".join(map(_bullet, judgements(found))) or "Nowhere in these tables.",
        ranked=RANKED,
        command=found.command,
        date=f"{datetime.now().astimezone():%Y-%m-%d}",
        machine=found.machine,
        sides="\n".join(_facts(found)),
    )


def _speed(found: Findings) -> str:
    tables = [
        _TABLE.format(
            messages=store.messages,
            text=figure(store.text, Unit.BYTES),
            measurements=store.measurements,
            table=speed_table(store, found.titles),
        )
        for store in found.speed
    ]
    return _SPEED.format(limit=LIMIT, tables="\n".join(tables).rstrip())


def _quality(found: Quality, titles: Mapping[str, str]) -> str:
    return _QUALITY.format(conversations=found.conversations, first=FIRST, table=quality_table(found, titles))


def _facts(found: Findings) -> Iterator[str]:
    for side, told in found.facts.items():
        yield f"- {found.titles[side]}: {', '.join(f'{fact} {value}' for fact, value in told.items())}"


def _bullet(sentence: str) -> str:
    return fill(f"- {sentence}", 120, subsequent_indent="  ", break_on_hyphens=False)
