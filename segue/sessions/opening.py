"""A message arrives in a lane: which session does it belong to?"""

from datetime import datetime, timedelta
from typing import NamedTuple

from segue.core.errors import StoreBusy
from segue.core.ids import LaneKey, SessionId
from segue.core.keys import Chat, KeyRules, Place, Task, build_key, parse_key, place_of
from segue.core.lifecycle import Decision, Lane, Phase, Reset, Start, decide
from segue.core.moments import instant
from segue.core.origins import known_now
from segue.core.policy import NEVER, ResetPolicies, ResetPolicy, ResetReason
from segue.core.principals import onlookers_at, principal_of, scope_in
from segue.core.scope import Scope
from segue.core.sessions import Session, kind_of
from segue.core.sources import SessionSource
from segue.core.text import storable
from segue.ports.store import ResetRow, Transaction
from segue.sessions.starting import insert_session


class Admitted(NamedTuple):
    """Where a message was put down, and for whom: there it is answered, whatever the settings have become since."""

    key: str
    scope: Scope


class Arrival(NamedTuple):
    """Everything about a message that decides where it goes; `admitted_at` is the only clock there is."""

    source: SessionSource
    admitted_at: datetime
    fresh_id: str
    agent: str = "main"
    busy: bool = False
    force_new: bool = False
    is_person: bool = True
    """Whether somebody said it; what runs by itself moves no clock."""
    route: SessionSource | None = None
    """Where the answer goes, when that is not where it comes from."""
    admitted: Admitted | None = None


class Rules(NamedTuple):
    """The settings that decide it."""

    keys: KeyRules
    policies: ResetPolicies
    freshness: timedelta


class Opened(NamedTuple):
    lane: Lane
    session: Session
    decision: Decision


def open_session(tx: Transaction, arrival: Arrival, rules: Rules) -> Opened:
    """Find or make the session of a message, in one transaction, and move the lane's clock."""
    source, now = arrival.source, arrival.admitted_at
    place = place_of(source, rules.keys, arrival.agent)
    onlookers = onlookers_at(arrival.route, rules.keys, arrival.agent)
    scope = scope_in(place, principal_of(source, rules.keys), onlookers)
    admitted = arrival.admitted
    is_elsewhere = admitted is not None and build_key(place) != admitted.key
    if admitted is not None and (is_elsewhere or isinstance(place, Task)):
        place, scope = parse_key(admitted.key, rules.keys.main_key), admitted.scope
    lane = standing_lane(tx, build_key(place), scope, now)
    policy = policy_of(place, source, rules.policies)
    decision = decide(lane, policy, now, busy=arrival.busy, freshness=rules.freshness)
    if arrival.force_new and lane is not None and not isinstance(decision, Start):
        decision = Reset(ResetReason.ASKED)
    lane = lane or new_lane(place, source, scope, now)
    spoken_at = now if arrival.is_person else lane.last_person_at
    known = lane.origin if is_elsewhere and lane.origin else known_now(lane.origin, source)
    lane = lane._replace(origin=known, last_person_at=spoken_at, updated_at=now, finalised_at=None)
    if isinstance(decision, Start):
        lane = begin_session(tx, lane, arrival.fresh_id, now, agent=arrival.agent)
    elif isinstance(decision, Reset):
        lane = reset_lane(tx, lane, arrival.fresh_id, decision.reason, now, who=lane.principal)
    lane = save_lane(tx, lane)
    session = tx.sessions.find(lane.session_id or "")
    assert session is not None
    return Opened(lane, session, decision)


def policy_of(place: Place, source: SessionSource, policies: ResetPolicies) -> ResetPolicy:
    """The policy of a lane: what runs by itself never resets; a person's lane is direct, whatever its last message."""
    match place:
        case Chat(platform=platform, chat_type=chat_type, thread=thread):
            return policies.choose(platform, chat_type, thread)
        case Task():
            return NEVER
    return policies.choose(source.platform, "dm")


def begin_session(
    tx: Transaction, lane: Lane, session_id: str, now: datetime, *, reset_from: str | None = None, agent: str = "main"
) -> Lane:
    """A new session in a lane that has none open."""
    source = lane.origin
    insert_session(
        tx,
        Session(
            id=session_id,
            source=source.platform if source else "unknown",
            user_id=storable(source.participant) or None if source else None,
            kind=kind_of(source.platform) if source else kind_of(""),
            agent=agent,
            started_at=now.timestamp(),
            last_active_at=now.timestamp(),
            start_reason="reset" if reset_from else "new",
            reset_from=reset_from,
            lane_key=lane.key,
            principal=lane.principal,
            audience=lane.audience,
        ),
    )
    return lane._replace(session_id=SessionId(session_id), phase=Phase.ACTIVE, phase_reason=None, phase_since=None)


def reset_lane(tx: Transaction, lane: Lane, session_id: str, reason: ResetReason, now: datetime, *, who: str) -> Lane:
    """End the lane's session, say why, and begin a new one that knows where it came from."""
    old = tx.sessions.find(lane.session_id or "")
    if old is not None and old.is_open:
        tx.sessions.change(old.id, ended_at=now.timestamp(), end_reason=reason)
    lane = begin_session(
        tx, lane, session_id, now, reset_from=old.id if old else None, agent=old.agent if old else "main"
    )
    had_activity = old is not None and old.message_count > 0
    tx.lanes.add_reset(ResetRow(lane.key, now, reason, who, old.id if old else None, session_id, had_activity))
    return lane


def save_lane(tx: Transaction, lane: Lane) -> Lane:
    """Write a lane, new or changed; whoever changed it in between goes first."""
    if lane.version == 0:
        tx.lanes.insert(lane._replace(version=1))
    elif not tx.lanes.change(lane):
        raise StoreBusy(f"Lane {lane.key} is being changed by somebody else; try again.")
    return lane._replace(version=lane.version + 1)


def new_lane(place: Place, source: SessionSource, scope: Scope, now: datetime) -> Lane:
    """A lane that nobody has spoken in."""
    return Lane(
        key=build_key(place),
        session_id=None,
        last_person_at=now,
        principal=scope.principal,
        audience=scope.room or "",
        origin=source,
        created_at=now,
        updated_at=now,
    )


def standing_lane(tx: Transaction, key: LaneKey, scope: Scope, now: datetime) -> Lane | None:
    """The lane as it is for whom it belongs to now.

    When the settings say that its place is somebody else's, the old session ends and is not seen by the new one.
    """
    lane = tx.lanes.find(key)
    if lane is None:
        return _rebuilt(tx, key, scope)
    if (lane.principal, lane.audience) == (scope.principal, scope.room or ""):
        return lane
    if lane.session_id:
        tx.sessions.change(lane.session_id, ended_at=now.timestamp(), end_reason="owner_changed")
    own = tx.sessions.open_in_lane(key, scope.principal, scope.room or "")
    session_id = SessionId(own.id) if own else None
    return lane._replace(principal=scope.principal, audience=scope.room or "", session_id=session_id)


def _rebuilt(tx: Transaction, key: LaneKey, scope: Scope) -> Lane | None:
    """A lane that is known only by its open session, as after an import into another home."""
    session = tx.sessions.open_in_lane(key, scope.principal, scope.room or "")
    if session is None:
        return None
    last = instant(session.last_active_at)
    return Lane(
        key=key,
        session_id=SessionId(session.id),
        last_person_at=last,
        principal=session.principal,
        audience=session.audience,
        created_at=instant(session.started_at),
        updated_at=last,
    )
