"""The list of conversations. Only the lines on the screen are ever drawn, so its length does not matter."""

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from segue.cli.browsing.cells import fitted
from segue.cli.browsing.rows import Row, Style, heading, position_of, row_pieces, widths

_HEADING = 1
_CURSOR = "list--cursor"


class ConversationTable(ScrollView, can_focus=True):
    """Rows below a heading that stays; one row is the current one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*Style, _CURSOR}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown", "move_page(1)", show=False),
        Binding("home,g", "move_to(0)", show=False),
        Binding("end,G", "move_to(-1)", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """Another row is the current one, or the same one has changed."""

    class Chosen(Message):
        """The current row was clicked twice."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="table")
        self._clock = clock
        self._rows: list[Row] = []
        self._emptiness = ""

    @property
    def current(self) -> Row | None:
        return self._rows[self.cursor] if self._rows else None

    def show(self, rows: list[Row], emptiness: str, keep: str | None, otherwise: int) -> None:
        """Show other rows, staying at a session if it is among them, or else at a place."""
        at = position_of(rows, keep, otherwise)
        self._rows, self._emptiness = rows, emptiness
        self.virtual_size = Size(0, len(rows) + _HEADING)
        self.set_reactive(ConversationTable.cursor, at)
        self._settle()
        self.call_after_refresh(self._scroll_to_cursor)  # how far it can be scrolled is known only then

    def watch_cursor(self) -> None:
        self._settle()

    def validate_cursor(self, at: int) -> int:
        return max(0, min(at, len(self._rows) - 1))

    def on_resize(self) -> None:
        self._scroll_to_cursor()

    def action_move(self, steps: int) -> None:
        self.cursor += steps

    def action_move_page(self, pages: int) -> None:
        self.cursor += pages * max(self._room, 1)

    def action_move_to(self, at: int) -> None:
        self.cursor = at if at >= 0 else len(self._rows) + at

    def on_click(self, event: Click) -> None:
        at = event.y - _HEADING + self.scroll_offset.y
        if event.y < _HEADING or at >= len(self._rows):
            return
        self.cursor = at
        if event.chain == 2:
            self.post_message(self.Chosen())

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        at = y - _HEADING + self.scroll_offset.y
        if y < _HEADING:
            return self._strip(heading(widths(width - 1)), width)
        if at < len(self._rows):
            pieces = row_pieces(self._rows[at], widths(width - 1), self._clock())
            return self._strip(pieces, width, is_current=at == self.cursor)
        emptiness = f"  {self._emptiness}" if y == _HEADING + 1 and not self._rows else ""
        return self._strip([(fitted(emptiness, width), Style.QUIET)], width)

    @property
    def _room(self) -> int:
        return self.scrollable_content_region.height - _HEADING

    def _strip(self, pieces: list[tuple[str, Style]], width: int, *, is_current: bool = False) -> Strip:
        base = self.get_component_rich_style(_CURSOR) if is_current else self.rich_style
        segments = [Segment(text, base + self.get_component_rich_style(style, partial=True)) for text, style in pieces]
        return Strip(segments).adjust_cell_length(width, base)

    def _settle(self) -> None:
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def _scroll_to_cursor(self) -> None:
        top = self.scroll_offset.y
        wanted = min(max(top, self.cursor - self._room + 1), self.cursor)
        if wanted != top and self._room > 0:
            self.scroll_to(y=wanted, animate=False, immediate=True)
