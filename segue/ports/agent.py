"""An agent: whatever answers people. Ours is `agent/loop.py`; any other can stand in its place."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from segue.core.compaction import Need
from segue.core.events import Chat, Event, ToolCall
from segue.core.messages import Said
from segue.core.transcript import Eye, as_chat
from segue.core.turns import Fate


async def _nobody_speaks() -> list[str]:
    return []


async def _nobody_agrees(_call: ToolCall, _risk: str) -> bool:
    return False


async def _nobody_makes_room(_need: Need) -> Sequence[Said] | None:
    return None


class Space(NamedTuple):
    """How much of a model's window a conversation may take, and how it is made shorter."""

    window: int | None = None
    """Tokens that the model could read when it was last asked."""
    counted: int | None = None
    """Tokens of the conversation when it was last answered, as the model counted them."""
    threshold: float = 1.0
    make: Callable[[Need], Awaitable[Sequence[Said] | None]] = _nobody_makes_room
    """The conversation, made shorter; nothing when it cannot be."""


class Task(NamedTuple):
    """What an agent is asked to do in one turn."""

    session_id: str
    system: str
    view: Sequence[Said]
    """The conversation so far, the newest message last."""
    pending: Mapping[str, Fate] = {}
    """Calls of the last assistant message that were cut off, when a turn is carried on after a crash."""
    model: str | None = None
    """The one that this conversation wants, when it wants a particular one."""
    effort: str | None = None
    steered: Callable[[], Awaitable[list[str]]] = _nobody_speaks
    """What people have said since the agent last asked."""
    agrees: Callable[[ToolCall, str], Awaitable[bool]] = _nobody_agrees
    """Whether somebody agrees to a risk."""
    space: Space = Space()
    is_shared: bool = False
    """Whether several people speak, so that each of their messages names its author."""
    hides_details: bool = False
    """Whether people who are not owners read the answer, so that what a tool fails with is told without details."""

    @property
    def conversation(self) -> list[Chat]:
        """The conversation in the format of OpenAI."""
        return as_chat(self.view, Eye(shared=self.is_shared))


class Agent(Protocol):
    def run(self, task: Task) -> AsyncGenerator[Event]:
        """Work on a task. What is yielded is stored before the agent goes on; cancelled, it leaves nothing running."""
