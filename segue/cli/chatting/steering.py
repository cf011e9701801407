"""Typing while an agent works: the line stays below, whatever is shown above it."""

import asyncio
from typing import TYPE_CHECKING

from segue.cli.chatting.agreement_line import AgreementLine
from segue.cli.chatting.asking import Agreement, Heard
from segue.cli.chatting.editor import SIGN, Editor, Fragments

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.screen import Screen

_FRAMES_A_SECOND = 10


class Steering:
    """One line after the other, and between two of them a question that one key answers."""

    def __init__(self, editor: Editor, screen: "Screen", on_line: Heard, draft: str) -> None:
        self.draft = draft
        """What was typed and not sent."""
        self._editor = editor
        self._screen = screen
        self._on_line = on_line
        self._question: tuple[AgreementLine, asyncio.Future[Agreement]] | None = None
        self._is_over = False
        editor.refresh_interval = 1 / _FRAMES_A_SECOND
        self._running = asyncio.create_task(self._run())

    def send(self, text: str) -> None:
        """Called by a key."""
        self._editor.app.exit(result=text)

    async def agree(self, line: AgreementLine) -> Agreement:
        """Put a question in place of the line. Who does not wait for the answer takes it away."""
        answer: asyncio.Future[Agreement] = asyncio.get_running_loop().create_future()
        self._question = (line, answer)
        self._put_aside()
        try:
            return await answer
        finally:
            line.give(Agreement.NO)
            self._question = None

    async def end(self) -> None:
        """Take the line away; what was typed in it is the draft."""
        self._is_over = True
        while not self._running.done():
            self._put_aside()
            await asyncio.wait({self._running}, timeout=0.01)
        self._running.result()

    async def _run(self) -> None:
        while not self._is_over:
            if self._question is not None:
                await self._ask(*self._question)
                continue
            try:
                line = await self._editor.prompt_async(self._message, default=self.draft, handle_sigint=False)
            except EOFError:
                return  # the terminal is gone
            if line is not None:
                self.draft = ""
                self._screen.echo(line)
                self._on_line(line)

    async def _ask(self, line: AgreementLine, answer: "asyncio.Future[Agreement]") -> None:
        given = await line.answer()
        self._question = None
        if not answer.done():
            answer.set_result(given)

    def _put_aside(self) -> None:
        app = self._editor.app
        if app.is_running and not app.is_done:
            self.draft = self._editor.default_buffer.text
            app.exit(result=None)

    def _message(self) -> Fragments:
        line = self._screen.waiting_line()
        return [("class:waiting", f"{line}\n" if line else ""), SIGN]
