"""What a message on a platform is: something said, something to be done, or something for the answer that runs."""

from collections.abc import Sequence
from typing import NamedTuple

from segue.core.commands import Command, Unknown, parse
from segue.core.inbox import Want
from segue.core.queueing import QueueMode

_CLEARING = frozenset({"stop", "new"})
_ASKING = frozenset({"retry", "compress"})
_DEFAULT = "default"


class Reading(NamedTuple):
    want: Want
    text: str
    command: Command | Unknown | None = None
    is_clearing: bool = False
    """Whether nothing that waits is answered any more, and what runs ends."""
    is_steering: bool = False
    is_asking: bool = False
    """Whether it is a command that has something answered or written: what waits is cancelled with it."""


def read(text: str, *, bot: str = "", triggers: Sequence[str] = ()) -> Reading:
    """What a message means. `triggers` are words that begin a new conversation, as `/new` does."""
    command = _triggered(text, triggers) or parse(text, bot=bot, in_terminal=False)
    match command:
        case None:
            return Reading(Want.PLAIN, text)
        case Command("queue", argument) if argument.strip() and argument.strip().lower() not in (*QueueMode, _DEFAULT):
            return Reading(Want.QUEUED, argument.strip())
        case Command("steer", argument) if argument.strip():
            return Reading(Want.PLAIN, argument.strip(), is_steering=True)
        case Command(name, argument):
            is_clearing = name in _CLEARING or (name == "resume" and bool(argument.strip()))
            is_asking = name in _ASKING or (name == "new" and bool(argument.strip()))
            return Reading(Want.COMMAND, text, command, is_clearing, is_asking=is_asking)
    return Reading(Want.COMMAND, text, command)


def _triggered(text: str, triggers: Sequence[str]) -> Command | None:
    for trigger in triggers:
        said, rest = text[: len(trigger)], text[len(trigger) :]
        if trigger and said.casefold() == trigger.casefold() and (not rest or rest[0].isspace()):
            return Command("new", rest[1:] if rest.strip() else "")
    return None
