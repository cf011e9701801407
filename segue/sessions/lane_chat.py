"""What a program says in a lane of people, and what comes of it, is shown in the chat of that lane as well."""

from segue.core.inbox import Entry
from segue.core.outbox import What
from segue.core.sources import API_SERVER, UNATTENDED, SessionSource
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post

CHANGING = frozenset({"stop", "new", "resume", "branch", "undo", "redo"})
"""Commands after which the people of a chat find their conversation changed."""


def show_speech(tx: Transaction, posting: Posting, entry: Entry, now: float) -> None:
    """Show what a program says where people will read the answer."""
    text = f"The program {_client(entry)} says:\n{entry.text}"
    _show(tx, posting, entry, f"{entry.id}:said", text, What.NOTICE, now)


def show_command(tx: Transaction, posting: Posting, entry: Entry, name: str, told: str, now: float) -> None:
    """Tell people of a command that a program gave, if it changes what they find."""
    if name in CHANGING:
        text = f"The program {_client(entry)} gave /{name}. {told}"
        _show(tx, posting, entry, f"{entry.id}:given", text, What.NOTICE, now)


def show_answer(
    tx: Transaction, posting: Posting, entry: Entry, text: str, what: What, now: float, override: str | None
) -> None:
    """Show what a program was answered."""
    if text:
        _show(tx, posting, entry, f"{entry.id}:shown:{what}", text, what, now, override)


def _show(
    tx: Transaction,
    posting: Posting,
    entry: Entry,
    name: str,
    text: str,
    what: What,
    now: float,
    override: str | None = None,
) -> None:
    chat = _chat_of_people(tx, entry)
    if chat is not None:
        envelope = Envelope(entry.lane_key, entry.principal, entry.audience, chat, name, None, entry.session_id)
        post(tx, posting, envelope, text, what, now, override)


def _chat_of_people(tx: Transaction, entry: Entry) -> SessionSource | None:
    """Return where people of a lane spoke last, when a program speaks there; None in a lane of its own."""
    lane = tx.lanes.find(entry.lane_key) if entry.platform == API_SERVER else None
    origin = lane.origin if lane else None
    return origin if origin is not None and origin.platform not in (*UNATTENDED, API_SERVER) else None


def _client(entry: Entry) -> str:
    return one_line(entry.author or "")
