"""Plots for a page: columns, bars and a heat map, in HTML and SVG that need no script.

Shapes are stretched to the width there is, words are not: they stand beside the drawings. Every text is escaped here.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_GAP = 0.12  # of a column, or of a cell
_HEADROOM = 0.08  # above the highest column, for the mark of what is unknown
_FAINTEST = 0.16  # something is never nothing


class Column(NamedTuple):
    """A column of a plot, what it says when somebody points at it, and whether a part of it is unknown."""

    height: float
    says: str
    is_partly_unknown: bool = False


class Bar(NamedTuple):
    """A bar: its name, how long it is, and what is written beside it; maybe with a thinner one for its cost."""

    name: str
    length: float
    says: str
    cost: float | None = None


def columns(plotted: Sequence[Column], top: str, ends: tuple[str, str]) -> str:
    """Columns side by side, the highest named at the top, the first and the last below."""
    most = max((one.height for one in plotted), default=0.0) or 1.0
    drawn = "".join(_column(at, one, most) for at, one in enumerate(plotted))
    box = f"0 {-_HEADROOM} {len(plotted)} {1 + _HEADROOM}"
    return (
        f'<div class="plot"><p class="top">{escape(top)}</p>\n'
        f'<svg viewBox="{box}" preserveAspectRatio="none" role="img" aria-label="{escape(top)}">'
        f'<path class="rule" d="M0 0H{len(plotted)}M0 .5H{len(plotted)}"/>{drawn}</svg>\n'
        f'<p class="ends"><span>{escape(ends[0])}</span><span>{escape(ends[1])}</span></p></div>\n'
    )


def bars(plotted: Sequence[Bar]) -> str:
    """Bars below each other, each with its name and its numbers."""
    most = max((one.length for one in plotted), default=0.0) or 1.0
    dearest = max((one.cost or 0.0 for one in plotted), default=0.0)
    drawn = (_bar(one, one.length / most, (one.cost or 0.0) / dearest if dearest else None) for one in plotted)
    return f'<ul class="bars">\n{"".join(drawn)}</ul>\n'


def heat_map(grid: Sequence[Sequence[int]], rows: Sequence[str]) -> str:
    """A cell for each hour of each weekday, the fuller the darker."""
    most = max(map(max, grid), default=0) or 1
    cells = "".join(
        _cell(row, hour, number / most, f"{rows[row]}, {hour:02}:00: {number:,}")
        for row, numbers in enumerate(grid)
        for hour, number in enumerate(numbers)
    )
    labels = "".join(f"<span>{escape(name[:3])}</span>" for name in rows)
    hours = "".join(f"<span>{hour:02}</span>" for hour in range(0, 24, 3))
    return (
        f'<div class="heat"><div class="days">{labels}</div>\n'
        f'<svg viewBox="0 0 24 {len(grid)}" preserveAspectRatio="none" role="img" aria-label="Messages by hour">'
        f'{cells}</svg>\n<div class="hours">{hours}</div></div>\n'
    )


def _column(at: int, one: Column, most: float) -> str:
    height = max(one.height, 0.0) / most
    height = max(height, 0.01) if one.height > 0 else 0.0
    place = f'x="{at + _GAP / 2:.2f}" width="{1 - _GAP:.2f}"'
    solid = f'<rect {place} y="{1 - height:.4f}" height="{height:.4f}"/>' if height else ""
    open_end = f'<rect class="unknown" {place} y="{1 - height - 0.06:.4f}" height=".04"/>'
    whole = f'<rect class="whole" x="{at}" width="1" y="0" height="1"/>'
    return f"<g><title>{escape(one.says)}</title>{whole}{solid}{open_end if one.is_partly_unknown else ''}</g>"


def _bar(one: Bar, share: float, cost: float | None) -> str:
    name = f'<span class="name"><bdi>{escape(one.name)}</bdi></span>'
    second = "" if cost is None or one.cost is None else _track("track cost", cost)
    return f'<li>{name}<span class="says">{escape(one.says)}</span>{_track("track", share)}{second}</li>\n'


def _track(kind: str, share: float) -> str:
    filled = f'<span style="width:{share * 100:.2f}%"></span>' if share > 0 else ""
    return f'<span class="{kind}">{filled}</span>'


def _cell(row: int, hour: int, share: float, says: str) -> str:
    size = 1 - _GAP
    strength = f' fill-opacity="{_FAINTEST + (1 - _FAINTEST) * share:.3f}"' if share else ' class="empty"'
    place = f'x="{hour + _GAP / 2:.2f}" y="{row + _GAP / 2:.2f}" width="{size:.2f}" height="{size:.2f}"'
    return f"<rect {place}{strength}><title>{escape(says)}</title></rect>"
