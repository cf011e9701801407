"""Which conversations are in the list, which of them fit what was typed, and how a row is laid out."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len

from segue.cli.browsing.cells import fitted, fitted_right, line
from segue.cli.browsing.contents import Passages
from segue.cli.output import cut
from segue.core.moments import ago
from segue.core.sessions import Kind, Listed
from segue.core.snippets import unmarked
from segue.core.text import count
from segue.core.titles import shorten_title
from segue.core.tokens import fold
from segue.ports.store import Filter, Transaction
from segue.sessions import listing
from segue.sessions.searching import Hit

_EVERY_ROW = 10**9
_GAP = "  "
_MARK = 2
_SOURCE, _ACTIVE, _MESSAGES = 9, 11, 8
_NARROWEST_NAME = 24
_ROOM_FOR_BEGINNING = 12


class View(StrEnum):
    """What the list is of."""

    CONVERSATIONS = "conversations"
    ARCHIVED = "archived conversations"
    EVERYTHING = "every kind and every part"

    @property
    def following(self) -> "View":
        views = list(View)
        return views[(views.index(self) + 1) % len(views)]


WANTED = {
    View.CONVERSATIONS: Filter(kinds=(Kind.INTERACTIVE,)),
    View.ARCHIVED: Filter(kinds=(Kind.INTERACTIVE,), archived=True),
    View.EVERYTHING: Filter(archived=None, tips_only=False),
}


class Row(NamedTuple):
    """A session of the list, with the words it is found by."""

    session: Listed
    title: str
    beginning: str
    haystack: str
    folded_id: str
    hits: tuple[Hit, ...] = ()
    """Where in it something was said that somebody looks for."""


class Style(StrEnum):
    """How a stretch of a row looks; the name of its style in the stylesheet."""

    HEAD = "list--head"
    MARK = "list--mark"
    TITLE = "list--title"
    QUIET = "list--quiet"


class Widths(NamedTuple):
    """Cells of each column; a column that has no room has none."""

    name: int
    source: int
    active: int
    messages: int


def list_rows(tx: Transaction, view: View) -> list[Row]:
    return [row_of(session) for session in listing.list_sessions(tx, WANTED[view], _EVERY_ROW)]


def row_of(session: Listed) -> Row:
    title, beginning = line(session.title or ""), line(session.first_line)
    haystack = "\n".join((session.title or "", session.first_line))
    return Row(session, title, beginning, fold(haystack), fold(session.id))


def typed_words(typed: str) -> tuple[str, ...]:
    """What somebody looks for: every word, in any order."""
    return tuple(fold(typed).split())


def is_named(row: Row, words: tuple[str, ...]) -> bool:
    """Whether a row is what somebody looks for: by title, id or first line."""
    return all(word in row.haystack or row.folded_id.startswith(word) for word in words)


def narrowed(rows: Iterable[Row], words: tuple[str, ...], said: Passages) -> list[Row]:
    """The rows that fit, and below them those in which it was said, the best first."""
    if not words:
        return list(rows)
    fitting, others = list[Row](), dict[str, Row]()
    for row in rows:
        if is_named(row, words):
            fitting.append(_saying(row, said))
        else:
            others[row.session.id] = row
    return fitting + [_saying(others[session_id], said) for session_id in said if session_id in others]


def _saying(row: Row, said: Passages) -> Row:
    return row._replace(hits=tuple(said.get(row.session.id, ())))


def position_of(rows: list[Row], session_id: str | None, otherwise: int) -> int:
    """Where a session stands now; if it has gone, the place where it was."""
    found = next((at for at, row in enumerate(rows) if row.session.id == session_id), otherwise)
    return max(0, min(found, len(rows) - 1))


def emptiness(view: View, typed: str, *, is_loaded: bool, is_searched: bool, is_incomplete: bool = False) -> str:
    """The sentence in place of rows."""
    if not is_loaded:
        return "Reading…"
    if typed_words(typed) and is_incomplete:
        return "The search is incomplete. Esc clears the filter."
    if typed_words(typed):
        return "Nothing fits. Esc clears the filter." if is_searched else "Searching…"
    if view is View.ARCHIVED:
        return "Nothing is archived."
    return "No conversations yet."


def tally(view: View, shown: int, total: int) -> str:
    """How many there are, for the top of the screen."""
    number = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
    noun = {View.CONVERSATIONS: "conversation", View.ARCHIVED: "archived conversation", View.EVERYTHING: "session"}
    return f"{number} {count(total, noun[view]).split(' ', 1)[1]}"


def widths(total: int) -> Widths:
    """The columns that fit; the name has what is left."""
    left, found = total - _MARK, []
    for width in (_ACTIVE, _SOURCE, _MESSAGES):  # the first to be kept comes first
        taken = width if left - width - len(_GAP) >= _NARROWEST_NAME else 0
        left -= taken + len(_GAP) if taken else 0
        found.append(taken)
    active, source, messages = found
    return Widths(max(left, 0), source, active, messages)


def heading(columns: Widths) -> list[tuple[str, Style]]:
    name = fitted("  Conversation", columns.name + _MARK)
    return [(name + _columns("Source", "Last active", "Messages", columns), Style.HEAD)]


def row_pieces(row: Row, columns: Widths, now: float) -> list[tuple[str, Style]]:
    """A row as text and styles, exactly as many cells as the columns have together."""
    session = row.session
    mark = ("★ " if session.pinned else "  ", Style.MARK)
    active, messages = ago(session.last_active_at, now), f"{session.message_count:,}"
    rest = _columns(line(session.source), active, messages, columns)
    return [mark, *_name(row, columns.name), (rest, Style.QUIET)]


def _name(row: Row, width: int) -> list[tuple[str, Style]]:
    """The title, and where there is room what was said, unless it is the same; without a title only that."""
    said = line(unmarked(row.hits[0].snippet)) if row.hits else row.beginning
    if not row.title:
        return [(fitted(said or "—", width), Style.QUIET)]
    room = width - cell_len(row.title) - len(_GAP)
    if room < _ROOM_FOR_BEGINNING or said in ("", row.title):
        return [(fitted(shorten_title(row.title, width, cut), width), Style.TITLE)]
    return [(row.title + _GAP, Style.TITLE), (fitted(said, room), Style.QUIET)]


def _columns(source: str, active: str, messages: str, columns: Widths) -> str:
    cells = [
        (fitted(source, columns.source), columns.source),
        (fitted(active, columns.active), columns.active),
        (fitted_right(messages, columns.messages), columns.messages),
    ]
    return "".join(_GAP + cell for cell, width in cells if width)
