"""The way out: everything printed passes here, so that no stored text can steer a terminal."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from segue.config import page_like_git, wanted_columns, wants_colour
from segue.core.errors import SegueError
from segue.core.spelling import dumps
from segue.core.text import ELLIPSIS, one_line, printable, shorten
from segue.core.titles import shorten_title

_GAP = 2
_NARROWEST, _WIDEST = 8, 40  # cells of a column that shares, and of one that does not
_WORTH_A_BAR = 200
_WIDTH_OF_A_PIPE = 120
_UNLIMITED = 1_000_000
_BAR, _BESIDE_A_BAR = 36, 40
_WIDTH_OF_A_TERMINAL = 80  # when it does not know itself


class Refused(SegueError):
    """Somebody was asked and did not agree."""


NOTHING = "—"
"""What stands in a cell that has nothing to say."""


class Column(NamedTuple):
    """A column of a table. With a weight it shares the space that is left; otherwise it is as wide as it needs.

    A column with `yields` makes room when the terminal is too narrow, the highest first. Its cells then stand in for
    the empty ones of the column that it `fills`.
    """

    name: str
    weight: int = 0
    yields: int = 0
    fills: str = ""


def say(text: str = "", *, bold: bool = False, dim: bool = False, fg: str | None = None, nl: bool = True) -> None:
    """Print text for people."""
    plain = wrapped(_on_one_line(text))
    click.echo(style(plain, bold=bold, dim=dim, fg=fg), nl=nl, color=_has_colour())


def style(text: str, *, bold: bool = False, dim: bool = False, fg: str | None = None) -> str:
    """The text with colours, when there is somebody to see them."""
    if not _has_colour() or not (bold or dim or fg):
        return text
    return click.style(text, bold=bold or None, dim=dim or None, fg=fg)


def note(text: str) -> None:
    """Tell a person something that is not the answer."""
    click.echo(for_stderr(_on_one_line(text)), err=True)


def for_stderr(text: str) -> str:
    """A line with breaks between words, when a person reads it."""
    return "\n".join(_wrap(text, terminal_columns())) if sys.stderr.isatty() else text


def show_json(value: Any) -> None:
    """Print data for programs."""
    click.echo(dumps(value))


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """A table that fits the terminal. In a pipe it is as wide as it needs."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    shown, widths = _layout(columns, cells, line_width())
    if cells != (filled := _filled(columns, cells, shown)):
        cells = filled
        shown, widths = _layout(columns, cells, line_width())
    say(_line([columns[at].name for at in shown], widths), bold=True)
    say("─" * (sum(widths) + _GAP * (len(widths) - 1)), dim=True)
    for row in cells:
        say(_line([row[at] for at in shown], widths))


def _filled(columns: Sequence[Column], rows: list[list[str]], shown: Sequence[int]) -> list[list[str]]:
    """The rows, with what stands in a hidden column where the one that it fills has nothing."""
    names = [column.name for column in columns]
    hidden = [(at, names.index(column.fills)) for at, column in enumerate(columns) if column.fills and at not in shown]
    filled = [list(row) for row in rows]
    for row in filled:
        for source, target in hidden:
            row[target] = row[source] if row[target] == NOTHING and row[source] else row[target]
    return filled


def pages(lines: Iterator[str]) -> None:
    """Print what may be long: through a pager when a person is reading."""
    if sys.stdout.isatty():
        page_like_git()
        click.echo_via_pager((f"{line}\n" for line in lines), color=_has_colour())
        return
    for line in lines:
        click.echo(line)


def pour(texts: Iterator[str]) -> None:
    """Print words exactly as they are stored, unless a person is looking."""
    if sys.stdout.isatty():
        pages(map(printable, texts))
        return
    for text in texts:
        sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.flush()


def confirm(question: str, *, yes: bool) -> None:
    """Go on only when somebody agreed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("Nothing was changed: stdin is not a terminal, so there is no way to confirm; pass --yes.")
    if not click.confirm(printable(question), default=False, err=True):
        raise Refused("Nothing was changed.")


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """A function to report progress to; a bar when somebody is looking."""
    if not sys.stderr.isatty() or not sys.stdout.isatty() or length < _WORTH_A_BAR:
        yield lambda _steps: None
        return
    width = _BAR if terminal_columns() > _BAR + _BESIDE_A_BAR else 0  # 0: whatever room there is
    steps = length // 200
    with click.progressbar(
        length=max(length, 1), label=label, file=sys.stderr, width=width, update_min_steps=steps
    ) as bar:
        yield bar.update


def _on_one_line(text: str) -> str:
    """No stored text can fake a line of its own."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def cut(text: str, most: int) -> str:
    """At most that many cells of a terminal, in which a Chinese character takes two."""
    if cell_len(text) <= most:
        return text
    return set_cell_size(text, max(most - 1, 0)).rstrip() + ELLIPSIS


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [set_cell_size(shorten_title(cell, width, cut), width) for cell, width in zip(cells, widths, strict=True)]
    return (" " * _GAP).join(fitted).rstrip()


def _layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], terminal: int) -> tuple[list[int], list[int]]:
    """Which columns are shown, and how wide each of them is."""
    natural = [_natural(column, [row[at] for row in rows]) for at, column in enumerate(columns)]
    least = [min(size, _NARROWEST) if column.weight else size for size, column in zip(natural, columns, strict=True)]
    shown = list(range(len(columns)))
    while _total([least[at] for at in shown]) > terminal and any(columns[at].yields for at in shown):
        shown.remove(max(shown, key=lambda at: columns[at].yields))
    widths = {at: least[at] for at in shown}
    spare = terminal - _total([least[at] for at in shown])
    for _ in range(-spare):  # still too wide: cell by cell from whichever is widest
        widest = max(shown, key=lambda at: widths[at])
        widths[widest] = max(widths[widest] - 1, 1)
    weights = sum(columns[at].weight for at in shown)
    for at in sorted(shown, key=lambda at: natural[at]):  # narrow ones first: they leave what they do not need
        if columns[at].weight and spare > 0:
            extra = min(natural[at] - widths[at], spare * columns[at].weight // weights)
            widths[at], spare, weights = widths[at] + extra, spare - extra, weights - columns[at].weight
    return shown, [widths[at] for at in shown]


def _natural(column: Column, cells: Sequence[str]) -> int:
    widest = max([cell_len(column.name), *map(cell_len, cells)])
    return widest if column.weight or not is_narrow() else min(widest, _WIDEST)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def terminal_columns() -> int:
    given = wanted_columns()
    if given is None:
        terminal = next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)
        given = os.get_terminal_size(terminal.fileno()).columns if terminal else _WIDTH_OF_A_PIPE
    return max(given or _WIDTH_OF_A_TERMINAL, 20)


def line_width() -> int:
    """How many cells a line may take. What another program reads is not cut, unless COLUMNS says how wide it is."""
    return terminal_columns() if is_narrow() else _UNLIMITED


def is_narrow() -> bool:
    """Whether lines are made to fit a width."""
    return wanted_columns() is not None or sys.stdout.isatty()


def has_no_room(line: str) -> bool:
    """Whether a person would see it on more than one line."""
    return sys.stdout.isatty() and cell_len(line) > terminal_columns()


def excerpt(text: str, most: int) -> str:
    """The beginning of a text as a cell of a table; in a pipe all of it, on one line."""
    line = one_line(text)
    return shorten(line, most) if is_narrow() else line


def wrapped(text: str) -> str:
    """The text with long lines broken between words, when a person is reading."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _wrap(line, terminal_columns()))


def _wrap(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    words = line.lstrip(" ")
    indent = line.removesuffix(words)
    pieces, current = [], ""
    for word in words.split(" "):
        longer = f"{current} {word}" if current else indent + word
        if current and cell_len(longer) > width:
            pieces.append(current)
            longer = indent + word
        current = longer
    return [*pieces, current]


def _has_colour() -> bool:
    return sys.stdout.isatty() and wants_colour()
