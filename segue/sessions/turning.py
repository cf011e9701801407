"""A turn as it happens: every line of it in its own transaction, each of which makes sure that the turn is still ours.

The message of a person is stored when the turn opens, an answer before the first of its tools runs, a result as soon
as it is there. So whatever moment a process is killed at, the rows say how far it came.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from segue.core.events import Reply, ToolCall, ToolFinished
from segue.core.leases import Lease
from segue.core.messages import Draft, Said, Spot, draft
from segue.core.turns import (
    Fate,
    Heard,
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
from segue.sessions.rewinding import rewind_from

MOST_ATTEMPTS = 3


class Situation(NamedTuple):
    """Where a turn stands: what the agent is to be told."""

    turn: Turn
    system: str
    view: list[Said]
    pending: Mapping[str, Fate] = {}
    """Calls without a result, and what becomes of each."""
    steps: int = 0
    window: int | None = None
    """What the model could read when it was last asked, in tokens."""
    counted: int | None = None
    """What the conversation was then, as the model counted."""
    heard: Sequence[Heard] = ()
    """What a person said before the turn was cut off, and the agent has not heard."""


def open_turn(
    tx: Transaction, lease: Lease, turn: Turn, messages: Sequence[Draft], *, undo_from: Spot | None = None
) -> Situation:
    """Store what a person said, and that somebody is about to answer it.

    What they said while the turn before ran, and nobody heard, is said first. `undo_from` is the message from which on
    the conversation falls silent, because it is said again.
    """
    hold(tx, lease)
    close_left_turn(tx, turn.session_id, turn.begun_at)
    if undo_from is not None:
        rewind_from(tx, turn.session_id, undo_from)
    unheard = tx.turns.heard_in(turn.session_id)
    said = [*(draft("user", line.content, line.at) for line in unheard), *messages]
    seqs = [append_message(tx, turn.session_id, one).seq for one in said]
    for line in unheard:
        tx.turns.forget_heard(line)
    opened = turn._replace(first_seq=seqs[0] if seqs else _last_seq(tx, turn.session_id))
    tx.turns.insert(opened)
    return _situation(tx, opened, ())


def close_left_turn(tx: Transaction, session_id: str, now: float) -> None:
    """End a turn that was left open: whoever holds the lease and runs none knows that nobody will."""
    if left := tx.turns.running_in(session_id):
        tx.turns.change(left.id, state=str(TurnState.FAILED), ended_at=now, reason="It was left open.")


def take_up_turn(tx: Transaction, lease: Lease, turn: Turn, run_id: str) -> Situation:
    """Carry on a turn that was cut off."""
    hold(tx, lease)
    again = turn._replace(run_id=run_id, attempt=turn.attempt + 1)
    tx.turns.change(turn.id, run_id=again.run_id, attempt=again.attempt)
    return _situation(tx, again, tx.turns.steps(turn.id))._replace(heard=tx.turns.heard_in(turn.session_id))


class BrokenTurn(NamedTuple):
    """A turn that nobody brought to its end, and when something last happened in it."""

    turn: Turn
    last_at: float


def find_broken_turn(tx: Transaction, session_id: str) -> BrokenTurn | None:
    """Whoever holds the session's lease knows that nobody will bring it to its end."""
    turn = tx.turns.running_in(session_id)
    if turn is None:
        return None
    steps = tx.turns.steps(turn.id)
    return BrokenTurn(turn, max([turn.begun_at, *(step.ended_at or step.begun_at for step in steps)]))


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
    """Store what a model answered and what that cost, before any of the tools it wants runs; once for each step."""
    hold(tx, lease)
    message = reply_draft(reply, now)
    if number is not None and not tx.turns.end_step(turn.id, number, StepState.DONE, now):
        return message  # it was stored when the store could not say so
    append_message(tx, turn.session_id, message)
    add_usage(tx, turn.session_id, reply.usage, reply.billing, now)
    if reply.context_window is not None or reply.usage.input_tokens:
        kept = max(reply.usage.output_tokens - reply.usage.reasoning_tokens, 0)  # thoughts are not told again
        used = reply.usage.input_tokens + kept
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


def fail_step(tx: Transaction, lease: Lease, turn: Turn, number: int, now: float) -> None:
    """A model did not answer."""
    hold(tx, lease)
    tx.turns.end_step(turn.id, number, StepState.FAILED, now)


def hear(tx: Transaction, lease: Lease, line: Heard) -> None:
    """Keep what a person says while a turn runs."""
    hold(tx, lease)
    tx.turns.hear(line)


def record_speech(tx: Transaction, lease: Lease, turn: Turn, line: Heard) -> None:
    """What a person said has been heard: it becomes a message."""
    hold(tx, lease)
    tx.turns.forget_heard(line)
    append_message(tx, turn.session_id, draft("user", line.content, line.at))


def find_unheard(tx: Transaction, session_id: str) -> list[Heard]:
    """What was said while a turn ran, and came too late for it."""
    return tx.turns.heard_in(session_id)


def cancel_heard(tx: Transaction, lease: Lease, session_id: str) -> list[Heard]:
    """Let go of what nobody heard; what that was."""
    hold(tx, lease)
    return [line for line in tx.turns.heard_in(session_id) if tx.turns.forget_heard(line)]


class Outcome(NamedTuple):
    """How a turn came to its end."""

    turn: Turn
    state: TurnState
    text: str
    """What was said last."""
    at: float
    reason: str | None = None
    public_reason: str | None = None
    """The same for people who are not owners; without one, the reason is fit for everybody."""


Ending = Callable[[Transaction, Outcome], None]
"""What else is done in the transaction that ends a turn."""


def nothing_else(_tx: Transaction, _outcome: Outcome) -> None: ...


class LastReply(NamedTuple):
    """The answer that a turn ends with, and the step that brought it."""

    number: int | None
    reply: Reply


def end_turn(
    tx: Transaction, lease: Lease, outcome: Outcome, last: LastReply | None = None, ending: Ending = nothing_else
) -> None:
    """The last answer, the end of the turn, and whatever follows from it: one commit. What has an end keeps it."""
    hold(tx, lease)
    found = tx.turns.find(outcome.turn.id)
    if found is not None and found.state != TurnState.RUNNING:
        return  # it was over in the moment in which somebody stopped it
    if last is not None:
        record_reply(tx, lease, outcome.turn, last.number, last.reply, outcome.at)
    tx.turns.change(outcome.turn.id, state=str(outcome.state), ended_at=outcome.at, reason=outcome.reason)
    ending(tx, outcome)


def give_up_turn(
    tx: Transaction, lease: Lease, turn: Turn, now: float, reason: str, ending: Ending = nothing_else
) -> None:
    """End a turn that was cut off and is not carried on; what it left open is answered as unknown in the view."""
    end_turn(tx, lease, Outcome(turn, TurnState.FAILED, "", now, reason), ending=ending)


def _situation(tx: Transaction, turn: Turn, steps: Sequence[Step]) -> Situation:
    session = get_session(tx, turn.session_id)
    view = view_of(tx, turn.session_id)
    pending = salvage(*last_calls(view), steps)
    system, window, counted = session.system_prompt or "", session.context_window, session.context_tokens
    return Situation(turn, system, view, pending, len(steps), window, counted)


def _last_seq(tx: Transaction, session_id: str) -> int:
    last = tx.messages.last(session_id, 1, every_state=True)
    return last[-1].seq if last else 0
