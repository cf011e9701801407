"""The line at the bottom of a terminal: messages are typed there, and words to an agent that is at work."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.buffer import Buffer

from segue.cli.chatting import interrupts
from segue.cli.chatting.above import Above
from segue.cli.chatting.agreement_line import AgreementLine
from segue.cli.chatting.asking import SECONDS, Agreement, Heard, Interrupted
from segue.cli.chatting.editor import SIGN, Editor, Fragments, Terminal, editor, terminal_here, type_first
from segue.cli.chatting.keys import Key, typing_keys
from segue.cli.chatting.offers import Offers
from segue.cli.chatting.past import Past
from segue.cli.chatting.pastes import Pastes
from segue.cli.chatting.steering import Steering
from segue.cli.output import cut, terminal_columns
from segue.core.text import one_line, printable

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.piping import Pipe
    from segue.cli.chatting.screen import Screen


class TerminalPrompt:
    """Keeps what was typed but not sent, from one line to the next."""

    def __init__(
        self,
        past: Path,
        offers: Offers,
        standing: Callable[[], str],
        *,
        typed: str = "",
        terminal: Terminal | None = None,
        out: TextIO | None = None,
    ) -> None:
        self.past = Past(past)
        self._terminal = terminal or terminal_here()
        self._offers = offers
        self._standing = standing
        self._above = Above(out or sys.stdout)
        self._pastes = Pastes()
        self._draft = ""
        self._is_leaving = False
        self._editor = self._new_editor(self._send, self._clear_or_leave, self._leave, erases=False)
        self._editor.default_buffer.on_text_changed += self._stay
        self._steering: Steering | None = None
        type_first(self._editor, typed)

    async def ask(self) -> str | None:
        """The next message; None when the person wants to leave."""
        draft, self._draft, self._is_leaving = self._draft, "", False
        try:
            return await self._editor.prompt_async([SIGN], default=draft)
        except EOFError:
            return None  # the terminal is gone
        finally:
            self._mark_pastes()

    async def agree(self, question: str, kind: str = "commands", seconds: float = SECONDS) -> Agreement:
        """The whole question is shown, however long: nobody agrees to what they could not read."""
        self._above.write(f"\n{printable(question).strip()}\n")
        line = AgreementLine(self._terminal, seconds, kind)
        return await (self._steering.agree(line) if self._steering else line.answer())

    def redraw(self) -> None:
        self._editor.app.invalidate()

    @asynccontextmanager
    async def listening(
        self, screen: "Screen | Pipe", on_interrupt: Interrupted, on_line: Heard
    ) -> AsyncIterator[None]:
        """The line stays below while output scrolls above it; what is not sent is still there when the turn is over."""
        from segue.cli.chatting.screen import Screen

        if not isinstance(screen, Screen):
            raise TypeError("A terminal to type in needs one to show what happens.")
        steered = self._new_editor(self._steer, lambda _buffer: on_interrupt(), _stay_here, erases=True)
        self._steering = Steering(steered, screen, on_line, self._draft)
        try:
            with interrupts.calling(on_interrupt), screen.writing_through(self._above.write):
                yield
        finally:
            steering, self._steering = self._steering, None
            await steering.end()
            self._draft = steering.draft
            self._mark_pastes()

    def _mark_pastes(self) -> None:
        """A line that is over lets pastes look like typing; one that comes before the next line would be sent."""
        self._terminal.output.enable_bracketed_paste()
        self._terminal.output.flush()

    def _new_editor(self, send: Key, interrupt: Key, leave: Key, *, erases: bool) -> Editor:
        keys = typing_keys(send, interrupt, leave, self._pastes.take)
        return editor(self._terminal, self.past, self._offers, keys, self._below, erases=erases)

    def _below(self) -> Fragments:
        text = "Press Ctrl-C again to leave." if self._is_leaving else one_line(self._standing())
        return [("", cut(text, terminal_columns() - 1))]

    # What the keys do

    def _send(self, buffer: Buffer) -> None:
        self._editor.app.exit(result=self._taken(buffer))

    def _steer(self, buffer: Buffer) -> None:
        if self._steering is not None:
            self._steering.send(self._taken(buffer))

    def _taken(self, buffer: Buffer) -> str:
        text = self._pastes.unfold(buffer.text)
        self._pastes.forget()
        self.past.append_string(text)
        return text

    def _clear_or_leave(self, buffer: Buffer) -> None:
        if buffer.text:
            buffer.reset()
        elif self._is_leaving:
            self._leave(buffer)
        else:
            self._is_leaving = True

    def _leave(self, _buffer: Buffer) -> None:
        self._editor.app.exit(result=None)

    def _stay(self, _buffer: Buffer) -> None:
        self._is_leaving = False


def _stay_here(_buffer: Buffer) -> None:
    """Nobody leaves while an agent works."""
