"""Who sent a message, and what they may see where they sent it."""

from segue.core.ids import encode_segment
from segue.core.keys import Chat, KeyRules, Main, Place, Task, build_key
from segue.core.scope import OWNER, Audience, Principal, Scope
from segue.core.sources import SessionSource

_THE_OWNERS = frozenset({"cron", "hook"})
"""What runs by itself because the owner said so. A program at the API speaks for whoever has its key."""


def principal_of(source: SessionSource, rules: KeyRules) -> Principal:
    """Who sent a message: an owner, a linked person, or an id on a platform."""
    peer = source.peer
    if rules.is_owner(source.platform, peer):
        return OWNER
    if name := rules.linked_name(source.platform, peer):
        return Principal(f"person:{encode_segment(name)}")
    return Principal(f"{source.platform}:{encode_segment(peer)}")


def scope_in(place: Place, person: Principal) -> Scope:
    """The scope of a person asking in a lane. In a shared lane the reader is the room itself."""
    if isinstance(place, Main) or (isinstance(place, Task) and place.kind in _THE_OWNERS):
        return Scope(OWNER)
    if not isinstance(place, Chat) or place.room is None:
        return Scope(person)
    audience = Audience(build_key(place.room))
    return Scope(Principal(audience) if place.is_shared else person, audience)
