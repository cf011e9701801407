"""How a lane stands, for whoever asks in it: its queue, its phase, whether answers are sent, and its next reset."""

from datetime import datetime
from typing import NamedTuple

from segue.core.background import ProcessState
from segue.core.inbox import Entry
from segue.core.keys import parse_key
from segue.core.lifecycle import Lane, Phase
from segue.core.outbox import What
from segue.core.queueing import QueueMode
from segue.ports.store import Transaction
from segue.sessions.delivering import Posting, envelope_of, held_back
from segue.sessions.opening import Rules, policy_of


class LaneStatus(NamedTuple):
    """A lane, without what was chosen in its conversation."""

    queue_mode: QueueMode = QueueMode.COLLECT
    is_sent: bool = True
    """True if the send policy lets answers through."""
    phase: Phase = Phase.ACTIVE
    next_reset: datetime | None = None
    """When the conversation begins anew if nobody writes before; None if it never does by itself."""
    process_count: int = 0
    """Background processes of the conversation that are running."""


def lane_status(
    tx: Transaction, lane: Lane | None, entry: Entry, rules: Rules, posting: Posting, queue_mode: QueueMode
) -> LaneStatus:
    """Return how the lane of a message stands."""
    is_sent = held_back(posting, envelope_of(entry, ""), What.REPLY, None) is None
    if lane is None:
        return LaneStatus(queue_mode, is_sent)
    policy = policy_of(parse_key(lane.key, rules.keys.main_key), lane.origin or entry.source, rules.policies)
    expires_at = policy.expires_at(lane.last_person_at) if lane.session_id else None
    return LaneStatus(queue_mode, is_sent, lane.phase, expires_at, count_processes(tx, lane))


def count_processes(tx: Transaction, lane: Lane | None) -> int:
    """Return how many background processes of a lane's conversation are running."""
    found = tx.processes.of(lane.session_id) if lane and lane.session_id else []
    return sum(process.state == ProcessState.RUNNING for process in found)
