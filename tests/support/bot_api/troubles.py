"""What goes wrong between a bot and Telegram, when a test says so."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["flood", "html", "error", "hang", "drop", "cut", "garbage"]
"""Too many requests; a page of a proxy; an error in JSON; silence, then a broken connection; a broken connection at
once; one that breaks amid the answer; an answer that is no JSON."""


@dataclass
class Trouble:
    kind: Kind
    methods: list[str]
    """Empty for all."""
    times: int | None
    """None for until it is calm."""
    is_taken: bool
    """The call is carried out, and only its answer is lost."""
    seconds: float
    status: int
    retry_after: int
    description: str = "Internal Server Error"
    """Of an error."""


class Troubles:
    def __init__(self) -> None:
        self._waiting: list[Trouble] = []

    def add(self, trouble: Trouble) -> None:
        self._waiting.append(trouble)

    def calm(self) -> None:
        self._waiting.clear()

    def of(self, method: str) -> Trouble | None:
        """What this call meets: the first that was said of it and is not used up."""
        for trouble in self._waiting:
            if not trouble.methods or method.lower() in (one.lower() for one in trouble.methods):
                self._use(trouble)
                return trouble
        return None

    def _use(self, trouble: Trouble) -> None:
        if trouble.times is not None:
            trouble.times -= 1
            if trouble.times <= 0:
                self._waiting.remove(trouble)
