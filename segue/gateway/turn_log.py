"""One line of the log for each turn, with what it took and how it ended; one for each session that begins or ends.

Lines name no words of people. At `debug` there is one more for each message, call of a model, tool and delivery.
"""

import logging
import time
from typing import Any

from segue.core.events import Event, ModelCalled, Reply, ToolFinished, ToolStarted
from segue.core.text import count, one_line
from segue.core.turns import TurnState
from segue.gateway.at_work import FIELDS, logged_for
from segue.hookspecs import (
    Fact,
    MessageAccepted,
    MessageReceived,
    ReplyDelivered,
    SendTried,
    SessionFinalized,
    SessionReset,
    SessionStarted,
    SubagentStopped,
)
from segue.sessions.turning import Outcome

INTERRUPTED = "interrupted"

_log = logging.getLogger(__name__)


class TurnLog:
    """Gathers what a turn took, and logs it when the turn is over."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._calls = self._tools = self._input = self._output = 0

    def see(self, event: Event) -> None:
        match event:
            case ModelCalled(model, provider):
                self._calls += 1
                _log.debug("Model call: %s/%s", provider, model)
            case Reply(usage=usage):
                self._input += usage.input_tokens
                self._output += usage.output_tokens
            case ToolStarted(call):
                self._tools += 1
                _log.debug("Tool started: %s", call.name)
            case ToolFinished(call):
                _log.debug("Tool %s: %s", "failed" if event.is_error else "finished", call.name)

    def end(self, outcome: Outcome | None, error: str | None = None) -> None:
        """Log how the turn ended; one without an outcome is continued later, here or by another gateway."""
        seconds = time.monotonic() - self._began
        state = INTERRUPTED if outcome is None else str(outcome.state)
        reason = error if outcome is None else outcome.reason
        parts = [count(self._calls, "model call"), count(self._tools, "tool call")]
        parts += [f"{self._input:,} input tokens", f"{self._output:,} output tokens"]
        said = f": {one_line(reason)}" if reason else ""
        fields: dict[str, Any] = {
            "outcome": state,
            "seconds": round(seconds, 3),
            "model_calls": self._calls,
            "tool_calls": self._tools,
            "input_tokens": self._input,
            "output_tokens": self._output,
        }
        level = logging.WARNING if state == TurnState.FAILED else logging.INFO
        _log.log(level, "Turn %s after %.1f s (%s)%s", state, seconds, ", ".join(parts), said, extra={FIELDS: fields})


def log_end(outcome: Outcome) -> None:
    """Log the end of a turn that did not run any more."""
    level = logging.WARNING if outcome.state is TurnState.FAILED else logging.INFO
    reason = f": {one_line(outcome.reason)}" if outcome.reason else ""
    _log.log(level, "Turn %s without being resumed%s", outcome.state, reason)


def log_fact(fact: Fact) -> None:
    """Log what has happened: sessions at `info`, messages and deliveries at `debug`."""
    match fact:
        case SessionStarted():
            _tell(logging.INFO, fact.lane_key, fact.session_id, "Session started")
        case SessionReset():
            replaced = f", replaces {fact.old_session_id}" if fact.old_session_id else ""
            _tell(logging.INFO, fact.lane_key, fact.session_id, f"Session reset ({fact.reason}){replaced}")
        case SessionFinalized():
            notes = "with notes" if fact.has_remembered else "without notes"
            _tell(logging.INFO, fact.lane_key, fact.session_id, f"Session expired, {notes}")
        case SubagentStopped():
            _tell(logging.INFO, None, fact.session_id, f"Subagent of {fact.spawned_by} stopped: {fact.how}")
        case MessageAccepted():
            _tell(logging.DEBUG, fact.lane_key, None, f"Message {fact.message_id} of {fact.platform} accepted")
        case MessageReceived():
            _tell(logging.DEBUG, None, None, f"Message of {fact.platform}: {fact.receipt} in {fact.seconds:.3f} s")
        case SendTried():
            _tell(logging.DEBUG, None, None, f"Delivery to {fact.platform}: {fact.outcome}")
        case ReplyDelivered():
            _tell(logging.DEBUG, fact.lane_key, fact.session_id, f"Reply delivered on {fact.platform}")


def _tell(level: int, lane_key: str | None, session_id: str | None, text: str) -> None:
    if _log.isEnabledFor(level):
        with logged_for(lane_key, session_id):
            _log.log(level, "%s", one_line(text))
