"""What became of a message, as a chat completion or as a response."""

from typing import NamedTuple

from segue.core.errors import NotFound
from segue.core.inbox import Entry, InboxState
from segue.core.keys import parse_key
from segue.core.messages import Message
from segue.core.usage import Purpose, Usage
from segue.ports.store import Transaction
from segue.sessions.calling import Call, find_call
from segue.sessions.responding import HELD_BACK, Outcome, find_outcome
from segue.web.openai import shapes
from segue.web.openai.errors import Trouble, cancelled, failed, unfinished
from segue.web.openai.voice import joined

RESPONSE, COMPLETION = "resp_", "chatcmpl-"
_STATUS: dict[str, shapes.Status] = {
    InboxState.WAITING: "queued",
    InboxState.RUNNING: "in_progress",
    InboxState.DONE: "completed",
    InboxState.CANCELLED: "cancelled",
    InboxState.REFUSED: "failed",
    InboxState.DEAD: "failed",
}


class Standing(NamedTuple):
    """How a message stands, how it was asked for, and what the models used for it."""

    outcome: Outcome
    call: Call
    used: Usage = Usage()

    @property
    def entry(self) -> Entry:
        return self.outcome.entry

    @property
    def hex(self) -> str:
        return self.entry.message_id.removeprefix(RESPONSE)

    @property
    def text(self) -> str:
        return joined(answer_of(self.outcome))

    @property
    def status(self) -> shapes.Status:
        return _STATUS[self.entry.state]

    @property
    def reason(self) -> str:
        return self.entry.reason or "It was not answered."


def look_at(tx: Transaction, message_id: str) -> Standing:
    """How a message stands that a program said under a name."""
    found = tx.inbox.from_program(message_id)
    outcome = find_outcome(tx, found[0].id) if found else None
    if outcome is None or (outcome.entry.session_id and tx.sessions.find(outcome.entry.session_id) is None):
        raise NotFound(f"Response with id '{message_id}' not found.")
    entry = outcome.entry
    call = find_call(tx, message_id) or Call("", entry.lane_key, entry.chat, parse_key(entry.lane_key).agent, 0.0)
    return Standing(outcome, call, _used(tx, entry))


def answer_of(outcome: Outcome) -> list[str]:
    """Everything that the agent has said in a turn; what is held back is not told, only that it is."""
    if HELD_BACK in outcome.notices:
        return [HELD_BACK]
    return texts_of(outcome.messages) or ([outcome.text] if outcome.text else [])


def texts_of(messages: tuple[Message, ...]) -> list[str]:
    return [one.content for one in messages if one.role == "assistant" and one.content]


def trouble_with(standing: Standing) -> Trouble | None:
    """Why there is no whole answer, where nothing else than one can be told."""
    match standing.status:
        case "failed":
            return failed(standing.reason)
        case "cancelled":
            return cancelled(standing.reason)
        case "queued" | "in_progress":
            return unfinished()
    return None


def completion_of(standing: Standing) -> shapes.ChatCompletion:
    choice = shapes.Choice(message=shapes.ChatAnswer(content=standing.text))
    return shapes.ChatCompletion(
        id=COMPLETION + standing.hex,
        created=int(standing.entry.admitted_at),
        model=standing.call.model,
        choices=[choice],
        usage=chat_usage(standing.used),
    )


def response_of(standing: Standing, *, with_text: bool = True) -> shapes.Response:
    """A response; while it is being told, without what is told of it."""
    entry, call, status = standing.entry, standing.call, standing.status
    is_over = standing.outcome.is_over
    output = [message_of(standing)] if with_text and standing.text and is_over else []
    return shapes.Response(
        id=entry.message_id,
        created_at=int(entry.admitted_at),
        completed_at=int(entry.ended_at) if status == "completed" and entry.ended_at else None,
        status=status,
        background=call.is_background,
        error=shapes.ResponseFault(code="server_error", message=standing.reason) if status == "failed" else None,
        model=call.model,
        output=output,
        conversation=shapes.ConversationName(id=call.conversation) if call.conversation else None,
        previous_response_id=call.previous,
        usage=response_usage(standing.used) if is_over else None,
    )


def message_of(standing: Standing) -> shapes.OutputMessage:
    """The answer as the only item of its response."""
    part = shapes.OutputText(text=standing.text)
    return shapes.OutputMessage(
        id=message_id(standing),
        status="completed" if standing.status == "completed" else "incomplete",
        content=[part],
    )


def message_id(standing: Standing) -> str:
    return f"msg_{standing.hex}"


def chat_usage(used: Usage) -> shapes.ChatUsage:
    return shapes.ChatUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.total_tokens,
        prompt_tokens_details=shapes.TokenDetails(cached_tokens=used.cache_read_tokens),
        completion_tokens_details=shapes.ReasoningDetails(reasoning_tokens=used.reasoning_tokens),
    )


def response_usage(used: Usage) -> shapes.ResponseUsage:
    return shapes.ResponseUsage(
        input_tokens=used.input_tokens,
        input_tokens_details=shapes.TokenDetails(cached_tokens=used.cache_read_tokens),
        output_tokens=used.output_tokens,
        output_tokens_details=shapes.ReasoningDetails(reasoning_tokens=used.reasoning_tokens),
        total_tokens=used.total_tokens,
    )


def _used(tx: Transaction, entry: Entry) -> Usage:
    """What models used in the turn that answered a message."""
    turn = tx.turns.find(entry.turn_id) if entry.turn_id else None
    if turn is None or turn.ended_at is None:
        return Usage()
    total = Usage()
    for one in tx.ledger.of(turn.session_id):
        if one.purpose == Purpose.ANSWER and turn.begun_at <= one.at <= turn.ended_at:
            total = total.plus(Usage._make(getattr(one, name) for name in Usage._fields))
    return total
