"""A turn as it happens: every line of it in its own transaction, each of which makes sure that the turn is still ours.

The message of a person is stored when the turn opens, an answer before the first of its tools runs, a result as soon
as it is there. So whatever moment a process is killed at, the rows say how far it came.
"""

from collections.abc import Mapping
from typing import NamedTuple

from segue.core.events import Reply, ToolCall, ToolFinished
from segue.core.leases import Lease
from segue.core.messages import Draft, Said
from segue.core.turns import (
    Fate,
    Step,
    StepKind,
    StepState,
    Turn,
    TurnState,
    last_calls,
    reply_draft,
    result_draft,
    salvage,
)
from segue.ports.store import Transaction
from segue.sessions.finding import get_session
from segue.sessions.leasing import hold
from segue.sessions.reading import view_of
from segue.sessions.recording import add_usage, append_message

MOST_ATTEMPTS = 3


class Situation(NamedTuple):
    """Where a turn stands: what the agent is to be told."""

    turn: Turn
    system: str
    view: list[Said]
    pending: Mapping[str, Fate] = {}
    """Calls without a result, and what becomes of each."""
    steps: int = 0


def open_turn(tx: Transaction, lease: Lease, turn: Turn, message: Draft | None) -> Situation:
    """Store what a person said, and that somebody is about to answer it."""
    hold(tx, lease)
    if left := tx.turns.running_in(turn.session_id):  # whoever holds the lease knows that nobody will end it
        tx.turns.change(left.id, state=str(TurnState.FAILED), ended_at=turn.begun_at, reason="It was left open.")
    seq = append_message(tx, turn.session_id, message).seq if message else _last_seq(tx, turn.session_id)
    opened = turn._replace(first_seq=seq)
    tx.turns.insert(opened)
    return _situation(tx, opened)


def take_up_turn(tx: Transaction, lease: Lease, turn: Turn, run_id: str) -> Situation:
    """Carry on a turn that was cut off."""
    hold(tx, lease)
    again = turn._replace(run_id=run_id, attempt=turn.attempt + 1)
    tx.turns.change(turn.id, run_id=again.run_id, attempt=again.attempt)
    return _situation(tx, again)


def find_broken_turn(tx: Transaction, session_id: str) -> Turn | None:
    """The turn that nobody brought to its end. Whoever holds the session's lease knows that nobody will."""
    return tx.turns.running_in(session_id)


def begin_model_step(tx: Transaction, lease: Lease, turn: Turn, number: int, model: str, now: float) -> None:
    hold(tx, lease)
    tx.turns.begin_step(Step(turn.id, number, StepKind.MODEL, model, None, 1, StepState.BEGUN, now))


def begin_tool_step(
    tx: Transaction, lease: Lease, turn: Turn, number: int, call: ToolCall, *, is_idempotent: bool, now: float
) -> None:
    hold(tx, lease)
    step = Step(turn.id, number, StepKind.TOOL, call.name, call.id, int(is_idempotent), StepState.BEGUN, now)
    tx.turns.begin_step(step)


def record_reply(tx: Transaction, lease: Lease, turn: Turn, number: int | None, reply: Reply, now: float) -> Draft:
    """Store what a model answered and what that cost, before any of the tools it wants runs."""
    hold(tx, lease)
    message = reply_draft(reply, now)
    append_message(tx, turn.session_id, message)
    if number is not None:
        tx.turns.end_step(turn.id, number, StepState.DONE, now)
    add_usage(tx, turn.session_id, reply.usage, reply.billing, now)
    if reply.context_window is not None:
        used = reply.usage.input_tokens + reply.usage.output_tokens
        tx.sessions.change(turn.session_id, context_tokens=used, context_window=reply.context_window)
    return message


def record_result(
    tx: Transaction, lease: Lease, turn: Turn, number: int | None, result: ToolFinished, now: float
) -> Draft:
    """Store what a tool returned."""
    hold(tx, lease)
    message = result_draft(result, now)
    append_message(tx, turn.session_id, message)
    if number is not None:
        tx.turns.end_step(turn.id, number, StepState.FAILED if result.is_error else StepState.DONE, now)
    return message


def record_speech(tx: Transaction, lease: Lease, turn: Turn, message: Draft) -> None:
    """Store what a person said while the turn ran."""
    hold(tx, lease)
    append_message(tx, turn.session_id, message)


def end_turn(
    tx: Transaction, lease: Lease, turn: Turn, state: TurnState, now: float, reason: str | None = None
) -> None:
    hold(tx, lease)
    tx.turns.change(turn.id, state=str(state), ended_at=now, reason=reason)


def give_up_turn(tx: Transaction, lease: Lease, turn: Turn, now: float, reason: str) -> None:
    """End a turn that was cut off and is not carried on; what it left open is answered as unknown in the view."""
    end_turn(tx, lease, turn, TurnState.FAILED, now, reason)


def _situation(tx: Transaction, turn: Turn) -> Situation:
    session = get_session(tx, turn.session_id)
    view = view_of(tx, turn.session_id)
    steps = tx.turns.steps(turn.id)
    pending = salvage(*last_calls(view), steps)
    return Situation(turn, session.system_prompt or "", view, pending, len(steps))


def _last_seq(tx: Transaction, session_id: str) -> int:
    last = tx.messages.last(session_id, 1, every_state=True)
    return last[-1].seq if last else 0
