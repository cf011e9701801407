"""`segue batch`: everything that a file asks, each line in a conversation of its own."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from segue import app
from segue.cli.completing import complete_batch
from segue.cli.files import opened, writer
from segue.cli.groups import CommandGroup
from segue.cli.options import AS_JSON
from segue.cli.output import Column, note, say, show_json, table
from segue.config import Settings
from segue.core.batches import AT_ONCE, FAILED, MOST_AT_ONCE, Line, Result, checked_name, name_after, refuse_another
from segue.core.errors import Invalid
from segue.core.inbox import Entry, InboxState
from segue.core.keys import DEFAULT_AGENT
from segue.core.moments import ago
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import one_line
from segue.platforms.batch.inbound import read_lines
from segue.sessions.batching import Summary, get_lines, known_lines, list_batches, results_of
from segue.storage.store import SqlStore

STDOUT = Path("-")
_AT_A_TIME = 200
"""Results that are read at once: others want to write as well."""
_INTERRUPTED = 130
_BATCHES = [
    Column("Batch"),
    Column("Asked"),
    Column("Answered"),
    Column("Failed"),
    Column("Open"),
    Column("Last", yields=1),
]
_RESULTS = [Column("Line"), Column("State"), Column("Session", yields=1), Column("Answer", 1)]
_NAME = click.argument("name", shell_complete=complete_batch)


class Ended(NamedTuple):
    """How a run of a batch ended."""

    name: str
    lines: int
    done: int
    failed: int
    is_interrupted: bool

    @property
    def left(self) -> int:
        return self.lines - self.done - self.failed

    @property
    def code(self) -> int:
        return _INTERRUPTED if self.is_interrupted and self.left else 1 if self.failed or self.left else 0


@click.group(cls=CommandGroup)
def batch() -> None:
    """Ask your agent everything that a file says, each line in a conversation of its own."""


@batch.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where the results go, one on each line; - prints them.")
@click.option("--name", help="What the batch is called; otherwise as the file is.")
@click.option(
    "--at-once",
    default=AT_ONCE,
    show_default=True,
    type=click.IntRange(1, MOST_AT_ONCE),
    help="How many are answered at the same time.",
)
@click.option("--agent", default=DEFAULT_AGENT, show_default=True, help="Who answers lines that do not say it.")
@AS_JSON
def run_(file: Path, out: Path | None, name: str | None, at_once: int, agent: str, as_json: bool) -> None:
    """Answer the prompts of FILE, and only those that have no answer yet.

    FILE has a JSON object on each line: {"id": "tea", "prompt": "Is there tea?", "agent": "main"}. Without an id, the
    number of the line is its id. Run it again after whatever stopped it, and it goes on there; each line is answered
    once.
    """
    from segue.app.batching import Batch  # slow to load, as whoever answers is
    from segue.cli.batch_running import answer_all

    if as_json and out == STDOUT:
        raise click.UsageError("--json and --out - both print; choose one of them.")
    settings = app.settings()
    lines = _lines(file, agent, settings)
    name = name_after(file.stem) if name is None else checked_name(name)
    if out is not None:
        _check_target(out, file)
    with app.open_store(chosen=settings) as store:
        known = store.read(OWNER_AT_CONSOLE, known_lines, name)
        for line in lines:
            if line.id in known:
                refuse_another(line, known[line.id], name)
        is_interrupted = answer_all(settings, store, Batch(name, lines, known, at_once), is_quiet=as_json)
        results = list(_results(store, _ended(store, name, lines)))
    if out is not None:
        with opened(out) as target:
            write = writer(target)
            for result in results:
                write(json.dumps(result._asdict(), ensure_ascii=False) + "\n")
    done = sum(result.state == InboxState.DONE for result in results)
    ended = Ended(name, len(lines), done, len(results) - done, is_interrupted)
    if as_json:
        show_json(_plain(ended, out))
    else:
        (note if out == STDOUT else say)(_told(ended, out))
    click.get_current_context().exit(ended.code)


@batch.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Show the batches that were ever run, the latest first."""
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, list_batches)
    if as_json:
        show_json([one._asdict() for one in found])
    elif found:
        table(_BATCHES, [_row(one) for one in found])
    else:
        say("There are no batches; `segue batch run FILE` runs one.")


@batch.command("show")
@_NAME
@AS_JSON
def show_(name: str, as_json: bool) -> None:
    """Show what became of each line of a batch, in the order in which they were asked."""
    with app.open_for_reading() as store:
        results = list(_results(store, list(store.read(OWNER_AT_CONSOLE, get_lines, name).values())))
    if as_json:
        show_json([result._asdict() for result in results])
        return
    table(_RESULTS, [_cells(result) for result in results])


def _lines(file: Path, agent: str, settings: Settings) -> list[Line]:
    """The lines of a file, each with somebody who is there to answer it."""
    try:
        lines = read_lines(file.read_bytes())
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    known = {DEFAULT_AGENT, *settings.agents}
    if agent not in known:
        raise Invalid(f"There is no agent {agent!r} in the settings; `agents` there says which there are.")
    for line in lines:
        if line.agent is not None and line.agent not in known:
            raise Invalid(f"{line.place} names the agent {line.agent!r}, and the settings name no such agent.")
    return [line._replace(agent=line.agent or agent) for line in lines]


def _check_target(out: Path, file: Path) -> None:
    """Whatever keeps results from being written is said before anything is asked."""
    if out == STDOUT:
        return
    if out.exists() and out.samefile(file):
        raise Invalid(f"{out} holds the prompts; name another file for the results.")
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise Invalid(f"{out} cannot be written: it is a folder, or its folder is not there.")


def _ended(store: SqlStore, name: str, lines: Sequence[Line]) -> list[Entry]:
    """What has come to its end, in the order of the file."""
    known = store.read(OWNER_AT_CONSOLE, known_lines, name)
    return [entry for line in lines if (entry := known.get(line.id)) and not entry.is_open]


def _results(store: SqlStore, entries: Sequence[Entry]) -> Iterator[Result]:
    for first in range(0, len(entries), _AT_A_TIME):
        yield from store.read(OWNER_AT_CONSOLE, results_of, entries[first : first + _AT_A_TIME])


def _plain(ended: Ended, out: Path | None) -> dict[str, object]:
    return {
        "name": ended.name,
        "lines": ended.lines,
        "done": ended.done,
        "failed": ended.failed,
        "left": ended.left,
        "interrupted": ended.is_interrupted,
        "out": None if out is None else str(out),
    }


def _told(ended: Ended, out: Path | None) -> str:
    """The end of a run in a sentence or two."""
    where = f"`segue batch show {ended.name}` shows all." if out in (None, STDOUT) else f"The results are in {out}."
    if ended.done == ended.lines:
        return f"The batch {ended.name} is done: {_prompts(ended.lines)} answered. {where}"
    failed = f", {ended.failed} failed" if ended.failed else ""
    left = f", {ended.left} left" if ended.left else ""
    begun = "was interrupted" if ended.is_interrupted and ended.left else "has come to its end"
    again = "Run the same command again, and it goes on with what has no answer."
    told = f"{ended.done:,} of {_prompts(ended.lines)} answered{failed}{left}"
    return f"The batch {ended.name} {begun}: {told}. {where} {again}"


def _prompts(number: int) -> str:
    return f"{number:,} prompt{'' if number == 1 else 's'}"


def _row(one: Summary) -> list[str]:
    numbers = (one.asked, one.done, one.failed, one.left)
    return [one.name, *(f"{number:,}" for number in numbers), ago(one.last_at, time.time())]


def _cells(result: Result) -> list[str]:
    told = result.error if result.state in (FAILED, InboxState.CANCELLED) else result.answer
    return [result.id, result.state, result.session_id or "", one_line(told or result.error or "")]
