"""What runs in the background, as rows: who keeps it, and what became of it."""

from segue.core.background import Process, ProcessState
from segue.core.lifecycle import Lane
from segue.ports.store import Transaction
from segue.sessions.leasing import IsGone


def begin_process(tx: Transaction, process: Process) -> None:
    tx.processes.insert(process)


def end_process(tx: Transaction, process_id: str, state: ProcessState, exit_code: int | None, now: float) -> None:
    tx.processes.change(process_id, state=str(state), exit_code=exit_code, ended_at=now)


def find_process(tx: Transaction, process_id: str) -> Process | None:
    return tx.processes.find(process_id)


def processes_around(tx: Transaction, session_id: str) -> list[Process]:
    """Those of a session, and those of other sessions that still run: a conversation may have gone over to another."""
    own = tx.processes.of(session_id)
    others = [process for process in tx.processes.running() if process.session_id != session_id]
    return [*own, *others]


def running_processes(tx: Transaction) -> list[Process]:
    return tx.processes.running()


def has_background_work(tx: Transaction, lane: Lane | None) -> bool:
    """Whether something that the lane's session has started still runs."""
    own = tx.processes.of(lane.session_id) if lane and lane.session_id else []
    return any(process.state == ProcessState.RUNNING for process in own)


def mark_lost(tx: Transaction, is_gone: IsGone, now: float) -> int:
    """Say of every process whose keeper is no more that it was taken along; how many there were."""
    lost = [process for process in tx.processes.running() if not has_keeper(tx, process, is_gone)]
    for process in lost:
        end_process(tx, process.id, ProcessState.LOST, None, now)
    return len(lost)


def has_keeper(tx: Transaction, process: Process, is_gone: IsGone) -> bool:
    """True if the program that started a process still runs."""
    run = tx.leases.find_run(process.run_id)
    return run is not None and run.ended_at is None and not is_gone(run)
