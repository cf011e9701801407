"""What rich lays out, as text for a terminal: whatever it was made of, no character in it can steer one."""

from collections.abc import Callable, Iterable
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from segue.core.text import printable

_WIDEST = 100  # longer lines are hard to read


class Paper:
    """As wide as the terminal is when something is laid out."""

    def __init__(self, columns: Callable[[], int], *, is_terminal: bool, has_colour: bool) -> None:
        self._columns = columns
        self._console = Console(
            file=StringIO(),
            force_terminal=is_terminal,
            no_color=not has_colour,
            color_system="auto" if has_colour else None,
            width=self.width,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    @property
    def columns(self) -> int:
        """What fits on a line without wrapping."""
        return max(self._columns(), 10)

    @property
    def width(self) -> int:
        return min(self.columns, _WIDEST)

    def render(self, what: RenderableType) -> str:
        """As lines, the last one ended as well."""
        self._console.width = self.width
        with self._console.capture() as captured:
            self._console.print(_Clean(what), crop=False, end="")
        return captured.get()


class _Clean:
    """Another thing without the characters that a terminal would obey, and without spaces at the ends of lines."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments = [segment for segment in console.render(self._what, options) if not segment.is_control]
        cleaned = [Segment(printable(segment.text), segment.style) for segment in segments]
        for line in Segment.split_lines(cleaned):
            yield from _without_end(line)
            yield Segment.line()


def _without_end(line: Iterable[Segment]) -> list[Segment]:
    left = list(line)
    while left and not left[-1].text.strip() and not _is_seen(left[-1]):
        left.pop()
    if left and not _is_seen(left[-1]):
        left[-1] = Segment(left[-1].text.rstrip(), left[-1].style)
    return left


def _is_seen(blank: Segment) -> bool:
    style = blank.style
    return style is not None and bool(style.bgcolor or style.underline or style.reverse)
