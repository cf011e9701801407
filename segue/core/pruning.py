"""Old tool results, cut down in what a model is shown; what was stored stays whole.

What is cut is decided once and noted with the message, as the characters that stay of its beginning and of its end:
`1500:1500`, or `0:0` when nothing of it stays. So a model is told the same bytes of it from then on.
"""

from typing import NamedTuple


class Cut(NamedTuple):
    """How many characters stay."""

    head: int
    tail: int

    @property
    def noted(self) -> str:
        return f"{self.head}:{self.tail}"


NOTHING_LEFT = Cut(0, 0)


class Pruning(NamedTuple):
    """How old tool results are cut down."""

    keep_last: int = 3
    """Answers whose results stay whole."""
    soft: float = 0.3
    """The share of the window from which on they are cut."""
    hard: float = 0.5
    """The share from which on nothing of them is left."""
    min_chars: int = 50_000
    """Fewer characters of old results are not worth it: what a model has read already would have to be read again."""
    max_chars: int = 4_000
    """A result that is not longer stays as it is."""
    head: int = 1_500
    tail: int = 1_500


KEPT_TURNS = 20


class Rules(NamedTuple):
    """When a conversation is made shorter, and how much of it stays."""

    threshold: float = 0.75
    """The share of the window from which on it is compressed."""
    kept_turns: int = KEPT_TURNS
    pruning: Pruning = Pruning()


def cut_of(noted: str | None) -> Cut | None:
    """The cut that was noted; whatever else somebody wrote there cuts nothing."""
    head, found, tail = (noted or "").partition(":")
    return Cut(int(head), int(tail)) if found and _is_count(head) and _is_count(tail) else None


def shown(text: str, noted: str | None) -> str:
    """What a model is shown of a result."""
    cut = cut_of(noted)
    if cut is None or cut.head + cut.tail >= len(text):
        return text
    if cut == NOTHING_LEFT:
        return (
            f"[The result of this call, {len(text):,} characters, is no longer shown. Call the tool again if needed.]"
        )
    left_out = len(text) - cut.head - cut.tail
    return f"{text[: cut.head]}\n[… {left_out:,} characters are no longer shown …]\n{text[len(text) - cut.tail :]}"


def _is_count(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= 9
