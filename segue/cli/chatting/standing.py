"""Where the person is: the line below the prompt."""

from collections.abc import Callable

OFFLINE = "offline, no key"


def _unknown() -> str:
    return ""


def _nobody_looks() -> None: ...


class Standing:
    def __init__(self) -> None:
        self.name = "new conversation"
        self.model: Callable[[], str] = _unknown
        """Asked each time, because it may still be found out."""
        self.redraw: Callable[[], None] = _nobody_looks
        """Called, in any thread, when it has been found out."""

    def line(self) -> str:
        return " · ".join(part for part in (self.name, self.model()) if part)
