"""Pieces of the answers. Whatever was stored is made harmless here before it is part of one."""

import re
from collections.abc import Iterable

from segue.core.errors import Invalid
from segue.core.sessions import Listed, Session
from segue.core.text import one_line, printable
from segue.core.titles import shorten_title

_NAME = 60
_LARGEST = 1_000
_NUMBER = re.compile("[1-9][0-9]{0,8}")


def name_of(session: Session | Listed) -> str:
    """What people call a conversation: its title, or how it began."""
    return shorten_title(one_line(session.title or session.first_line), _NAME) or "(nothing said yet)"


def way_back(session_id: str) -> str:
    return f"/resume {one_line(session_id)}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one below the other."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in rows)


def inset(text: str, sign: str) -> str:
    """Text behind a sign; no line of it can pass for the beginning of another."""
    return sign + printable(text).replace("\n", "\n" + " " * len(sign))


def how_many(argument: str, default: int, command: str) -> int:
    """The number that a command was given."""
    if not argument:
        return default
    if not _NUMBER.fullmatch(argument):
        raise Invalid(f"{command} takes a number, such as {command} 3.")
    return min(int(argument), _LARGEST)
