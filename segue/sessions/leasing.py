"""Leases: one run at a time works on a session, and whoever has lost that right can store nothing more there."""

from collections.abc import Callable

from segue.core.errors import InUse, LeaseLost
from segue.core.leases import LEASE_SECONDS, Lease, Run
from segue.ports.store import Transaction

IsGone = Callable[[Run], bool]
"""Whether a process on this machine is certainly there no more."""


def begin_run(tx: Transaction, run: Run) -> None:
    tx.leases.add_run(run)


def end_run(tx: Transaction, run_id: str, now: float) -> None:
    tx.leases.change_run(run_id, ended_at=now)


def take_lease(tx: Transaction, name: str, owner: str, principal: str, is_gone: IsGone) -> Lease:
    """Take a lease that is free, has run out, or belongs to a run that is over; otherwise say who has it."""
    held = tx.leases.find(name)
    if held is not None and held.owner != owner and held.expires_at > tx.leases.now():
        run = tx.leases.find_run(held.owner)
        if run is not None and run.ended_at is None and not is_gone(run):
            raise InUse(_told(run))
    return tx.leases.take(name, owner, principal, LEASE_SECONDS)


def hold(tx: Transaction, lease: Lease) -> None:
    """Make sure, in the transaction that relies on it, that a lease is still ours; and keep it a while longer."""
    if not tx.leases.hold(lease, LEASE_SECONDS):
        raise LeaseLost("Another process has taken this session over; nothing of this answer was added to it.")


def keep(tx: Transaction, lease: Lease) -> bool:
    """Keep a lease a while longer, if it is still ours."""
    return tx.leases.hold(lease, LEASE_SECONDS)


def release(tx: Transaction, lease: Lease) -> None:
    tx.leases.release(lease)


def _told(run: Run) -> str:
    return (
        f"This session is open elsewhere: in {run.program}, process {run.pid} on {run.host}. Go on there, close it, or"
        " begin a branch of it."
    )
