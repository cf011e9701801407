"""The filter, the list and the preview, kept in step with each other and with the store."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from segue.cli.browsing.bars import FilterLine
from segue.cli.browsing.contents import Said, passages
from segue.cli.browsing.preview import PreviewPane, look_at
from segue.cli.browsing.rows import WANTED, Row, View, emptiness, list_rows, narrowed, tally, typed_words
from segue.cli.browsing.table import ConversationTable
from segue.core.errors import SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store
from segue.sessions.searching import INCOMPLETE

_TYPING = 0.12  # seconds without a key before messages are searched
_PAUSE = 0.05  # seconds on a row before its preview is read: whoever runs through the list does not wait for it


class Panes(Vertical):
    BINDINGS: ClassVar[list[BindingType]] = [  # also while somebody types into the filter
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown", "move_page(1)", show=False),
    ]

    class Failed(Message):
        """The store could not be read."""

        def __init__(self, error: SegueError) -> None:
            super().__init__()
            self.error = error

    class Noted(Message):
        """Something is to be known about what was found, or no longer."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        super().__init__()
        self.view = View.CONVERSATIONS
        self._store = store
        self._rows: list[Row] = []
        self._said: Said | None = None
        self._note = ""
        self._is_loaded = False
        self._filter = FilterLine()
        self._tally = Static(id="tally")
        self._table = ConversationTable(clock)
        self._preview = PreviewPane(clock)

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield self._filter
            yield self._tally
        with Container(id="columns"):
            yield self._table
            yield self._preview

    def on_mount(self) -> None:
        self._narrow()
        self.load()

    @property
    def current(self) -> str | None:
        """The session that the keys act on."""
        row = self._table.current
        return row.session.id if row else None

    @property
    def is_filtering(self) -> bool:
        return self._filter.has_focus

    @work(exclusive=True, group="load")
    async def load(self, keep: str | None = None) -> None:
        """Read the list, and stay at a session or else at the current one."""
        try:
            self._rows = await asyncio.to_thread(self._store.read, OWNER_AT_CONSOLE, list_rows, self.view)
        except SegueError as error:
            self.post_message(self.Failed(error))
            return
        self._is_loaded = True
        self._narrow(keep, otherwise=self._table.cursor)
        self.search()

    def show_next_view(self) -> None:
        self.view = self.view.following
        self._said = None
        self.load()

    def stop_looking(self) -> None:
        """Read no preview until the list moves or is read again: the current conversation is about to be removed."""
        self.workers.cancel_group(self, "look")

    def toggle_preview(self) -> None:
        is_hidden = self._preview.display
        self.set_class(is_hidden, "-without-preview")
        self.set_class(not is_hidden, "-with-preview")  # also where there is little room
        self.call_after_refresh(self.look)

    def focus_filter(self) -> None:
        self.screen.set_focus(self._filter)  # at once: the next key is meant for it

    def focus_list(self) -> None:
        self.screen.set_focus(self._table)

    def step_back(self) -> bool:
        """Out of the filter or the preview; False when there is nothing to step out of."""
        if self._table.has_focus and not self._filter.value:
            return False
        self._filter.value = ""
        self.screen.set_focus(self._table)
        return True

    @on(Input.Changed)
    def narrow(self) -> None:
        self._said = None
        self._narrow()
        self.search()

    @work(exclusive=True, group="search")
    async def search(self) -> None:
        """Add the conversations in which it was said."""
        typed = self._filter.value
        if not typed.strip():
            return
        await asyncio.sleep(_TYPING)
        kinds, listed = WANTED[self.view].kinds, {row.session.id for row in self._rows}
        try:
            self._said = await asyncio.to_thread(passages, self._store, typed, kinds, listed)
        except SegueError as error:
            self._said = Said({}, [])
            self.post_message(self.Failed(error))
        self._narrow(otherwise=self._table.cursor)

    @on(ConversationTable.Moved)
    @work(exclusive=True, group="look")
    async def look(self) -> None:
        """Show the preview of the current row."""
        session_id = self.current
        if session_id is None or not self._preview.display:
            self._preview.show(None)
            return
        await asyncio.sleep(_PAUSE)
        try:
            preview = await asyncio.to_thread(self._store.read, OWNER_AT_CONSOLE, look_at, session_id)
        except SegueError as error:
            self._preview.show(None)
            self.post_message(self.Failed(error))
        else:
            self._preview.show(preview, self._table.current.hits if self._table.current else ())

    def action_move(self, steps: int) -> None:
        self._table.action_move(steps)

    def action_move_page(self, pages: int) -> None:
        self._table.action_move_page(pages)

    def _narrow(self, keep: str | None = None, otherwise: int = 0) -> None:
        typed = self._filter.value
        said = self._said or Said({}, [])
        shown = narrowed(self._rows, typed_words(typed), said.passages)
        sentence = emptiness(
            self.view,
            typed,
            is_loaded=self._is_loaded,
            is_searched=self._said is not None,
            is_incomplete=INCOMPLETE in said.notes,
        )
        self._table.show(shown, sentence, keep or self.current, otherwise)
        self._tally.update(tally(self.view, len(shown), len(self._rows)))
        self._remark(next(iter(said.notes), ""))

    def _remark(self, sentence: str) -> None:
        if sentence != self._note:
            self._note = sentence
            self.post_message(self.Noted(sentence))
