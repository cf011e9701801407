"""Who sent a message, and what they may see where they sent it; and what may be seen of what runs by itself."""

from segue.core.ids import encode_segment
from segue.core.keys import BATCH, DEFAULT_AGENT, HOOK, JOB, Chat, KeyRules, Main, Place, Task, build_key, place_of
from segue.core.scope import OWNER, PRIVATE, Audience, Principal, Scope
from segue.core.sources import SessionSource


def principal_of(source: SessionSource, rules: KeyRules) -> Principal:
    """Who sent a message: an owner, a linked person, or an id on a platform."""
    peer = source.peer
    if rules.is_owner(source.platform, peer):
        return OWNER
    if name := rules.linked_name(source.platform, peer):
        return Principal(f"person:{encode_segment(name)}")
    return Principal(f"{source.platform}:{encode_segment(peer)}")


def scope_in(place: Place, person: Principal, onlookers: Audience = PRIVATE) -> Scope:
    """The scope of a person asking in a lane. In a shared lane the reader is the room itself.

    A job and a batch ask what their owner wrote, before those who are sent the answer. What a hook says was written by
    others, so it is a room of its own, whoever is sent the answer. A program at the API speaks for whoever has its key.
    """
    match place:
        case Main():
            return Scope(OWNER)
        case Task(kind=kind) if kind in (JOB, BATCH):
            return Scope(OWNER, onlookers)
        case Task(kind=kind) if kind == HOOK:
            return Scope(OWNER, Audience(build_key(place)))
    if not isinstance(place, Chat) or place.room is None:
        return Scope(person)
    audience = Audience(build_key(place.room))
    return Scope(Principal(audience) if place.is_shared else person, audience)


def onlookers_at(route: SessionSource | None, rules: KeyRules, agent: str = DEFAULT_AGENT) -> Audience:
    """Who sees what is sent somewhere; nobody when it is sent nowhere, or to an owner alone."""
    if route is None or (route.chat_type == "dm" and principal_of(route, rules) == OWNER):
        return PRIVATE
    place = place_of(route, rules, agent)
    return Audience(build_key((place.room or place) if isinstance(place, Chat) else place))
