"""A message as a platform brought it, before anything is decided about it."""

from enum import StrEnum
from typing import Any, NamedTuple

from segue.core.attachments import MOST_FILES, Attachment, told_of
from segue.core.scope import Principal
from segue.core.sources import SessionSource, kept_id, kept_source
from segue.core.text import one_line, shorten, storable

LONGEST_QUOTE = 300
_UNQUOTABLE = str.maketrans("", "", "[]“”")

ORIGINAL = ""
"""The version of a message that nobody has edited."""


class Cursor(NamedTuple):
    """How far a platform has been read; kept in the transaction that accepts what was read."""

    name: str
    value: str


class Quote(NamedTuple):
    """An earlier message that somebody points at."""

    author: str
    text: str


class Inbound(NamedTuple):
    """What somebody said on a platform. Its account, chat, id and version name it for ever."""

    source: SessionSource
    """Where it comes from, and where the answer goes unless `route` says otherwise."""
    message_id: str
    text: str
    edit: str = ORIGINAL
    """Which version of the message this is: whatever the platform tells versions apart by."""
    parts: list[dict[str, Any]] | None = None
    """The whole content in the chat format, when it is more than text."""
    files: tuple[Attachment, ...] = ()
    """What was sent along, kept or not."""
    quote: "Quote | None" = None
    """What it answers, when that was said by pointing at it."""
    is_mention: bool = False
    """Whether it is addressed to us: by name, or as an answer to something that we said."""
    is_own: bool = False
    """Whether we ourselves said it."""
    is_person: bool = True
    """Whether somebody said it; what runs by itself moves no clock."""
    is_offered: bool = False
    """Whether whoever brings it is told at once that it is not taken, and can bring it again."""
    agent: str | None = None
    """Who answers it, when that was said where it comes from."""
    route: SessionSource | None = None
    """Where the answer goes, when that is not where it comes from."""
    cursor: Cursor | None = None
    principal: Principal | None = None
    """Who says it, when the door knows them by a token."""
    lane: str | None = None
    """The key of the lane that it is said in, when that is not the one of where it comes from."""
    is_verbatim: bool = False
    """Whether it is nothing but words, also when it looks like a command."""


def kept(inbound: Inbound) -> Inbound:
    """The same message in characters that every database holds."""
    cursor = inbound.cursor
    return inbound._replace(
        source=kept_source(inbound.source),
        message_id=kept_id(inbound.message_id),
        text=storable(inbound.text),
        edit=kept_id(inbound.edit),
        route=None if inbound.route is None else kept_source(inbound.route),
        cursor=None if cursor is None else Cursor(storable(cursor.name), storable(cursor.value)),
    )


def worded(inbound: Inbound, text: str) -> str:
    """What a message says, with what it points at and what was sent along, each in a line of its own."""
    before = [] if inbound.quote is None else [_line(inbound.quote)]
    beyond = len(inbound.files) - MOST_FILES
    behind = [*told_of(inbound.files[:MOST_FILES]), *([f"[{beyond} more files]"] if beyond > 0 else [])]
    return "\n".join([*before, *([text] if text or not (before or behind) else []), *behind])


def _line(quote: Quote) -> str:
    """The words of others may have been chosen to be read as something else, so they are one line that ends."""
    author, text = (one_line(storable(said)).translate(_UNQUOTABLE) for said in quote)
    return f"[in answer to {shorten(author, 80) or 'somebody'}: “{shorten(text, LONGEST_QUOTE)}”]"


class Receipt(StrEnum):
    """What became of a message; whatever it is, the platform may forget the message now."""

    ACCEPTED = "accepted"
    KNOWN = "known"
    """It was accepted before."""
    REFUSED = "refused"
    """Too many are waiting; it is recorded, and its sender is told. What was only offered is not recorded."""
    IGNORED = "ignored"
    """It is not for us."""
