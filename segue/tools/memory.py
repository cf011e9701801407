"""The tool `memory`: notes that outlast a conversation, and skills, which are notes on how to do something."""

from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from segue.core.text import count, one_line, shorten, size
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.note_names import NoteName, note_name
from segue.tools.notes import MOST_BYTES, Note, Notes
from segue.tools.threads import in_thread

_LONGEST_LINE = 80


class Action(StrEnum):
    LIST = "list"
    READ = "read"
    WRITE = "write"
    APPEND = "append"
    DELETE = "delete"


class Memory:
    """Keeps the notes of one folder."""

    spec = ToolSpec(
        "memory",
        "Keep notes that outlast this conversation: what the user wants remembered, and skills/… on how to do things."
        " List them before you say that you do not know something about the user.",
        {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "description": "write replaces a note or begins it, append adds to its end.",
                    "enum": [str(action) for action in Action],
                    "maxLength": 10,
                },
                "name": {
                    "type": "string",
                    "description": "The note, such as travel-plans or skills/deploy; all actions but list need it.",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "text": {
                    "type": "string",
                    "description": "What to write or append, in Markdown.",
                    "minLength": 1,
                    "maxLength": MOST_BYTES,
                },
            },
            "required": ["action"],
            "additionalProperties": False,
        },
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = Notes(folder)

    def is_idempotent(self, arguments: dict[str, Any]) -> bool:
        return arguments.get("action") != "append"

    def risk(self, arguments: dict[str, Any]) -> str | None:
        try:
            action, name, _ = self._understood(arguments)
        except ToolFailed:
            return None  # and nothing will be done
        return f"delete the note {name}" if action is Action.DELETE else None

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:  # noqa: ARG002 - the same in every session
        action, name, text = self._understood(arguments)
        return await in_thread(self._do, action, name, text)

    def _understood(self, arguments: dict[str, Any]) -> tuple[Action, NoteName | None, str]:
        given = checked(self.spec, arguments)
        action = Action(given["action"])
        needed = {Action.LIST: (), Action.WRITE: ("name", "text"), Action.APPEND: ("name", "text")}
        for argument in needed.get(action, ("name",)):
            if given[argument] is None:
                raise ToolFailed(f"memory needs the argument {argument} to {action}.")
        name = None if action is Action.LIST else note_name(given["name"])
        return action, name, given["text"] or ""

    def _do(self, action: Action, name: NoteName | None, text: str) -> str:
        try:
            return _listed(self._notes.listed()) if name is None else self._done(action, name, text)
        except OSError as error:
            raise ToolFailed(
                f"The notes in {self._folder} cannot be used ({error.strerror}):"
                " it must be a folder that can be written, and no link."
            ) from None

    def _done(self, action: Action, name: NoteName, text: str) -> str:
        if action in (Action.WRITE, Action.APPEND):
            length = self._notes.write(name, text.encode(), behind=action is Action.APPEND)
            return f"The note {name} is kept; it has {size(length)}."
        if action is Action.READ and (content := self._notes.find(name)) is not None:
            told = "\n[The note goes on; it is longer than a note may be.]" if len(content) > MOST_BYTES else ""
            return (content[:MOST_BYTES].decode("utf-8", "replace") or "[The note is empty.]") + told
        if action is Action.DELETE and self._notes.delete(name):
            return f"The note {name} is deleted."
        raise ToolFailed(_missing(name, self._notes.listed()))


def _listed(notes: list[Note]) -> str:
    if not notes:
        return "There are no notes yet."
    return "\n".join([f"{count(len(notes), 'note')}:", *map(_line, notes)])


def _line(note: Note) -> str:
    lines = note.beginning.decode("utf-8", "replace").strip().splitlines()
    return f"- {note.name} ({size(note.length)}): {shorten(one_line(lines[0] if lines else ''), _LONGEST_LINE)}"


def _missing(name: NoteName, notes: list[Note]) -> str:
    near = get_close_matches(str(name), [str(note.name) for note in notes], n=3)
    return f"There is no note {name}" + (f"; perhaps {' or '.join(near)} is meant." if near else "; list shows all.")
