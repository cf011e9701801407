"""Where the person is: the line below the prompt."""

from collections.abc import Callable


def _unknown() -> str:
    return ""


class Standing:
    def __init__(self) -> None:
        self.name = "new conversation"
        self.model: Callable[[], str] = _unknown
        """Asked each time, because it may still be found out."""

    def line(self) -> str:
        return " · ".join(part for part in (self.name, self.model()) if part)
