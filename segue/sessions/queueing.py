"""What is to be done next in a lane: a turn that was cut off, a command, or the messages that one turn answers."""

from collections.abc import Callable
from dataclasses import dataclass

from segue.core.inbox import Entry, InboxState, Want
from segue.core.keys import is_isolated
from segue.core.lifecycle import Lane
from segue.core.preferences import decode
from segue.core.queueing import QueueMode, QueueRules, together
from segue.core.turns import Turn
from segue.ports.store import Transaction
from segue.sessions.turning import find_broken_turn


@dataclass(frozen=True, slots=True)
class CutOff:
    """A turn that nobody brought to its end, and when something last happened in it."""

    lane: Lane
    turn: Turn
    last_at: float
    has_more: bool
    """Whether something waits behind it."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Messages whose turn ended without them."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Carry:
    """A command to carry out."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class AnswerThese:
    entries: tuple[Entry, ...]
    is_more_welcome: bool
    """Whether what comes in the next moment is answered together with them."""
    is_fresh: bool = False
    """Whether they have a session of their own."""


Due = CutOff | Forgotten | Carry | AnswerThese | None


def next_due(tx: Transaction, lane_key: str, rules_on: Callable[[str], QueueRules]) -> Due:
    """What is to be done; whoever asks holds the lane, so nothing is being done there."""
    entries = tx.inbox.open_in(lane_key)
    if not entries:
        return None
    waiting = [entry for entry in entries if entry.state == InboxState.WAITING]
    running = [entry for entry in entries if entry.state == InboxState.RUNNING]
    lane = tx.lanes.find(lane_key)
    session = tx.sessions.find(lane.session_id) if lane and lane.session_id else None
    if lane is not None and session is not None and (broken := find_broken_turn(tx, session.id)):
        return CutOff(lane, broken.turn, broken.last_at, bool(waiting))
    if running:
        return Forgotten(tuple(running))
    if not waiting:
        return None
    if waiting[0].want == Want.COMMAND:
        return Carry(waiting[0])
    if is_isolated(lane_key):
        return AnswerThese((waiting[0],), is_more_welcome=False, is_fresh=True)
    mode = mode_in(rules_on(waiting[0].platform), session.model_config if session else None)
    these = together(waiting, mode)
    is_last = len(these) == len(waiting) and these[0].want == Want.PLAIN
    return AnswerThese(tuple(these), is_more_welcome=mode is QueueMode.COLLECT and is_last)


def rules_in(tx: Transaction, lane_key: str, rules: QueueRules) -> QueueRules:
    """The rules of a lane, with the mode that was chosen in its session."""
    lane = tx.lanes.find(lane_key)
    session = tx.sessions.find(lane.session_id) if lane and lane.session_id else None
    return rules._replace(mode=mode_in(rules, session.model_config)) if session else rules


def mode_in(rules: QueueRules, model_config: str | None) -> QueueMode:
    """How messages wait in a session: as it was chosen there, otherwise as the settings say."""
    chosen = decode(model_config).queue
    return QueueMode(chosen) if chosen in list(QueueMode) else rules.mode
