"""How a chat was asked for."""

from typing import NamedTuple

from segue.config.settings import HISTORY_FILE

HISTORY = HISTORY_FILE
"""The file in the home with what was typed before."""


class Beginning(NamedTuple):
    """What was said on the command line."""

    name: str | None = None
    is_latest: bool = False
    question: str | None = None
    model: str | None = None
    is_allowed: bool = False
    is_branch: bool = False
    is_exact: bool = False
    """Whether the part that was named is meant, though the conversation has gone on in another one."""
    as_json: bool = False
    """Whether the answer to the question is printed as JSON."""

    @property
    def is_new(self) -> bool:
        return self.name is None and not self.is_latest and self.question is None
