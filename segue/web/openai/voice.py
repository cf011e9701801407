"""What a stream tells of an answer, so that all of it together is the answer as it is stored.

An answer is everything that the agent says in its turn, also before it uses a tool, with an empty line between. Whoever
comes late is told first what was written so far, and the rest of what is being said as soon as it has been said.
"""

from collections.abc import Sequence

from segue.core.events import Event, Reply, Text

BETWEEN = "\n\n"


def joined(texts: Sequence[str]) -> str:
    """An answer as one text."""
    return BETWEEN.join(texts)


class Voice:
    """What somebody was told so far. Each method says what to tell them next, which may be nothing."""

    def __init__(self, written: Sequence[str] = (), *, is_late: bool = False) -> None:
        """Late is who comes when the agent is at work already: the beginning of what it is saying was missed."""
        self._told = list(written)
        self._piece = ""
        self._is_late = is_late

    def beginning(self) -> str:
        return joined(self._told)

    def hear(self, event: Event) -> str:
        match event:
            case Text(text) if text and not self._is_late:
                return self._say(text)
            case Reply(text=text):
                return self._finish(text)
        return ""

    def end(self, texts: Sequence[str]) -> str:
        """The rest of an answer that is stored."""
        rest = "".join(self._finish(text) for text in texts[len(self._told) :])
        self._piece = ""
        return rest

    def _say(self, text: str) -> str:
        before = "" if self._piece or not self._told else BETWEEN
        self._piece += text
        return before + text

    def _finish(self, text: str) -> str:
        """A reply is whole. What was said of it that it does not begin with cannot be taken back, so it stays."""
        was_late, self._is_late = self._is_late, False
        if was_late and self._told and self._told[-1] == text:
            return ""  # it was written already
        piece, self._piece = self._piece, ""
        if not text:
            return ""
        before = BETWEEN if self._told or piece else ""
        self._told.append(text)
        return text[len(piece) :] if piece and text.startswith(piece) else before + text
