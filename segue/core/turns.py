"""A turn in flight, its steps, and what becomes of them when the program was killed between two lines.

A finished step is never done again. One that began and did not finish has an outcome that nobody knows: it is done
again only if doing it twice is the same as doing it once; otherwise the model is told that the outcome is unknown.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from segue.core.events import Chat, Reply, ToolCall, ToolFinished
from segue.core.messages import FAILED, Draft, Said, draft


class TurnState(StrEnum):
    """How a turn stands."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    """By somebody who asked for it."""
    FAILED = "failed"
    """By an error that was told."""


class StepKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"


class StepState(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


class Step(NamedTuple):
    """One call of a model or of a tool."""

    turn_id: str
    number: int
    kind: str
    name: str
    call_id: str | None
    is_idempotent: int
    state: str
    begun_at: float
    ended_at: float | None = None


ANSWER, FLUSH, FAREWELL = "answer", "flush", "farewell"
"""What turns are for: a person's words, or what an agent wants to remember before a conversation is compressed or over.

The last two are done from the beginning, so that nobody carries them on; one without an end is owed, or was cut off.
"""


class Turn(NamedTuple):
    """One run of the agent for one or more messages."""

    id: str
    session_id: str
    run_id: str
    state: str
    attempt: int
    first_seq: int
    """Of the messages that it answers and adds."""
    begun_at: float
    ended_at: float | None = None
    reason: str | None = None
    kind: str = ANSWER
    blame: float = 0.0
    """How many crashes are held against it; see `core/crash_recovery.py`."""


class Heard(NamedTuple):
    """Something that a person said while a turn ran, and that the agent has not heard yet."""

    turn_id: str
    number: int
    content: str
    at: float


class Fate(StrEnum):
    """What is to be done about a call that has no result."""

    RUN = "run"
    UNKNOWN = "unknown"


OUTCOME_UNKNOWN = (
    "The program was stopped while this was running, so its outcome is unknown: it may have happened, partly or wholly."
    " It was not run again. Find out before you repeat it."
)


def last_calls(view: Sequence[Said]) -> tuple[list[ToolCall], set[str]]:
    """The calls that a conversation ends with, and the ids of those that have a result."""
    answered: set[str] = set()
    for message in reversed(view):
        if message.role == "tool":
            answered.add(message.tool_call_id or "")
        elif message.role == "assistant":
            return [_call(call) for call in message.calls], answered
        else:
            break
    return [], answered


def _call(said: Chat) -> ToolCall:
    function = said.get("function") or {}
    return ToolCall(str(said.get("id") or ""), str(function.get("name") or ""), str(function.get("arguments") or "{}"))


def salvage(calls: Sequence[ToolCall], answered: Collection[str], steps: Sequence[Step]) -> Mapping[str, Fate]:
    """What becomes of each call of the last assistant message that has no result yet."""
    begun = {step.call_id: step for step in steps if step.kind == StepKind.TOOL}
    fates = {}
    for call in calls:
        if call.id in answered:
            continue
        step = begun.get(call.id)
        fates[call.id] = Fate.RUN if step is None or step.is_idempotent else Fate.UNKNOWN
    return fates


def reply_draft(reply: Reply, now: float) -> Draft:
    """An answer as a row."""
    calls = [call.as_chat() for call in reply.calls] or None
    return draft(
        "assistant",
        reply.text or None,
        now,
        tool_calls=calls,
        token_count=reply.usage.output_tokens or None,
        finish_reason=reply.finish_reason,
        reasoning=reply.reasoning,
        provider=reply.provider,
        **reply.details,
    )


def result_draft(result: ToolFinished, now: float) -> Draft:
    outcome = FAILED if result.is_error else None
    return draft("tool", result.output, now, tool_call_id=result.call.id, tool_name=result.call.name, outcome=outcome)
