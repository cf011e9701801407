"""Leases: one run at a time works on a session, and whoever has lost that right can store nothing more there."""

from collections.abc import Callable

from segue.core.errors import InUse, LeaseLost, OpenElsewhere
from segue.core.leases import LEASE_SECONDS, HeldLease, Lease, Run, session_lease
from segue.core.sessions import Session
from segue.core.text import one_line
from segue.ports.store import Transaction

_NAME = 60
IsGone = Callable[[Run], bool]
"""Whether a process on this machine is certainly there no more."""


def begin_run(tx: Transaction, run: Run) -> None:
    tx.leases.add_run(run)


def begin_only_run(tx: Transaction, run: Run, is_gone: IsGone) -> None:
    """Begin a run of a gateway that is alone, in the transaction that makes sure of it."""
    refuse_second(tx, run, is_gone)
    begin_run(tx, run)


def refuse_second(tx: Transaction, run: Run, is_gone: IsGone) -> None:
    """Tell a gateway that comes second who was first.

    One that ran under another name of the machine, as in a container that was made anew, is known by its signs of life.
    """
    since = tx.leases.now() - LEASE_SECONDS
    others = living_runs(tx, run.program, is_gone)
    if here := [one for one in others if one.host == run.host or one.beat_at > since]:
        raise InUse(
            f"A gateway of this home runs already, as process {here[0].pid} on {one_line(here[0].host)};"
            " `segue gateway stop` ends it."
        )


def living_runs(tx: Transaction, program: str, is_gone: IsGone) -> list[Run]:
    return [run for run in tx.leases.open_runs() if run.program == program and not is_gone(run)]


def end_run(tx: Transaction, run_id: str, now: float) -> None:
    tx.leases.change_run(run_id, ended_at=now)


def take_lease(tx: Transaction, name: str, owner: str, principal: str, is_gone: IsGone) -> Lease:
    """Take a lease that is free, has run out, or belongs to a run that is over; otherwise say who has it."""
    held = _unexpired(tx, name)
    if held is not None and held.owner != owner:
        run = tx.leases.find_run(held.owner)
        if run is None and not tx.scope.sees_all:  # on a server nobody but the owner sees who else is at work
            raise InUse("This session is open elsewhere. Go on there, or close it.")
        if run is not None and _is_alive(run, is_gone):
            session = tx.sessions.find(name.removeprefix(session_lease("")))
            in_chat = f"{_called(session)} is open elsewhere. Go on there, or close it."
            raise OpenElsewhere(_told(run, session), in_chat=in_chat)
    return tx.leases.take(name, owner, principal, LEASE_SECONDS)


def find_holder(tx: Transaction, name: str, is_gone: IsGone) -> Run | None:
    """Who works on something now; nobody when the lease is free, has run out, or belongs to a run that is over."""
    held = _unexpired(tx, name)
    run = tx.leases.find_run(held.owner) if held is not None else None
    return run if run is not None and _is_alive(run, is_gone) else None


def is_held(tx: Transaction, name: str, is_gone: IsGone) -> bool:
    """True if somebody works on something now; whose run the scope cannot see, they are taken to be alive."""
    held = _unexpired(tx, name)
    run = tx.leases.find_run(held.owner) if held is not None else None
    return _is_alive(run, is_gone) if run is not None else held is not None and not tx.scope.sees_all


def hold(tx: Transaction, lease: Lease) -> None:
    """Make sure, in the transaction that relies on it, that a lease is still ours; and keep it a while longer."""
    if not tx.leases.hold(lease, LEASE_SECONDS):
        raise LeaseLost("Another process has taken this session over; nothing of this answer was added to it.")


def is_ours(tx: Transaction, lease: Lease) -> bool:
    """Whether a lease is still ours, for those who only read."""
    held = tx.leases.find(lease.name)
    return held is not None and (held.owner, held.epoch) == (lease.owner, lease.epoch)


def keep(tx: Transaction, lease: Lease) -> bool:
    """Keep a lease a while longer, if it is still ours."""
    return tx.leases.hold(lease, LEASE_SECONDS)


def release(tx: Transaction, lease: Lease) -> None:
    tx.leases.release(lease)


def _unexpired(tx: Transaction, name: str) -> HeldLease | None:
    held = tx.leases.find(name)
    return held if held is not None and held.expires_at > tx.leases.now() else None


def _is_alive(run: Run, is_gone: IsGone) -> bool:
    return run.ended_at is None and not is_gone(run)


def _called(session: Session | None) -> str:
    name = one_line(session.title or session.first_line)[:_NAME] if session else ""
    return f"“{name}”" if name else "This session"


def _told(run: Run, session: Session | None) -> str:
    branch = f", or begin a branch of it: `segue -r {session.id} --branch`" if session else ""
    return (
        f"{_called(session)} is open elsewhere: in {run.program}, process {run.pid} on {run.host}."
        f" Go on there, or close it{branch}."
    )
