"""How a chat was asked for."""

from typing import NamedTuple


class Beginning(NamedTuple):
    """What was said on the command line."""

    name: str | None = None
    is_latest: bool = False
    question: str | None = None
    model: str | None = None
    is_allowed: bool = False

    @property
    def is_new(self) -> bool:
        return self.name is None and not self.is_latest and self.question is None
