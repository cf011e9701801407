"""What a program says in a lane of people, and what comes of it, is shown in the chat of that lane as well.

Where sending was turned off with `/send off`, nothing of it is.
"""

from segue.core.inbox import Entry
from segue.core.lifecycle import Lane
from segue.core.outbox import What
from segue.core.preferences import decode
from segue.core.sources import API_SERVER, UNATTENDED
from segue.core.text import one_line, shorten
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post

CHANGING = frozenset({"stop", "new", "resume", "branch", "undo", "redo"})
"""Commands after which the people of a chat find their conversation changed."""
MAX_SPEECH = 1_000
"""Characters of what a program says that are shown; a document that it passes on would fill the chat."""


def show_speech(tx: Transaction, posting: Posting, entry: Entry, now: float) -> bool:
    """Show what a program says where people will read the answer; False when there is no such place."""
    text = f"The program {_client(entry)} says:\n{shorten(entry.text, MAX_SPEECH)}"
    return _show(tx, posting, entry, f"{entry.id}:said", text, What.NOTICE, now)


def show_command(tx: Transaction, posting: Posting, entry: Entry, name: str, told: str, now: float) -> None:
    """Tell people of a command that a program gave, if it changes what they find."""
    if name in CHANGING:
        text = f"The program {_client(entry)} gave /{name}. {told}".rstrip()
        _show(tx, posting, entry, f"{entry.id}:given", text, What.NOTICE, now)


def show_answer(tx: Transaction, posting: Posting, entry: Entry, text: str, what: What, now: float) -> None:
    """Show what a program was answered."""
    if text:
        _show(tx, posting, entry, f"{entry.id}:shown:{what}", text, what, now)


def _show(tx: Transaction, posting: Posting, entry: Entry, name: str, text: str, what: What, now: float) -> bool:
    lane = _lane_of_people(tx, entry)
    if lane is None or lane.origin is None:
        return False
    envelope = Envelope(entry.lane_key, entry.principal, entry.audience, lane.origin, name, None, entry.session_id)
    session = tx.sessions.find(lane.session_id or "")
    post(tx, posting, envelope, text, what, now, decode(session.model_config).send if session else None)
    return True


def _lane_of_people(tx: Transaction, entry: Entry) -> Lane | None:
    """Return the lane in which a program speaks if people spoke there last; None for a lane of its own."""
    lane = tx.lanes.find(entry.lane_key) if entry.platform == API_SERVER else None
    origin = lane.origin if lane else None
    return lane if origin is not None and origin.platform not in (*UNATTENDED, API_SERVER) else None


def _client(entry: Entry) -> str:
    return one_line(entry.author or "")
