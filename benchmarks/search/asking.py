"""What is asked, in words that every side understands; the standard library alone."""

from typing import NamedTuple

LIMIT = 20


class Asked(NamedTuple):
    """One search."""

    text: str
    is_part: bool = False
    """The text stands within a word."""
    source: str = ""
    since: str = ""
    """The first day, as 2025-01-31."""
    limit: int = LIMIT
