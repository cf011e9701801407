"""Messages, turns and lanes as a gateway leaves them, made by what the gateway itself uses."""

import itertools
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from homes import database_of
from lane_house import dm

from segue import app
from segue.core.inbound import Inbound
from segue.core.inbox import Entry, entry_of
from segue.core.keys import KeyRules, build_key, place_of
from segue.core.leases import Lease, Run, lane_lease
from segue.core.lifecycle import Interruption
from segue.core.moments import instant
from segue.core.policy import ResetPolicies
from segue.core.principals import principal_of, scope_in
from segue.core.queueing import QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.core.turns import TurnState
from segue.ports.store import Store, Transaction
from segue.sessions import leasing
from segue.sessions.accepting import accept
from segue.sessions.answering import Batch, Begun, House, begin_answer, end_answer
from segue.sessions.delivering import Posting
from segue.sessions.opening import Rules
from segue.sessions.steering import interrupt_lane
from segue.sessions.turning import Outcome, end_turn
from segue.storage.store import SqlStore
from segue.upkeep.living import this_run

HOUSE = House(
    Rules(KeyRules(), ResetPolicies(), timedelta(hours=1)),
    Posting(lambda _platform, _account: None),
    lambda _tx, opened, _earlier: f"You are on {opened.lane.key}.",
)
ALICE, BOB = "agent:main:scripted:dm:alice", "agent:main:scripted:dm:bob"
LEASE_SECONDS = 3600.0
"""For which a lease is held that nobody renews: none comes to its end during a test."""

_numbers = itertools.count(1)


def opened(home: Path) -> SqlStore:
    return app.open_store(database_of(home))


def say(
    store: Store,
    text: str,
    person: str = "alice",
    *,
    at: float | None = None,
    rules: QueueRules | None = None,
    **more: Any,
) -> Entry:
    """A message arrives and is put down."""
    source: SessionSource = replace(dm(person), **more)
    place, who = place_of(source, KeyRules()), principal_of(source, KeyRules())
    scope = scope_in(place, who)
    inbound = Inbound(source, f"m{next(_numbers)}", text)
    moment = time.time() if at is None else at
    entry = entry_of(inbound, build_key(place), scope.principal, scope.room or "", who, moment)
    return store.write(OWNER, accept, entry, rules or QueueRules()).entry


def begin(store: Store, *entries: Entry) -> Begun:
    """A turn begins, and runs until it is finished."""
    begun = try_to_begin(store, *entries)
    assert begun is not None
    return begun


def try_to_begin(store: Store, *entries: Entry) -> Begun | None:
    run = dead_run()
    name, number = f"session-{next(_numbers)}", next(_numbers)
    batch = Batch(entries, f"turn-{number}", run.id, name, entries[0].admitted_at)

    def claim(tx: Transaction, _session_id: str, principal: str) -> Lease:
        return tx.leases.take(lane_lease(entries[0].lane_key), run.id, principal, LEASE_SECONDS)

    return store.write(OWNER, begin_answer, batch, HOUSE, claim)


def finish(store: Store, begun: Begun, state: TurnState = TurnState.DONE, text: str = "Yes.", reason: str = "") -> None:
    """A turn ends, and its lane is let go."""
    turn = begun.situation.turn
    outcome = Outcome(turn, state, text, turn.begun_at + 1, reason or None)

    def work(tx: Transaction) -> None:
        end_turn(tx, begun.lease, outcome)
        end_answer(tx, outcome, HOUSE.posting)
        leasing.release(tx, begun.lease)

    store.write(OWNER, work)


def answered(store: Store, text: str, person: str = "alice", *, at: float | None = None, **more: Any) -> Entry:
    entry = say(store, text, person, at=at, **more)
    finish(store, begin(store, entry))
    return entry


def died(store: Store, text: str, person: str = "alice", reason: str = "The model is gone.", **more: Any) -> Entry:
    """A message whose answer failed."""
    entry = say(store, text, person, **more)
    finish(store, begin(store, entry), TurnState.FAILED, "", reason)
    return entry


def cut_off(store: Store, text: str, person: str = "alice", at: float | None = None) -> Entry:
    """A message whose gateway died while it answered."""
    entry = say(store, text, person, at=at)
    begun = begin(store, entry)

    def work(tx: Transaction) -> None:
        leasing.release(tx, begun.lease)
        interrupt_lane(tx, entry.lane_key, Interruption.RESTART, instant(entry.admitted_at))

    store.write(OWNER, work)
    return entry


def live_run(store: Store, program: str = "segue gateway") -> Run:
    """This process, as a gateway that is there."""
    run = this_run(program)
    store.write(OWNER, leasing.begin_run, run)
    return run


def hold(store: Store, name: str, run: Run) -> Lease:
    return store.write(OWNER, lambda tx: tx.leases.take(name, run.id, "owner", LEASE_SECONDS))


def dead_run() -> Run:
    return Run(f"dead-{next(_numbers)}", "segue gateway", "here", "boot", os.getpid(), "1", 1.0, 1.0)


def found(store: Store, entry: Entry) -> Entry:
    row = store.read(OWNER, lambda tx: tx.inbox.find(entry.id))
    assert row is not None
    return row
