"""What happens in a turn, as a stream of events.

An agent yields them one by one. Whoever runs the turn stores what an event says before it asks for the next one, so an
agent that yields "this tool starts" before it starts the tool, and "this is the answer" when it has it, is durable
without knowing how.
"""

from dataclasses import dataclass, field
from typing import Any

from segue.core.errors import INTERNAL_FAULT
from segue.core.json_text import parse_json
from segue.core.usage import Billing, Usage

Chat = dict[str, Any]
"""A message in the chat format of OpenAI."""


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A wish of the model: a tool, and its arguments as the model wrote them."""

    id: str
    name: str
    arguments: str = "{}"

    def as_chat(self) -> Chat:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}

    def parsed(self) -> dict[str, Any] | None:
        """The arguments as an object; None when they are none."""
        try:
            said = parse_json(self.arguments or "{}", parse_constant=_no_number)
        except ValueError:
            return None
        return said if isinstance(said, dict) else None


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer, to be shown at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model is about to be asked."""

    model: str
    provider: str


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a model, or another agent, answered at once: words, and the tools it wants to use."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str | None = None
    provider: str | None = None
    """Whose reasoning this is: it goes back to that provider alone."""
    finish_reason: str = "stop"
    reasoning: str | None = None
    details: Chat = field(default_factory=dict)
    """Other columns of the message: reasoning_content, reasoning_details, codex_reasoning_items and so on."""
    usage: Usage = field(default_factory=Usage)
    billing: Billing = field(default_factory=Billing)
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run."""

    call: ToolCall
    is_idempotent: bool = False
    """Whether it may run again when nobody knows whether it has run."""


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """What a tool returned."""

    call: ToolCall
    output: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Steered:
    """Somebody spoke while the agent worked, and the agent has heard it."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people should know and the model need not: a retry, another model in place of the first."""

    text: str
    public: str = ""
    """What people who are not owners read in place of it; empty when they read nothing."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn cannot go on: one sentence that says why and what to do."""

    sentence: str
    public: str = INTERNAL_FAULT
    """What people who are not owners read in place of it; it names no provider, host or path."""


@dataclass(frozen=True, slots=True)
class Done:
    """The turn is over."""

    was_stopped: bool = False


@dataclass(frozen=True, slots=True)
class CarryOn:
    """The agent wants the person to go on in another session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Compressed:
    """The conversation goes on in another session, which begins with a summary."""

    session_id: str
    title: str | None

    @property
    def sentence(self) -> str:
        named = f" as “{self.title}”" if self.title else ""
        return f"What was said first is a summary now, and the conversation goes on{named} ({self.session_id})."

    @property
    def notice(self) -> str:
        """The same for a chat, where an id stands on a line of its own."""
        return self.sentence.replace(f" ({self.session_id}).", f".\n{self.session_id}")


Event = (
    Text
    | Reasoning
    | ModelCalled
    | Reply
    | ToolStarted
    | ToolFinished
    | Steered
    | Note
    | Failed
    | Done
    | CarryOn
    | Compressed
)
