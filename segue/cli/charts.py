"""Charts of characters: bars that lie, and columns that stand."""

from collections.abc import Mapping
from datetime import date

from segue.cli.output import say, terminal_columns
from segue.core.insights import Day, Period, Span, spans_of
from segue.core.text import shorten

_BAR, _WIDEST_BAR = "█", 50
_LYING = " ▏▎▍▌▋▊▉"
_STANDING = " ▁▂▃▄▅▆▇"
_ROWS = 5
_MOST_COLUMNS = 92


def bars(rows: list[tuple[str, int]]) -> None:
    """A line each: its name, its number, its bar. The longest bar fills what the terminal has left."""
    most = max(number for _, number in rows)
    figure = len(f"{most:,}")
    label = min(max(len(name) for name, _ in rows), 24)
    width = min(max(terminal_columns() - label - figure - 6, 1), _WIDEST_BAR)
    for name, number in rows:
        bar = _lying(number / most * width if most else 0.0)
        say(f"  {shorten(name, label):{label}}  {number:>{figure},}  {bar}".rstrip())


def columns(title: str, days: Mapping[date, Day], period: Period) -> None:
    """The tokens of each day as a column, or of some days together where a terminal has no room for all."""
    room = terminal_columns() - 2
    spans = spans_of(days, period, min(room, _MOST_COLUMNS))
    most = max((span.used.tokens for span in spans), default=0)
    if most <= 0:
        return
    width = 2 if len(spans) * 2 <= room else 1
    say()
    say(f"{title}, at most {most:,}{_together(spans)}", bold=True)
    heights = [_eighths(span.used.tokens / most * _ROWS) for span in spans]
    for row in reversed(range(_ROWS)):
        line = "".join(_standing(height - row * 8) + " " * (width - 1) for height in heights)
        say(f"  {line}".rstrip())
    first, last = str(spans[0].first), str(spans[-1].last)
    gap = len(spans) * width - len(first) - len(last)
    say(f"  {first}{' ' * gap}{last}" if gap > 0 else f"  {first} – {last}"[: room + 2], dim=True)


def _together(spans: list[Span]) -> str:
    length = (spans[0].last - spans[0].first).days + 1
    return f" in {length:,} days" if length > 1 else ""


def _lying(length: float) -> str:
    """A bar of that many cells, to an eighth of one."""
    eighths = _eighths(length)
    return _BAR * (eighths // 8) + _LYING[eighths % 8].strip()


def _standing(eighths: int) -> str:
    return _BAR if eighths >= 8 else _STANDING[max(eighths, 0)]


def _eighths(cells: float) -> int:
    """Something is never nothing."""
    return max(round(cells * 8), 1) if cells > 0 else 0
