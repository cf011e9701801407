"""Where nothing can be edited: a pipe, a file, a terminal that can do nothing but print. A line is a message."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TextIO

from segue.cli.chatting import interrupts
from segue.cli.chatting.asking import SECONDS, Agreement, Heard, Interrupted, all_of
from segue.cli.chatting.piping import Pipe
from segue.cli.chatting.screen import Screen
from segue.core.text import printable

_AT_ONCE = 65_536
_ANSWERS = {"y": Agreement.YES, "yes": Agreement.YES, "a": Agreement.ALL, "all": Agreement.ALL}


class LinePrompt:
    """Reads a descriptor in a thread of its own: a pipe may have nothing to say for hours, and Ctrl-C cannot wait."""

    def __init__(self, descriptor: int, terminal: TextIO | None = None) -> None:
        self._descriptor = descriptor
        self._terminal = terminal
        self._unread = b""
        self._is_over = False
        self._reading: asyncio.Future[bytes] | None = None

    async def ask(self) -> str | None:
        while True:
            self._show("> ")
            line = await self._line()
            if line is None or line.strip():
                return line

    async def agree(self, question: str, kind: str = "commands", seconds: float = SECONDS) -> Agreement:
        if self._terminal is None or not os.isatty(self._descriptor):
            return Agreement.NO  # what comes through a pipe is no answer
        self._show(f"{printable(question)}\n[y]es, [n]o, {all_of(kind)}? ")
        try:
            async with asyncio.timeout(seconds):
                line = await self._line()
        except TimeoutError:
            self._show("\n")
            return Agreement.NOBODY
        return _ANSWERS.get((line or "").strip().lower(), Agreement.NO)

    def redraw(self) -> None:
        """Nothing is shown below."""

    @asynccontextmanager
    async def listening(
        self, _screen: Screen | Pipe, on_interrupt: Interrupted, _on_line: Heard
    ) -> AsyncIterator[None]:
        with interrupts.calling(on_interrupt):
            yield

    async def _line(self) -> str | None:
        while b"\n" not in self._unread and not self._is_over:
            if self._reading is None:
                self._reading = self._read()
            read = await asyncio.shield(self._reading)  # who does not wait any longer leaves it to the next
            self._reading = None
            self._unread += read
            self._is_over = not read
        line, newline, self._unread = self._unread.partition(b"\n")
        return printable(line.decode(errors="replace").rstrip("\r")) if line or newline else None

    def _read(self) -> "asyncio.Future[bytes]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()

        def done(read: bytes) -> None:
            if not future.done():
                future.set_result(read)

        def work() -> None:
            try:
                read = os.read(self._descriptor, _AT_ONCE)
            except OSError:
                read = b""  # a terminal that was closed
            with suppress(RuntimeError):  # the chat is over, and nobody wants to know any more
                loop.call_soon_threadsafe(done, read)

        threading.Thread(target=work, name="reading lines", daemon=True).start()
        return future

    def _show(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.write(text)
            self._terminal.flush()
