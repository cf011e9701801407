"""What can be completed: commands, and what some of them take."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple


class Offer(NamedTuple):
    """Something that can be typed, and what it means."""

    value: str
    meaning: str = ""


class Offers(NamedTuple):
    commands: tuple[Offer, ...] = ()
    """With their slash."""
    arguments: Mapping[str, Callable[[str], Iterable[Offer]]] = {}
    """By command: what it can be given that begins so. Called in another thread."""

    def for_line(self, line: str) -> tuple[str, Iterable[Offer]]:
        """What was typed of the word at the end of a line, and what it can become."""
        command, space, typed = line.partition(" ")
        if not command.startswith("/") or "\n" in line:
            return "", ()
        if not space:
            return command, (offer for offer in self.commands if offer.value.startswith(command))
        find = self.arguments.get(command)
        typed = typed.lstrip()
        return typed, find(typed) if find else ()
