"""A question that one key answers."""

import asyncio
import time

from prompt_toolkit.application import Application
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from segue.cli.chatting.asking import Agreement, all_of
from segue.cli.chatting.editor import Fragments, Terminal

HESITATION = 0.5
"""Seconds in which no key counts and none is offered: whoever was typing something else has not agreed to anything."""
_KEYS = {"y": Agreement.YES, "n": Agreement.NO, "a": Agreement.ALL, "escape": Agreement.NO}


class AgreementLine:
    """`Allow? [y]es [n]o [a]ll commands of this conversation`, with the seconds that are left."""

    def __init__(self, terminal: Terminal, seconds: float, kind: str) -> None:
        self._kind = kind
        self._shown_at = time.monotonic()
        self._seconds = seconds
        self._is_open = False
        self._given: Agreement | None = None
        text = FormattedTextControl(self._line)
        window = Window(text, wrap_lines=True, dont_extend_height=True, always_hide_cursor=True)
        self._app: Application[None] = Application(
            Layout(window),
            key_bindings=self._keys(),
            refresh_interval=0.5,
            input=terminal.input,
            output=terminal.output,
        )
        self._app.ttimeoutlen = 0.1  # seconds; a lone Escape counts soon

    async def answer(self) -> Agreement:
        """What the person says, or that nobody said anything before the time was over."""
        self._shown_at = time.monotonic()
        loop = asyncio.get_running_loop()
        to_come = [
            loop.call_later(HESITATION, self._open),
            loop.call_later(self._seconds, self.give, Agreement.NOBODY),
        ]
        try:
            if self._given is None:
                await self._app.run_async(handle_sigint=False)
        finally:
            for one in to_come:
                one.cancel()
        return self._given or Agreement.NO

    def give(self, agreement: Agreement) -> None:
        """Answer, unless it has been answered."""
        if self._given is None:
            self._given = agreement
            if self._app.is_running:
                self._app.exit()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("<any>")(_ignore)
        keys.add("<bracketed-paste>")(_ignore)
        for key, agreement in _KEYS.items():
            keys.add(key)(lambda _event, agreement=agreement: self._press(agreement))
        keys.add("c-c")(lambda _event: self.give(Agreement.STOP))
        return keys

    def _open(self) -> None:
        self._is_open = True
        self._app.invalidate()

    def _press(self, agreement: Agreement) -> None:
        if self._is_open:
            self.give(agreement)

    def _line(self) -> Fragments:
        if self._given is not None:
            return [("bold", "Allow? "), ("", str(self._given))]
        if not self._is_open:
            return [("bold", "Allow? ")]
        left = max(round(self._shown_at + self._seconds - time.monotonic()), 0)
        to_all, seconds = all_of(self._kind), f"  {left} s"
        is_wide = len(f"Allow? [y]es  [n]o  {to_all}{seconds}") < self._app.output.get_size().columns
        head: Fragments = [("bold", "Allow? "), ("", "[y]es  [n]o")]
        if is_wide:
            return [*head, ("", f"  {to_all}"), ("fg:ansibrightblack", seconds)]
        return [*head, ("fg:ansibrightblack", seconds), ("", f"\n{to_all}")]


def _ignore(_event: KeyPressEvent) -> None:
    """Any other key."""
