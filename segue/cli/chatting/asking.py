"""How a person is asked, wherever they are."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.piping import Pipe
    from segue.cli.chatting.screen import Screen

SECONDS = 60.0
"""After so long nobody has agreed."""
Interrupted = Callable[[], None]
Heard = Callable[[str], None]


class Agreement(StrEnum):
    """The answer to a question of whether something may be done."""

    YES = "yes"
    NO = "no"
    ALL = "all"
    """Yes, and to all others of its kind in this conversation."""
    STOP = "stop"
    """No, and nothing else is to be done either."""
    NOBODY = "nobody answered"


def all_of(kind: str) -> str:
    """What one key allows, as it is offered."""
    return f"[a]ll {kind} of this conversation"


class Prompt(Protocol):
    async def ask(self) -> str | None:
        """The next message of the person; None when they want to leave."""

    async def agree(self, question: str, kind: str = "commands", seconds: float = SECONDS) -> Agreement:
        """Whether the person agrees; nobody who says nothing does. `kind` is what they can allow all of."""

    def redraw(self) -> None:
        """Something that is shown below has changed; called in any thread."""

    def listening(
        self, screen: "Screen | Pipe", on_interrupt: Interrupted, on_line: Heard
    ) -> AbstractAsyncContextManager[None]:
        """While an agent works: Ctrl-C calls the one, and at a terminal every line that is sent calls the other."""
