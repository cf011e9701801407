"""What a program sees of a turn: the words of the answer as they come. What people should know goes to stderr."""

from typing import TextIO

from segue.cli.output import note
from segue.core.events import Compressed, Done, Event, Failed, Note, Reply, Text
from segue.core.text import storable


class Pipe:
    """Anything that is no terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._has_streamed = False
        self._is_at_start = True

    def begin(self) -> None:
        """A turn begins."""
        self._has_streamed = False

    def show(self, event: Event) -> None:
        match event:
            case Text(text):
                self._has_streamed = True
                self._put(text)
            case Reply(text=text):
                self._put("" if self._has_streamed else text)
                self._end_line()
                self._has_streamed = False
            case Note(text) | Failed(text):
                self._end_line()
                note(text)
            case Compressed():
                self.show(Note(event.sentence))
            case Done():
                self._end_line()

    def say(self, text: str) -> None:
        """Show lines that are no part of a turn."""
        self._put(text)
        self._end_line()

    def _end_line(self) -> None:
        if not self._is_at_start:
            self._put("\n")

    def _put(self, text: str) -> None:
        if text:
            self._out.write(storable(text))
            self._out.flush()
            self._is_at_start = text.endswith("\n")
