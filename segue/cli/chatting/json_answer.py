"""`--json`: a single question is answered by one JSON object on stdout, also when it failed."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from segue.cli.chatting.piping import Pipe
from segue.cli.exit_codes import exit_code
from segue.cli.output import note, show_json
from segue.core.errors import SegueError
from segue.core.events import Compressed, Done, Event, Failed, ModelCalled, Note, Reply, Text
from segue.core.sessions import Session
from segue.core.usage import Usage


def print_answer(ask: Callable[["JsonAnswer"], int]) -> int:
    """Print what asking comes to; what Segue says no to is in the object as well. Returns the exit code."""
    answer = JsonAnswer()
    try:
        code = ask(answer)
    except SegueError as error:
        answer.error, code = str(error), exit_code(error)
    show_json(answer.as_dict())
    return code


class JsonAnswer(Pipe):
    """Keeps what a turn came to instead of printing it. Notes for people go to stderr, as in a pipe."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.error: str | None = None
        self.begin()

    def begin(self) -> None:
        self.error = None
        self._pieces: list[str] = []
        self._answer: str | None = None
        self._model: str | None = None
        self._usages: list[Usage] = []

    def show(self, event: Event) -> None:
        match event:
            case ModelCalled():
                self._pieces.clear()
            case Text(text):
                self._pieces.append(text)
            case Reply(text=text, model=model, usage=usage):
                self._answer = text or "".join(self._pieces) or self._answer
                self._model = model or self._model
                self._usages.append(usage)
                self._pieces.clear()
            case Note(text):
                note(text)
            case Compressed():
                note(event.sentence)
            case Failed(sentence):
                self.error = sentence
            case Done(was_stopped=True):
                self.error = self.error or "The answer was stopped."

    def say(self, text: str) -> None:
        """Nothing but the object is printed."""

    def as_dict(self) -> dict[str, Any]:
        """The object; every key is always there."""
        return {
            "session_id": self.session.id if self.session else None,
            "title": self.session.title if self.session else None,
            "answer": "".join(self._pieces) or self._answer,
            "model": self._model,
            "usage": reduce(Usage.plus, self._usages, Usage())._asdict(),
            "error": self.error,
        }
