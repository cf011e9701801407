"""Pieces of an answer as people may be shown them.

An answer has an end, whatever a provider sends. Providers write some characters as two halves (a JSON escape each), and
may send the halves in two pieces. Half a character is held back until the other half comes.
"""

from collections.abc import Iterator

from segue.core.errors import StreamBroken
from segue.core.events import Reasoning, Text

MAX_ANSWER_CHARS = 8_000_000
"""Of an answer, the thoughts before it and the arguments of its calls."""

Said = type[Text] | type[Reasoning]


class Pieces:
    """The pieces of one answer, one after the other."""

    def __init__(self) -> None:
        self._chars = 0
        self._half = ""
        self._said: Said = Text

    def take(self, said: Said, text: str) -> Iterator[Text | Reasoning]:
        if not text:
            return
        self.count(text)
        if said is not self._said:
            yield from self.rest()
        self._said = said
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        if text := joined(text.removesuffix(self._half)):
            yield said(text)

    def count(self, text: str) -> None:
        """Note that an answer is longer by some text; raises when it is too long."""
        self._chars += len(text)
        if self._chars > MAX_ANSWER_CHARS:
            raise StreamBroken(f"The model wrote more than {MAX_ANSWER_CHARS:,} characters in one answer.")

    def rest(self) -> Iterator[Text | Reasoning]:
        half, self._half = self._half, ""
        if half:
            yield self._said(joined(half))


def joined(text: str) -> str:
    """The text with halves that belong together made whole, and lone ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
