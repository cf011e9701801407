"""What a process that is no more has left: exactly its open turns are interrupted, and its life is over."""

from datetime import timedelta

from segue.core.leases import CRASHED, Run
from segue.core.lifecycle import Interruption
from segue.core.moments import instant
from segue.ports.store import Transaction
from segue.sessions.leasing import IsGone
from segue.sessions.steering import interrupt_lane

CRASHES = 3
CRASH_SPAN = timedelta(seconds=60)
"""So many crashes within so short a time, and nothing goes on by itself."""


def interrupt_left(tx: Transaction, is_gone: IsGone, now: float) -> list[str]:
    """Mark the lanes in which a process died at work, and let go of what it held; which lanes these are."""
    interrupted = []
    for run in tx.leases.open_runs():
        if is_gone(run):
            interrupted += _interrupt_turns(tx, run, Interruption.RESTART, now)
            tx.leases.change_run(run.id, ended_at=now, how=CRASHED)
            tx.leases.release_all(run.id)  # on a server people do not see whose it was, and would wait for it
    return interrupted


def interrupt_own(tx: Transaction, run: Run, reason: Interruption, now: float) -> list[str]:
    """Mark the lanes whose turns this process leaves for the next one."""
    return _interrupt_turns(tx, run, reason, now)


def is_crashing(tx: Transaction, program: str, now: float) -> bool:
    """Whether this program has died so often, so soon after another, that it should not go on by itself."""
    since = now - CRASH_SPAN.total_seconds()
    return tx.leases.count_crashes(program, since) >= CRASHES


def _interrupt_turns(tx: Transaction, run: Run, reason: Interruption, now: float) -> list[str]:
    keys = []
    for turn in tx.turns.running_of(run.id):
        session = tx.sessions.find(turn.session_id)
        if session and session.lane_key and tx.lanes.find(session.lane_key):
            interrupt_lane(tx, session.lane_key, reason, instant(now))
            keys.append(session.lane_key)
    return keys
