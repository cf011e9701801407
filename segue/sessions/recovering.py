"""What a dead process left: its open turns are marked interrupted, its leases are released, its run is ended."""

from segue.core import crash_recovery
from segue.core.crash_recovery import blame_for_crash, resume_time
from segue.core.leases import CRASHED, LEASE_SECONDS, SILENT, Run
from segue.core.lifecycle import Interruption
from segue.core.moments import instant
from segue.ports.store import Transaction
from segue.sessions.leasing import IsGone
from segue.sessions.steering import interrupt_lane


def interrupt_left(tx: Transaction, is_gone: IsGone, now: float) -> list[str]:
    """Settle every run whose process is dead; return the lanes in which one died at work."""
    interrupted = []
    for run in tx.leases.open_runs():
        if is_gone(run):
            interrupted += _settle_crash(tx, run, now)
    return interrupted


def interrupt_left_by(tx: Transaction, run_id: str, is_gone: IsGone, now: float) -> bool:
    """Settle one run if its process is dead and nobody has done so; return whether that changed anything."""
    run = tx.leases.find_run(run_id)
    if run is None or run.ended_at is not None or not is_gone(run):
        return False
    _settle_crash(tx, run, now)
    return True


def is_silent(tx: Transaction, run_id: str) -> bool:
    """Return whether a run has given no sign of life for as long as a lease lasts, and nobody has drawn a conclusion.

    It may be that of a machine that is gone, or of a process that is frozen or cannot reach the database.
    """
    run = tx.leases.find_run(run_id)
    if run is None or run.ended_at is not None or run.how == SILENT:
        return False
    return run.beat_at <= tx.leases.now() - LEASE_SECONDS


def presume_crash(tx: Transaction, run_id: str, now: float) -> bool:
    """Blame the open turns of a silent run as if it had crashed, once; return whether that changed anything.

    The run does not end by that: if it is alive after all, its next sign of life says so.
    """
    run = tx.leases.find_run(run_id)
    if run is None or not is_silent(tx, run_id):
        return False
    _blame_turns(tx, run, now)
    _interrupt_turns(tx, run, Interruption.RESTART, now)
    tx.leases.change_run(run.id, how=SILENT)
    return True


def interrupt_own(tx: Transaction, run: Run, reason: Interruption, now: float) -> list[str]:
    """Mark the lanes whose turns this process leaves for the next one."""
    return _interrupt_turns(tx, run, reason, now)


def find_resume_time(tx: Transaction, program: str, now: float) -> float | None:
    """Return when turns that were cut off may go on, if this program has crashed too often lately; None is at once."""
    return resume_time(_crashes(tx, program, now), crash_recovery.CRASH_SPAN)


def _settle_crash(tx: Transaction, run: Run, now: float) -> list[str]:
    if run.how != SILENT:  # then they have been blamed for it
        _blame_turns(tx, run, now)
    interrupted = _interrupt_turns(tx, run, Interruption.RESTART, now)
    tx.leases.change_run(run.id, ended_at=now, how=CRASHED)
    tx.leases.release_all(run.id)  # on a server people do not see whose it was, and would wait for it
    return interrupted


def _blame_turns(tx: Transaction, run: Run, now: float) -> None:
    turns = [*tx.turns.running_of(run.id), *tx.turns.farewells_of(run.id)]
    blame = blame_for_crash(len(turns), len(_crashes(tx, run.program, now)))
    for turn in turns:
        tx.turns.change(turn.id, blame=turn.blame + blame)


def _crashes(tx: Transaction, program: str, now: float) -> list[float]:
    return tx.leases.crashes(program, now - crash_recovery.CRASH_SPAN.total_seconds())


def _interrupt_turns(tx: Transaction, run: Run, reason: Interruption, now: float) -> list[str]:
    keys = []
    for turn in tx.turns.running_of(run.id):
        session = tx.sessions.find(turn.session_id)
        if session and session.lane_key and tx.lanes.find(session.lane_key):
            interrupt_lane(tx, session.lane_key, reason, instant(now))
            keys.append(session.lane_key)
    return keys
