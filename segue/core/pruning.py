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
