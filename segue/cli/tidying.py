"""What goes by itself, done and told after a command's own work."""

import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from segue import app
from segue.cli.output import note
from segue.config import Settings
from segue.core.errors import StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Store
from segue.sessions.retaining import Keeping, is_due

if TYPE_CHECKING:
    from segue.sessions.tidying import Tidied


def tidy_up(store: Store, settings: Settings) -> None:
    """Announce and remove what has served its time. Whatever keeps it from that, there is a next time."""
    keeping, now = Keeping(settings.retention.trash_days, settings.retention.prune_days), time.time()
    if not store.read(OWNER_AT_CONSOLE, is_due, keeping, now):
        return
    from segue.sessions.tidying import tidy  # hardly ever due, and slow to load

    with suppress(StoreError), app.open_store(chosen=settings, patience=0) as writing:
        _tell(writing.write(OWNER_AT_CONSOLE, tidy, keeping, now), keeping)


def _tell(done: "Tidied", keeping: Keeping) -> None:
    when = datetime.fromtimestamp(done.due_at).astimezone().strftime("%Y-%m-%d %H:%M")
    if done.leaving_trash:
        sessions = count(done.leaving_trash, "session")
        note(f"{sessions} will leave the trash for good after {when}; `segue sessions trash list` shows what is there.")
    if done.left_trash:
        days = count(keeping.trash_days, "day")
        note(f"{count(done.left_trash, 'session')} deleted more than {days} ago left the trash for good.")
    if done.leaving_store:
        conversations = count(done.leaving_store, "conversation")
        days = count(keeping.prune_days, "day")
        note(f"{conversations} without activity for {days} will go into the trash after {when}; pinned ones stay.")
    if done.left_store:
        note(f"{count(done.left_store, 'old session')} went into the trash; `segue sessions trash list` shows them.")
