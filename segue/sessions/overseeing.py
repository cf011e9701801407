"""How lanes stand, for whoever looks after them: which conversation each is in, what waits, and when it begins anew."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.errors import AmbiguousLane, InvalidKey, NotFound
from segue.core.inbox import Entry, InboxState
from segue.core.keys import parse_key
from segue.core.leases import Run, lane_lease
from segue.core.lifecycle import Lane
from segue.core.outbox import UNSENT, Letter, OutboxState
from segue.core.policy import ResetPolicies, ResetPolicy
from segue.core.preferences import Preferences, decode
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import ResetRow, Standing, Transaction
from segue.sessions.backgrounding import has_background_work
from segue.sessions.leasing import IsGone, find_holder
from segue.sessions.opening import policy_of
from segue.sessions.requeueing import with_full_reason

_RECENT = 10
_NOWHERE = SessionSource(platform="unknown")


class Sight(NamedTuple):
    """What has to be known to tell how a lane stands."""

    main_key: str
    policies: ResetPolicies
    is_gone: IsGone


class LaneView(NamedTuple):
    """A lane and everything that bears on its next message."""

    lane: Lane
    session: Session | None
    standing: Standing
    worker: Run | None
    """Who is at work there."""
    policy: ResetPolicy | None
    """Nothing for a key that no message could lead to."""

    @property
    def next_reset(self) -> datetime | None:
        """When it begins anew if nobody speaks before."""
        return self.policy.expires_at(self.lane.last_person_at) if self.policy and self.session else None


class LaneDetail(NamedTuple):
    """A lane in full; the latest of each kind, in the order in which it happened."""

    view: LaneView
    overrides: Preferences
    has_background_work: bool
    resets: Sequence[ResetRow]
    entries: Sequence[Entry]
    letters: Sequence[Letter]
    """What has not been delivered."""


def list_lanes(tx: Transaction, sight: Sight, active_since: datetime | None, limit: int) -> list[LaneView]:
    """The most recently used first."""
    return [look_at(tx, lane, sight) for lane in tx.lanes.listed(active_since, limit)]


def find_lane(tx: Transaction, wanted: str) -> Lane:
    """The lane of a key, or the only one that has `wanted` in its key."""
    if lane := tx.lanes.find(wanted):
        return lane
    found = [lane for lane in tx.lanes.listed() if wanted.casefold() in lane.key.casefold()]
    if not found:
        raise NotFound(f"No lane has {wanted!r} in its key; `segue lanes list` shows what is there.")
    if len(found) > 1:
        raise AmbiguousLane(wanted, [lane.key for lane in found])
    return found[0]


def look_at(tx: Transaction, lane: Lane, sight: Sight) -> LaneView:
    return LaneView(
        lane=lane,
        session=tx.sessions.find(lane.session_id) if lane.session_id else None,
        standing=tx.inbox.standing(lane.key),
        worker=find_holder(tx, lane_lease(lane.key), sight.is_gone),
        policy=_policy(lane, sight),
    )


def look_into(tx: Transaction, wanted: str, sight: Sight) -> LaneDetail:
    """Everything about one lane."""
    view = look_at(tx, find_lane(tx, wanted), sight)
    key = view.lane.key
    return LaneDetail(
        view=view,
        overrides=decode(view.session.model_config if view.session else None),
        has_background_work=has_background_work(tx, view.lane),
        resets=tx.lanes.resets(key)[-_RECENT:],
        entries=_explained(tx, tx.inbox.latest(list(InboxState), _RECENT, key)),
        letters=tx.outbox.latest((*UNSENT, OutboxState.DEAD), _RECENT, key),
    )


def _explained(tx: Transaction, entries: list[Entry]) -> list[Entry]:
    return [with_full_reason(tx, entry) for entry in entries] if tx.scope.sees_all else entries


def _policy(lane: Lane, sight: Sight) -> ResetPolicy | None:
    try:
        place = parse_key(lane.key, sight.main_key)
    except InvalidKey:
        return None
    return policy_of(place, lane.origin or _NOWHERE, sight.policies)
