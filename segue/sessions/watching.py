"""Whether the gateway does its work: who is there, what is connected, what waits and what went wrong."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from segue.core.inbox import OPEN, UNANSWERED
from segue.core.leases import GATEWAY, LEASE_SECONDS, HeldLease, Run, lane_lease, platform_lease
from segue.core.lifecycle import Lane, Phase
from segue.core.links import LinkRow, LinkState
from segue.core.outbox import UNSENT, OutboxState
from segue.ports.store import Queue, Transaction
from segue.sessions.leasing import IsGone, living_runs

_ADDRESSES = "gateway:addresses"
_LEFT_OUT = "gateway:left_out"
_PLATFORMS = platform_lease("", "").removesuffix(":")


class Watch(NamedTuple):
    """How things stand at one moment."""

    now: float
    """By the clock of the database."""
    gateways: Sequence[Run]
    platforms: Sequence[LinkRow]
    """Those that a gateway looks after, and how they stand."""
    left_out: Mapping[str, str]
    """Why platforms that are named are not among them."""
    inbox: dict[str, int]
    """How many wait, run, are dead or were refused."""
    outbox: dict[str, int]
    """How many have not been delivered, by state, and how many are dead."""
    unattended: Sequence[Queue]
    """Lanes with messages that wait or were cut off and no living worker; the oldest first."""

    @property
    def is_up(self) -> bool:
        return bool(self.gateways)

    @property
    def undelivered(self) -> int:
        return sum(self.outbox[state] for state in UNSENT)

    @property
    def left_waiting(self) -> float:
        """Return the seconds since the oldest unattended message was accepted; 0 if there is none."""
        return max((self.now - queue.oldest_at for queue in self.unattended), default=0.0)


def watch(tx: Transaction, is_gone: IsGone) -> Watch:
    now = tx.leases.now()
    alive = {run.id: run for run in tx.leases.open_runs() if not is_gone(run)}
    worked_in = {lease.name for lease in _held(tx, lane_lease(""), alive)}
    inbox = {**tx.inbox.count(OPEN), **tx.inbox.count(UNANSWERED)}
    outbox = {**tx.outbox.count(UNSENT), **tx.outbox.count((OutboxState.DEAD,))}
    return Watch(
        now=now,
        gateways=living_gateways(tx, is_gone),
        platforms=_platforms(tx, alive),
        left_out=left_out(tx, alive) if tx.scope.sees_all else {},
        inbox={state: inbox.get(state, 0) for state in (*OPEN, *UNANSWERED)},
        outbox={state: outbox.get(state, 0) for state in (*UNSENT, OutboxState.DEAD)},
        unattended=[queue for queue in tx.inbox.queues(OPEN) if lane_lease(queue.lane_key) not in worked_in],
    )


def living_gateways(tx: Transaction, is_gone: IsGone) -> list[Run]:
    """The gateways that are there and have given a sign of life; of one on another machine there is no other."""
    since = tx.leases.now() - LEASE_SECONDS
    return [run for run in living_runs(tx, GATEWAY, is_gone) if run.beat_at > since]


def note_address(tx: Transaction, run_id: str, address: str) -> None:
    """Note where programs call a gateway; of those that are over nothing is kept."""
    known, open_runs = addresses(tx), {run.id for run in tx.leases.open_runs()} | {run_id}
    kept = {one: place for one, place in known.items() if one in open_runs} | {run_id: address}
    tx.meta.set(_ADDRESSES, json.dumps(kept))


def addresses(tx: Transaction) -> dict[str, str]:
    """Where programs call each gateway that has opened its door, by its run."""
    kept: dict[str, str] = json.loads(tx.meta.get(_ADDRESSES) or "{}")
    return kept


def note_left_out(tx: Transaction, run_id: str, sentences: Mapping[str, str]) -> None:
    """Note why a gateway that begins does not connect to platforms that are named."""
    open_runs = {run.id for run in tx.leases.open_runs()} | {run_id}
    kept = {one: told for one, told in _all_left_out(tx).items() if one in open_runs} | {run_id: dict(sentences)}
    tx.meta.set(_LEFT_OUT, json.dumps(kept))


def left_out(tx: Transaction, run_ids: Collection[str]) -> dict[str, str]:
    """A sentence for each platform that one of these gateways could not connect to."""
    known = _all_left_out(tx)
    return {name: sentence for run_id in run_ids for name, sentence in known.get(run_id, {}).items()}


def _all_left_out(tx: Transaction) -> dict[str, dict[str, str]]:
    kept: dict[str, dict[str, str]] = json.loads(tx.meta.get(_LEFT_OUT) or "{}")
    return kept


def long_interrupted(tx: Transaction, now: datetime, longest: timedelta) -> list[Lane]:
    """Lanes whose last answer was cut off so long ago that it is not carried on by itself any more."""
    cut_off = [lane for lane in tx.lanes.listed() if lane.phase is Phase.INTERRUPTED]
    return [lane for lane in cut_off if lane.phase_since is not None and now - lane.phase_since > longest]


def _held(tx: Transaction, beginning: str, alive: dict[str, Run]) -> list[HeldLease]:
    return [lease for lease in tx.leases.unexpired(beginning) if lease.owner in alive]


def _platforms(tx: Transaction, alive: dict[str, Run]) -> list[LinkRow]:
    """What gateways that are alive say of their platforms; of one that has said nothing yet, that it is begun.

    What others say of their failures is for the owner alone.
    """
    told = {(link.platform, link.account): link for link in tx.leases.links() if link.run_id in alive}
    for lease in _held(tx, _PLATFORMS, alive):
        _, platform, account = lease.name.split(":", 2)
        if told.get((platform, account)) is None or told[platform, account].run_id != lease.owner:
            told[platform, account] = LinkRow(platform, account, lease.owner, LinkState.CONNECTING, lease.taken_at)
    found = [link for _, link in sorted(told.items())]
    return found if tx.scope.sees_all else [link._replace(trouble=None) for link in found]
