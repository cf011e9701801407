"""A gateway, put together from its rules, its staff and its platforms."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.agent.rounds import Rounds
from segue.core.errors import StoreError
from segue.core.leases import Run, platform_lease
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.streaming import Streaming
from segue.gateway.answering import Circle, Office, Staff
from segue.gateway.clerk import Clerk, Means
from segue.gateway.connecting import Connection
from segue.gateway.desk import Desk
from segue.gateway.gateway import Gateway
from segue.gateway.lanes import Errand, Lanes
from segue.gateway.outages import OutageLog
from segue.gateway.streaming import Streams
from segue.gateway.watching import Watcher, Watching
from segue.hookspecs import Hooks, StoreFailed
from segue.ports.platform import Platform, Traits
from segue.ports.store import Store, Transaction
from segue.sessions.admitting import Routing, may_still_speak
from segue.sessions.answering import House
from segue.sessions.leasing import IsGone, find_holder

USUAL_WATCHING = Watching()
USUAL_STREAMING = Streaming()


class Grounds(NamedTuple):
    """What a gateway stands on."""

    store: Store
    run: Run
    is_gone: IsGone
    is_alone: bool = False
    """Whether there may be no other gateway here."""
    errand: Errand | None = None
    """What it is begun for, when that is not everything."""


def traits_among(platforms: Sequence[Platform]) -> Callable[[str, str], Traits | None]:
    """What can be relied upon on each platform."""
    known = {(platform.name, platform.account): platform.traits for platform in platforms}
    return lambda name, account: known.get((name, account))


def assemble(
    grounds: Grounds,
    house: House,
    staff: Staff,
    means: Means,
    routing: Routing,
    platforms: Sequence[Platform],
    drain_seconds: float = 30.0,
    watching: Watching = USUAL_WATCHING,
    hooks: Hooks | None = None,
    streaming: Callable[[str], Streaming] = lambda _: USUAL_STREAMING,
) -> Gateway:
    """Every part with the ones it works with.

    What arrives and what is sent have doors of their own, so that the answers that are written keep neither waiting.
    """
    rounds = Rounds()
    outages = OutageLog()
    door, front, back = (
        Door(grounds.store, OWNER_AT_CONSOLE, rounds, lambda error: told(error), outages.notice) for _ in range(3)
    )
    presence = Presence(door, grounds.run, grounds.is_gone, is_alone=grounds.is_alone)
    desk = Desk(front, routing, lambda accepted: gateway.accepted(accepted), lambda fact: gateway.told(fact))
    connections = [Connection(back, presence, one, desk, lambda fact: gateway.told(fact)) for one in platforms]
    deliveries = {(one.platform.name, one.platform.account): one.delivery for one in connections}
    streams = Streams(door, house.posting, lambda name, account: deliveries.get((name, account)), streaming)
    clerk = Clerk(door, house, routing.keys, means, lambda fact: gateway.told(fact))
    circle = Circle(
        lambda tx, entry: may_still_speak(tx, entry, routing), partial(_is_connected, presence, connections)
    )
    office = Office(
        door, presence, house, staff, clerk, streams, lambda: gateway.sent(), lambda fact: gateway.told(fact), circle
    )
    lanes = Lanes(door, presence, office, grounds.errand)
    office.wake = lanes.wake
    watcher = Watcher(door, presence, house.rules, staff.agent_for, watching, lambda fact: gateway.told(fact))
    gateway = Gateway(door, presence, desk, office, clerk, lanes, connections, watcher, hooks or Hooks(), drain_seconds)
    gateway.other_doors = (front, back)
    gateway.is_on_errand = grounds.errand is not None

    def told(error: StoreError) -> None:
        gateway.told(StoreFailed(type(error).__name__))

    return gateway


def _is_connected(
    presence: Presence, connections: Sequence[Connection], tx: Transaction, platform: str, account: str
) -> bool:
    """Whether a platform is connected, here or in another gateway."""
    here = [one for one in connections if (one.platform.name, one.platform.account) == (platform, account)]
    if any(one.link.is_up for one in here):
        return True
    run = find_holder(tx, platform_lease(platform, account), presence.is_gone)
    return run is not None and run.id != presence.run.id
