"""How a person is asked, wherever they are."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.piping import Pipe
    from segue.cli.chatting.screen import Screen

Interrupted = Callable[[], None]
Heard = Callable[[str], None]


class Agreement(StrEnum):
    """The answer to a question of whether something may be done."""

    YES = "yes"
    NO = "no"
    ALWAYS = "always"


class Prompt(Protocol):
    async def ask(self) -> str | None:
        """The next message of the person; None when they want to leave."""

    async def agree(self, question: str, seconds: float = 60.0) -> Agreement:
        """Whether the person agrees; nobody who says nothing does."""

    def listening(
        self, screen: "Screen | Pipe", on_interrupt: Interrupted, on_line: Heard
    ) -> AbstractAsyncContextManager[None]:
        """While an agent works: Ctrl-C calls the one, and at a terminal every line that is sent calls the other."""
