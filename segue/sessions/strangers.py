"""Telling the owner that somebody new writes, where the owner's direct messages are one conversation.

With `dm_scope: main` an owner expects every direct message in the main lane. Other people get lanes of their own, so
the owner is told once of each of them.
"""

from segue.core.inbox import Entry
from segue.core.keys import KeyRules, Main, build_key
from segue.core.outbox import What
from segue.core.scope import OWNER
from segue.core.sharing import DmScope
from segue.core.situation import quoted
from segue.core.sources import UNATTENDED, SessionSource
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post
from segue.sessions.handing import find_home


def is_stranger(entry: Entry, keys: KeyRules) -> bool:
    """Return whether the owner may want to know who sent a message: somebody else's direct one, under `main`."""
    source = entry.source
    return (
        keys.dm_scope is DmScope.MAIN
        and bool(entry.is_person)
        and source.chat_type == "dm"
        and source.platform not in UNATTENDED
        and entry.person != OWNER
    )


def tell_owner_of_stranger(
    tx: Transaction, entry: Entry, keys: KeyRules, agent: str, posting: Posting, now: float
) -> bool:
    """Post a notice about the sender of a first message to the owner; False when there is nowhere to send it."""
    main_key = build_key(Main(keys.main_key, agent))
    owner_at = _chat_of_owner(tx, main_key, entry.platform)
    if owner_at is None:
        return False
    source = entry.source
    name = f"{quoted(source.user_name)} ({one_line(source.peer)})" if source.user_name else one_line(source.peer)
    text = (
        f"{name} wrote to you on {one_line(source.platform)} for the first time and has a conversation of their own; "
        "nothing of yours is shown there."
    )
    name_of_notice = f"stranger:{main_key}:{source.platform}:{source.peer}"
    envelope = Envelope(main_key, OWNER, "", owner_at, name_of_notice)
    post(tx, posting, envelope, text, What.NOTICE, now)
    return True


def _chat_of_owner(tx: Transaction, main_key: str, platform: str) -> SessionSource | None:
    """Where the owner wrote last, or the home channel of the platform if that is a direct chat."""
    lane = tx.lanes.find(main_key)
    if lane is not None and lane.origin is not None:
        return lane.origin
    home = find_home(tx, platform, {})
    return home if home is not None and home.chat_type == "dm" else None
