"""The way out: everything printed passes here, so that no stored text can steer a terminal."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from segue.config import wanted_columns, wants_colour
from segue.core.errors import SegueError
from segue.core.portable import dumps
from segue.core.text import ELLIPSIS, one_line, printable

_WIDTH_OF_A_PIPE = 120
_WIDTH_OF_A_TERMINAL = 80  # when it does not know itself


class Refused(SegueError):
    """Somebody was asked and did not agree."""


class Column(NamedTuple):
    """A column of a table: with a weight it shares the space that is left, without one it is as wide as it needs."""

    name: str
    weight: int = 0


def say(text: str = "", *, bold: bool = False, dim: bool = False, fg: str | None = None, nl: bool = True) -> None:
    """Print text for people."""
    plain = printable(text)
    click.echo(style(plain, bold=bold, dim=dim, fg=fg), nl=nl, color=_has_colour())


def style(text: str, *, bold: bool = False, dim: bool = False, fg: str | None = None) -> str:
    """The text with colours, when there is somebody to see them."""
    if not _has_colour() or not (bold or dim or fg):
        return text
    return click.style(text, bold=bold or None, dim=dim or None, fg=fg)


def note(text: str) -> None:
    """Tell a person something that is not the answer."""
    click.echo(printable(text), err=True)


def show_json(value: Any) -> None:
    """Print data for programs."""
    click.echo(dumps(value))


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """A table that fits the terminal."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = _widths(columns, cells, _terminal_columns())
    say(_line([column.name for column in columns], widths), bold=True)
    say("─" * (sum(widths) + 2 * (len(widths) - 1)), dim=True)
    for row in cells:
        say(_line(row, widths))


def pages(lines: Iterator[str]) -> None:
    """Print what may be long: through a pager when a person is reading."""
    if sys.stdout.isatty():
        click.echo_via_pager((f"{line}\n" for line in lines), color=_has_colour())
        return
    for line in lines:
        click.echo(line, color=False)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only when somebody agreed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("Nothing was changed: there is nobody to ask. Add --yes to go ahead.")
    if not click.confirm(printable(question), default=False, err=True):
        raise Refused("Nothing was changed.")


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """A function to report progress to; a bar when somebody is looking."""
    if not sys.stderr.isatty():
        yield lambda _steps: None
        return
    with click.progressbar(length=max(length, 1), label=label, file=sys.stderr, update_min_steps=length // 200) as bar:
        yield bar.update


def cut(text: str, most: int) -> str:
    """At most that many cells of a terminal, in which a Chinese character takes two."""
    if cell_len(text) <= most:
        return text
    return set_cell_size(text, max(most - 1, 0)).rstrip() + ELLIPSIS


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [set_cell_size(cut(cell, width), width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(fitted).rstrip()


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], terminal: int) -> list[int]:
    natural = [max([cell_len(column.name), *(cell_len(row[at]) for row in rows)]) for at, column in enumerate(columns)]
    fixed = sum(size for size, column in zip(natural, columns, strict=True) if not column.weight)
    left = max(terminal - fixed - 2 * (len(columns) - 1), 0)
    widths = list(natural)
    weights = sum(column.weight for column in columns)
    for at, column in sorted(enumerate(columns), key=lambda one: natural[one[0]]):
        if column.weight:  # narrow columns first, so that they leave what they do not need
            widths[at] = min(natural[at], max(left * column.weight // weights, 8))
            left -= widths[at]
            weights -= column.weight
    return widths


def _terminal_columns() -> int:
    given = wanted_columns()
    if given is None:
        given = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _WIDTH_OF_A_PIPE
    return max(given or _WIDTH_OF_A_TERMINAL, 20)


def _has_colour() -> bool:
    return sys.stdout.isatty() and wants_colour()
