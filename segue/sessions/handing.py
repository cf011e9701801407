"""A conversation goes on somewhere else: its lane changes, and nothing of what was said."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from segue.core.errors import NotFound
from segue.core.keys import KeyRules, build_key, place_of
from segue.core.moments import instant
from segue.core.outbox import What
from segue.core.principals import principal_of, scope_in
from segue.core.routes import Route
from segue.core.sessions import Session
from segue.core.situation import Home
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post
from segue.sessions.opening import new_lane, save_lane
from segue.sessions.steering import switch_session

_HOME = "home:"


def set_home(tx: Transaction, source: SessionSource) -> None:
    """Let a chat be where what has no place of its own goes, on its platform."""
    home = replace(source, user_id=None, user_name=None, user_id_alt=None, message_id=None)
    if source.chat_type == "dm":
        home = replace(home, user_id=source.user_id, user_name=source.user_name, user_id_alt=source.user_id_alt)
    tx.meta.set(f"{_HOME}{source.platform}", json.dumps(home.to_dict(), ensure_ascii=False))


def find_home(tx: Transaction, platform: str, named: Mapping[str, SessionSource]) -> SessionSource | None:
    """Where a platform is at home: as somebody said there, otherwise as the settings name it."""
    said = tx.meta.get(f"{_HOME}{platform}")
    return SessionSource.from_dict(json.loads(said)) if said else named.get(platform)


def find_place(tx: Transaction, route: Route, named: Mapping[str, SessionSource]) -> SessionSource | None:
    """The chat that a route means; nothing when it is a home channel that nobody has chosen yet."""
    return route.source if route.chat_id else find_home(tx, route.platform, named)


def homes_among(tx: Transaction, platforms: Sequence[str], named: Mapping[str, SessionSource]) -> tuple[Home, ...]:
    """Where platforms are at home, as an agent is told of it."""
    found = [home for platform in platforms if (home := find_home(tx, platform, named))]
    return tuple(Home(home.platform, home.chat_id, home.chat_name or home.user_name) for home in found)


def hand_over(tx: Transaction, session: Session, home: SessionSource, keys: KeyRules, now: float) -> str:
    """Let a conversation go on in the lane of a home channel, and tell people there; the key of that lane."""
    place = place_of(home, keys, session.agent)
    scope = scope_in(place, principal_of(home, keys))
    key = build_key(place)
    if tx.lanes.find(key) is None:
        save_lane(tx, new_lane(place, home, scope, instant(now)))
    switch_session(tx, key, session.id, instant(now))
    name = one_line(session.title or session.first_line)
    envelope = Envelope(key, scope.principal, scope.room or "", home, f"{session.id}:handoff:{now}", None, session.id)
    post(tx, Posting(lambda _platform, _account: None), envelope, f"“{name}” goes on here.", What.NOTICE, now)
    return key


def get_home(tx: Transaction, platform: str, named: Mapping[str, SessionSource]) -> SessionSource:
    home = find_home(tx, platform, named)
    if home is None:
        raise NotFound(f"{one_line(platform)!r:.40} has no home channel: type /sethome in a chat there first.")
    return home


def take_out(tx: Transaction, session: Session, now: float) -> None:
    """Let a conversation leave its lane, so that it can be carried on at the terminal."""
    tx.sessions.change(session.id, lane_key=None, ended_at=now, end_reason="handoff")
