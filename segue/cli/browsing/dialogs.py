"""Questions in front of the list: a line of text, yes or no, and the page of keys."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Checkbox, Input, Static

from segue.cli.browsing.cells import line
from segue.cli.browsing.keys import Key
from segue.core.errors import SegueError
from segue.core.text import one_line

Answer = Callable[[str, bool], str]
"""Does what was asked, with the text and the option that were given, and says so in a sentence."""


_YES_OR_NO = "[@click=screen.answer(True)][b $accent]y[/] yes[/]    [@click=screen.answer(False)][b $accent]n[/] no[/]"


class Question(NamedTuple):
    heading: str
    hint: str
    suggestion: str = ""
    option: str = ""


class Option(Checkbox):
    """A box that can be told from an empty one without colours."""

    BUTTON_INNER = " "

    def watch_value(self) -> None:
        self.BUTTON_INNER = "X" if self.value else " "
        super().watch_value()


class Ask(ModalScreen[str | None]):
    """Asks for a line of text until it can be taken; what is wrong with it is said below it."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def __init__(self, question: Question, answer: Answer) -> None:
        super().__init__()
        self._question = question
        self._answer = answer

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._question.heading), classes="heading")
            title = one_line(self._question.suggestion)  # what is saved again must not change
            yield Input(title, select_on_focus=False, compact=True)
            if self._question.option:
                yield Option(Content(self._question.option), compact=True)
            yield Static(Content(self._question.hint), classes="hint")
            yield Static(classes="complaint")

    @on(Input.Submitted)
    @work
    async def take(self, event: Input.Submitted) -> None:
        event.input.disabled = True  # or a second Enter would do it twice
        self._complain("")
        try:
            said = await asyncio.to_thread(self._answer, event.value, self._is_chosen())
        except SegueError as error:
            self._complain(str(error))
            event.input.disabled = False
            event.input.focus()
        else:
            self.dismiss(said)

    def _is_chosen(self) -> bool:
        options = self.query(Option)
        return bool(options) and options.first().value

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _complain(self, sentence: str) -> None:
        self.query_one(".complaint", Static).update(Content(line(sentence)))


class Confirm(ModalScreen[bool]):
    """Asks whether to go ahead."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, heading: str, hint: str) -> None:
        super().__init__()
        self._heading = heading
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._heading), classes="heading")
            yield Static(Content(self._hint), classes="hint")
            yield Static(_YES_OR_NO, classes="choice")

    def action_answer(self, is_yes: bool) -> None:
        self.dismiss(is_yes)


class Help(ModalScreen[None]):
    """Every key and what it does; it scrolls where there is no room for all."""

    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", show=False)]

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog"):
            yield Static(Content("Keys"), classes="heading")
            yield Static(Content("\n").join(self._line(key) for key in self._keys))

    @staticmethod
    def _line(key: Key) -> Content:
        return Content.assemble((f"{key.sign:>6}", "bold $accent"), f"  {key.help}")
