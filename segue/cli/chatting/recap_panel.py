"""What was said last, as a panel for somebody who comes back."""

from typing import NamedTuple

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from segue.cli.output import cut
from segue.core.recap import Line, Recap, Voice
from segue.core.text import count, one_line, printable
from segue.core.titles import shorten_title

_CORNERS = 6  # cells of the frame beside its heading
_MARKS = {
    Voice.USER: ("●", "#d7af00"),
    Voice.ASSISTANT: ("◆", "green"),
    Voice.TOOLS: (" ", ""),
    Voice.SUMMARY: ("■", ""),
}


def recap_panel(recap: Recap, session_id: str, title: str | None = None) -> RenderableType:
    """The last exchanges, dim, under the title; the sign before each tells who spoke."""
    rows = Table.grid(padding=(0, 1))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for line in recap.lines:
        rows.add_row(*_row(line))
    parts: list[RenderableType] = [rows] if recap.lines else [Text("Nothing was said yet.", style="dim")]
    if recap.earlier:
        parts.insert(0, Text(f"… {count(recap.earlier, 'earlier message')} …", style="dim", justify="center"))
    below = Text(one_line(session_id), style="dim", no_wrap=True, overflow="ellipsis") if title else None
    return _Framed(Group(*parts), one_line(title or session_id), below)


class _Framed(NamedTuple):
    """Lines in a frame, whose heading keeps the number of a title however narrow the terminal is."""

    lines: Group
    heading: str
    below: Text | None

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        heading = shorten_title(self.heading, options.max_width - _CORNERS, cut)
        yield Panel(
            self.lines,
            ROUNDED,
            title=Text(heading, style="bold", no_wrap=True, overflow="ellipsis"),
            title_align="left",
            subtitle=self.below,
            subtitle_align="right",
            border_style="dim",
            padding=(0, 1),
        )


def recap_line(recap: Recap, session_id: str, title: str | None = None) -> Text:
    """The same in one line: which conversation, and how long it is."""
    exchanges = sum(line.voice is Voice.USER for line in recap.lines)
    earlier = f", {count(recap.earlier, 'earlier message')}" if recap.earlier else ""
    name = f"{one_line(title)} ({one_line(session_id)})" if title else one_line(session_id)
    said = f"Resumed {name}: {count(exchanges, 'exchange')}{earlier}."
    return Text(said, style="dim", no_wrap=True, overflow="ellipsis")


def _row(line: Line) -> tuple[Text, Text]:
    sign, colour = _MARKS[line.voice]
    words = printable(line.text) if line.voice is not Voice.TOOLS else one_line(line.text)
    return Text(sign, style=colour), Text(words, style="dim")
