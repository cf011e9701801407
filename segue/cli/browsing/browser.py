"""The browser: the panes, and a key for everything that can be done to a conversation."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar, ParamSpec, TypeVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.theme import Theme
from textual.widgets import Input

from segue.cli.browsing import acts
from segue.cli.browsing.bars import KeyLine, StatusLine
from segue.cli.browsing.cells import line
from segue.cli.browsing.dialogs import Answer, Ask, Confirm, Help, Question
from segue.cli.browsing.keys import FILTER_KEYS, KEYS
from segue.cli.browsing.panes import Panes
from segue.cli.browsing.table import ConversationTable
from segue.config import wants_colour
from segue.core.errors import SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Store

P = ParamSpec("P")
T = TypeVar("T")

READ_ONLY = "This home can only be read: nothing can be changed here."
_CALM = Theme(
    name="segue",
    primary="#7d9cc0",
    accent="#d9b36c",
    success="#8dbb8a",
    error="#e08a8a",
    foreground="#d8dbe2",
    background="#15171c",
    surface="#1b1e25",
    panel="#252a34",
    variables={"quiet": "#9299a6"},
)


class Browser(App[str]):
    """Returns the id of the session that was chosen."""

    CSS_PATH = "look.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#table"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        # A key reaches the list later than the program, and the keys behind / are meant for the filter.
        *(Binding(key.key, key.action, key.label, show=False, priority=key.action == "filter") for key in KEYS),
        Binding("escape", "step_back", show=False),
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, store: Store, *, can_write: bool = True, clock: Callable[[], float] = time.time) -> None:
        super().__init__(ansi_color=None if wants_colour() else True)  # then NO_COLOR leaves the terminal's own alone
        self.register_theme(_CALM)
        self.theme = _CALM.name
        self._store = store
        self._can_write = can_write
        self._clock = clock
        self._panes = Panes(store, clock)
        self._status = StatusLine()
        self._keys = KeyLine()
        self._deleted: list[str] = []

    def compose(self) -> ComposeResult:
        yield self._panes
        yield self._status
        yield self._keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as Textual has it
        """Whether a key does something here: / is an ordinary letter in the filter and in a dialog."""
        return action != "filter" or (len(self.screen_stack) == 1 and not self._panes.is_filtering)

    def on_mount(self) -> None:
        self._status.say("" if self._can_write else READ_ONLY)

    @on(Panes.Failed)
    def show_failure(self, event: Panes.Failed) -> None:
        self._status.complain(str(event.error))

    @on(Panes.Noted)
    def show_note(self, event: Panes.Noted) -> None:
        self._status.say(event.sentence)

    @on(DescendantFocus)
    def show_keys(self) -> None:
        self._keys.show(FILTER_KEYS if self._panes.is_filtering else KEYS)

    # Keys that look

    @on(ConversationTable.Chosen)
    @on(Input.Submitted, "#filter")
    def action_choose(self) -> None:
        if self._panes.current is not None:
            self.exit(self._panes.current)

    def action_leave(self) -> None:
        self.exit()

    def action_step_back(self) -> None:
        if not self._panes.step_back():
            self.exit()

    def action_filter(self) -> None:
        self._panes.focus_filter()

    def action_list(self) -> None:
        self._panes.focus_list()

    def action_view(self) -> None:
        self._panes.show_next_view()
        self._status.say(f"Showing {self._panes.view}.")

    def action_preview(self) -> None:
        self._panes.toggle_preview()

    def action_reload(self) -> None:
        self._panes.load()

    def action_help(self) -> None:
        self.push_screen(Help(KEYS))

    # Keys that act

    @work
    async def action_rename(self) -> None:
        if (session_id := self._changeable()) is None:
            return
        title = await self._attempt(self._store.read, OWNER_AT_CONSOLE, acts.title_of, session_id)
        if title is not None:
            question = Question("Rename", "Enter saves; an empty title takes it away.", title)
            await self._ask(question, lambda typed, _: self._write(acts.rename, session_id, typed))

    @work
    async def action_tag(self) -> None:
        if (session_id := self._changeable()) is None:
            return
        tags = await self._attempt(self._store.read, OWNER_AT_CONSOLE, acts.tags_of, session_id)
        if tags is not None:
            known = (
                f"It has {line(', '.join(tags))}. Type one of them to take it away." if tags else "It has no tags yet."
            )
            await self._ask(Question("Tag", known), lambda typed, _: self._write(acts.toggle_tag, session_id, typed))

    @work
    async def action_archive(self) -> None:
        if session_id := self._changeable():
            self._finish(await self._attempt(self._write, acts.toggle_archived, session_id))

    @work
    async def action_pin(self) -> None:
        if session_id := self._changeable():
            self._finish(await self._attempt(self._write, acts.toggle_pinned, session_id))

    @work
    async def action_delete(self) -> None:
        if (session_id := self._changeable()) is None:
            return
        doomed = await self._attempt(self._store.read, OWNER_AT_CONSOLE, acts.doomed_with, session_id)
        if doomed is None or not await self.push_screen_wait(_confirmation(doomed)):
            return
        self._panes.stop_looking()
        said = await self._attempt(self._write, acts.delete, session_id, self._clock())
        if said is not None:
            self._deleted.append(session_id)
        self._finish(said)

    @work
    async def action_undo(self) -> None:
        if not self._deleted:
            self._status.say("Nothing was deleted here.")
            return
        said = await self._attempt(self._write, acts.undo_delete, self._deleted[-1])
        if said is not None:
            self._finish(said, keep=self._deleted.pop())

    @work
    async def action_export(self) -> None:
        if session_id := self._panes.current:
            hint = "JSON lines, readable by you alone. Tab reaches the option."
            question = Question("Export to a file", hint, acts.file_name_for(session_id), "Redact secrets")
            await self._ask(question, lambda name, is_on: acts.export(self._store, session_id, name, is_redacted=is_on))

    def _changeable(self) -> str | None:
        if not self._can_write:
            self._status.complain(READ_ONLY)
            return None
        return self._panes.current

    def _write(self, work: Callable[..., str], *args: object) -> str:
        return self._store.write(OWNER_AT_CONSOLE, work, *args)

    async def _ask(self, question: Question, answer: Answer) -> None:
        self._finish(await self.push_screen_wait(Ask(question, answer)))

    async def _attempt(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do it beside the screen; if Segue says no, so does the status line, and the answer is None."""
        try:
            return await asyncio.to_thread(partial(work, *args, **kwargs))
        except SegueError as error:
            self._status.complain(str(error))
            return None

    def _finish(self, said: str | None, keep: str | None = None) -> None:
        if said is not None:
            self._status.say(said)
            self._panes.load(keep)


def _confirmation(doomed: acts.Doomed) -> Confirm:
    parts = f"{count(doomed.sessions, 'session')}, {count(doomed.messages, 'message')}"
    return Confirm(f"Move '{line(doomed.name)}' into the trash?", f"{parts}; u brings it back.")
