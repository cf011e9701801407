"""Every place at which somebody else's code takes part, one sentence each.

A package says in its metadata what it brings: under `segue.hooks` an object with functions of the names in `Hook`, each
of which is called with one fact; under the other groups what makes a platform, a tool or an agent. Facts are told after
they are in the database and at most once. Each listener has a thread of its own, so a slow one is late and a broken one
is a line in the log: neither keeps a message waiting.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

MOST_WAITING = 10_000
"""Facts that a slow listener may be behind; what comes then is not told to it."""

_log = logging.getLogger(__name__)


class Group(StrEnum):
    """Under which name of a package's metadata it is found."""

    HOOKS = "segue.hooks"
    """Objects that are told what happens."""
    PLATFORMS = "segue.platforms"
    """Functions that make a `ports.platform.Platform` from its settings."""
    TOOLS = "segue.tools"
    """Functions that make a `ports.tool.Tool`."""
    AGENTS = "segue.agents"
    """Functions that make a `ports.agent.Agent`, or answer by themselves."""


class SessionStarted(NamedTuple):
    """A lane has its first session."""

    lane_key: str
    session_id: str
    principal: str


class SessionReset(NamedTuple):
    """A lane has a new session in place of an old one."""

    lane_key: str
    session_id: str
    principal: str
    old_session_id: str | None
    reason: str


class SessionFinalized(NamedTuple):
    """A session has expired, and its agent has written down what it wanted to remember."""

    lane_key: str | None
    session_id: str
    principal: str
    has_remembered: bool
    """False when there was nothing to remember, or it could not be written down."""


class SubagentStopped(NamedTuple):
    """An agent that worked for another one has come to its end."""

    session_id: str
    spawned_by: str
    how: str


class MessageAccepted(NamedTuple):
    """A message is in the inbox, and will be answered."""

    lane_key: str
    principal: str
    platform: str
    chat: str
    message_id: str


class MessageReceived(NamedTuple):
    """A platform was told what became of a message that it brought, so many seconds after it did."""

    platform: str
    receipt: str
    """accepted, known, refused or ignored."""
    seconds: float


class TurnEnded(NamedTuple):
    """An answer has come to its end: done, stopped or failed."""

    lane_key: str
    session_id: str
    turn_id: str
    platform: str
    state: str


class SendTried(NamedTuple):
    """A platform was given something to send."""

    platform: str
    outcome: str
    """delivered, later, unknown or refused."""


class StoreFailed(NamedTuple):
    """The store could not do its work."""

    kind: str
    """The name of the error."""


class ReplyDelivered(NamedTuple):
    """A reply, or a piece of a long one, has arrived on its platform."""

    lane_key: str
    session_id: str | None
    turn_id: str | None
    platform: str
    chat: str
    message_id: str | None


Fact = (
    SessionStarted
    | SessionReset
    | SessionFinalized
    | SubagentStopped
    | MessageReceived
    | MessageAccepted
    | TurnEnded
    | SendTried
    | ReplyDelivered
    | StoreFailed
)
Tell = Callable[[Fact], None]


class Hook(StrEnum):
    """The functions that a listener may have; each is given the fact of the same name."""

    SESSION_STARTED = "session_started"
    SESSION_RESET = "session_reset"
    SESSION_FINALIZED = "session_finalized"
    SUBAGENT_STOPPED = "subagent_stopped"
    MESSAGE_RECEIVED = "message_received"
    MESSAGE_ACCEPTED = "message_accepted"
    TURN_ENDED = "turn_ended"
    SEND_TRIED = "send_tried"
    REPLY_DELIVERED = "reply_delivered"
    STORE_FAILED = "store_failed"


_HOOKS: Mapping[type, Hook] = {
    SessionStarted: Hook.SESSION_STARTED,
    SessionReset: Hook.SESSION_RESET,
    SessionFinalized: Hook.SESSION_FINALIZED,
    SubagentStopped: Hook.SUBAGENT_STOPPED,
    MessageReceived: Hook.MESSAGE_RECEIVED,
    MessageAccepted: Hook.MESSAGE_ACCEPTED,
    TurnEnded: Hook.TURN_ENDED,
    SendTried: Hook.SEND_TRIED,
    ReplyDelivered: Hook.REPLY_DELIVERED,
    StoreFailed: Hook.STORE_FAILED,
}


def nobody(_fact: Fact) -> None:
    """For whoever tells nobody."""


class Hooks:
    """Those who are told what happens."""

    def __init__(self, listeners: Mapping[str, object] | None = None, at_once: Tell = nobody) -> None:
        """`at_once` is ours: it is told before everybody else, takes no time and never fails."""
        self._at_once = at_once
        self._listeners = [_Listener(name, listener) for name, listener in (listeners or {}).items()]

    def tell(self, fact: Fact) -> None:
        """Pass a fact on. Returns at once, whatever listeners make of it."""
        self._at_once(fact)
        for listener in self._listeners:
            listener.tell(_HOOKS[type(fact)], fact)

    def close(self, seconds: float) -> None:
        """Let listeners hear what was told, for so many seconds in all."""
        for listener in self._listeners:
            listener.end()
        for listener in self._listeners:
            listener.join(seconds / len(self._listeners))


class _Listener:
    """One object, called in a thread of its own, one fact after another."""

    def __init__(self, name: str, listener: object) -> None:
        self._name = name
        self._functions = {hook: found for hook in Hook if (found := getattr(listener, hook, None)) is not None}
        self._facts: queue.Queue[tuple[Hook, Fact] | None] = queue.Queue(MOST_WAITING)
        self._is_behind = False
        self._thread = threading.Thread(target=self._listen, name=f"hooks of {name}", daemon=True)
        self._thread.start()

    def tell(self, hook: Hook, fact: Fact) -> None:
        if hook not in self._functions:
            return
        try:
            self._facts.put_nowait((hook, fact))
            self._is_behind = False
        except queue.Full:
            if not self._is_behind:
                _log.warning("The hooks of %s are too slow; they are not told everything.", self._name)
            self._is_behind = True

    def end(self) -> None:
        threading.Thread(target=self._facts.put, args=(None,), daemon=True).start()  # there may be no room for it

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _listen(self) -> None:
        while (told := self._facts.get()) is not None:
            hook, fact = told
            try:
                self._functions[hook](fact)
            except Exception:  # noqa: BLE001 - it is somebody else's code, and nothing of ours depends on it
                _log.exception("The hook %s of %s failed.", hook, self._name)


def load(group: Group) -> dict[str, Any]:
    """What installed packages bring to a group, by name; one that cannot be loaded is told in the log."""
    from importlib.metadata import entry_points  # which takes its time, and only a gateway needs it

    return dict(_loaded(entry_points(group=group)))


def _loaded(points: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    for point in points:
        try:
            yield point.name, point.load()
        except Exception:  # noqa: BLE001 - a package that is broken must not keep the others away
            _log.exception(
                "%s of the package %s cannot be loaded.", point.value, point.dist.name if point.dist else "?"
            )
