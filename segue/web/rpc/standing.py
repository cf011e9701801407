"""`status`, `health` and `insights`: how everything stands."""

import time
from typing import Any

from pydantic import Field

from segue import __version__, config
from segue.core.credentials import Level
from segue.core.insights import as_data, period_of
from segue.facade.standing import standing
from segue.sessions.insights import insights as look
from segue.web.rpc.method import Caller, Closed, Method, Names, Nothing
from segue.web.rpc.rows import SessionRow, public_gateway, session_row


class Status(Closed):
    sessions: int
    messages: int
    lanes: int
    trash: int
    sources: dict[str, dict[str, int]]
    gateway: dict[str, Any]
    inbox: dict[str, int | float]
    outbox: dict[str, int]
    recent: list[SessionRow]
    database_bytes: int
    notices: list[str]
    version: str
    model: str | None = Field(description="What answers where nothing else is chosen, for a token of the owner.")


class Health(Closed):
    is_well: bool
    version: str
    is_taking_in: bool = Field(description="Whether messages are taken in at the moment.")


class InsightsParams(Closed):
    days: int = Field(30, ge=1, le=100_000, description="How many of the last days.")
    sources: Names = Field([], description="Only these platforms.")


class Insights(Closed):
    days: int
    insights: dict[str, Any]


async def status(caller: Caller, _params: Nothing) -> Status:
    """How much there is, whether the gateway does its work, and the latest conversations."""
    premises = caller.premises
    facts = await premises.read(caller.scope, standing, premises.sight.is_gone)
    if not caller.scope.sees_all:
        facts["gateway"] = public_gateway(facts["gateway"])
    recent = [session_row(row) for row in facts.pop("recent")]
    size = await premises.beside(premises.store.size) if caller.scope.sees_all else 0
    notices = list(premises.store.notices) if caller.scope.sees_all else []
    model = premises.model if caller.scope.sees_all else None
    return Status(**facts, recent=recent, database_bytes=size, notices=notices, version=__version__, model=model)


async def health(caller: Caller, _params: Nothing) -> Health:
    """Whether the gateway answers and takes messages in."""
    is_open = caller.premises.gateway.desk.is_open
    return Health(is_well=True, version=__version__, is_taking_in=is_open)


async def insights(caller: Caller, params: InsightsParams) -> Insights:
    """Tokens, costs, models, tools and activity of the last days."""
    period = period_of(params.days, time.time(), config.zone_here())
    found = await caller.premises.read(caller.scope, look, period.since, tuple(params.sources))
    return Insights(days=params.days, insights=as_data(found, period.last))


METHODS: tuple[Method[Any], ...] = (
    Method("status", Level.READ, Nothing, Status, status),
    Method("health", Level.READ, Nothing, Health, health),
    Method("insights", Level.READ, InsightsParams, Insights, insights),
)
