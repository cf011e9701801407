"""`lanes.*`: where people talk to the agent, how each of these places stands, and how to begin anew there."""

from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from segue import app
from segue.core.credentials import Level
from segue.core.moments import instant
from segue.facade.lane_rows import detail_row, lane_row
from segue.sessions import minding
from segue.sessions.overseeing import find_lane, list_lanes, look_into
from segue.web.rpc.method import Caller, Closed, Count, Key, Method
from segue.web.rpc.rows import LaneRow, LaneWhole, public_lane


class ListParams(Closed):
    active_since: float | None = Field(
        None, ge=0, le=253_402_300_799, description="Only those in use since, in Unix seconds."
    )
    limit: Count = 20


class Listing(Closed):
    lanes: list[LaneRow]


class OneParams(Closed):
    key: Key = Field(description="The key of a lane, or a part of it that no other lane has.")


class Renewed(Closed):
    key: str
    old_session_id: str | None
    session_id: str | None
    given_up: int = Field(description="How many messages had an answer that was cut off, and get none.")
    waiting: int


class Forgotten(Closed):
    key: str
    session_id: str | None


async def list_(caller: Caller, params: ListParams) -> Listing:
    """The lanes that were in use last."""
    since = None if params.active_since is None else instant(params.active_since)
    found = await caller.premises.read(caller.scope, list_lanes, caller.premises.sight, since, params.limit)
    return Listing(lanes=[LaneRow(**_shown(caller, lane_row(view))) for view in found])


async def get(caller: Caller, params: OneParams) -> LaneWhole:
    """Everything about one lane."""
    detail = await caller.premises.read(caller.scope, look_into, params.key, caller.premises.sight)
    return LaneWhole(**_shown(caller, detail_row(detail)))


async def reset(caller: Caller, params: OneParams) -> Renewed:
    """Begin a new conversation in a lane. The old one is kept, and what waits is answered in the new one."""
    premises = caller.premises
    lane = await premises.read(caller.scope, find_lane, params.key)
    hand = minding.Hand(premises.gateway.presence.run.id, premises.sight.is_gone)
    fresh, now = app.new_session_id(), datetime.now(UTC)
    done = await premises.write(caller.scope, minding.renew_lane, lane.key, fresh, now, hand)
    return Renewed(
        key=lane.key,
        old_session_id=done.old_session,
        session_id=done.lane.session_id,
        given_up=done.given_up,
        waiting=done.waiting,
    )


async def delete(caller: Caller, params: OneParams) -> Forgotten:
    """Forget a lane in which nothing waits. Its conversation ends and is kept."""
    premises = caller.premises
    lane = await premises.read(caller.scope, find_lane, params.key)
    hand = minding.Hand(premises.gateway.presence.run.id, premises.sight.is_gone)
    await premises.write(caller.scope, minding.forget_lane, lane.key, datetime.now(UTC), hand)
    return Forgotten(key=lane.key, session_id=lane.session_id)


def _shown(caller: Caller, row: dict[str, Any]) -> dict[str, Any]:
    return row if caller.scope.sees_all else public_lane(row)


METHODS: tuple[Method[Any], ...] = (
    Method("lanes.list", Level.READ, ListParams, Listing, list_),
    Method("lanes.get", Level.READ, OneParams, LaneWhole, get),
    Method("lanes.delete", Level.ADMIN, OneParams, Forgotten, delete),
    Method("lanes.reset", Level.ADMIN, OneParams, Renewed, reset),
)
