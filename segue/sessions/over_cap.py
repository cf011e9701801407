"""Notices to people whose messages do not fit into a full queue: one for each of them and each burst.

A burst lasts until the next turn of the lane begins, because only then is there room again.
"""

import hashlib
from collections.abc import Iterable

from segue.core.inbox import Entry
from segue.core.outbox import What
from segue.core.turns import ANSWER
from segue.ports.store import Transaction
from segue.sessions.accepting import LEFT_OUT, SUMMARISED, Accepted
from segue.sessions.delivering import Posting, envelope_of, post

NOT_TAKEN = "Too many messages are waiting: this one and those that follow are not taken until some are answered."
DROPPED = {
    LEFT_OUT: "Too many messages are waiting: the oldest are not answered any more.",
    SUMMARISED: "Too many messages are waiting: the oldest are left out, and the next answer is told of them in short.",
}


def tell_over_cap(tx: Transaction, accepted: Accepted, posting: Posting, now: float) -> None:
    """Tell whoever said what was refused, or cancelled to make room, unless they were told in this burst."""
    if accepted.is_refused:
        _tell(tx, [accepted.entry], NOT_TAKEN, posting, now)
    for reason, text in DROPPED.items():
        _tell(tx, (one for one in accepted.cancelled if one.reason == reason and one.is_person), text, posting, now)


def _tell(tx: Transaction, entries: Iterable[Entry], text: str, posting: Posting, now: float) -> None:
    for entry in entries:
        goes = entry.destination
        where = (goes.platform, goes.account or "", goes.chat_id, goes.thread_id or "", entry.person)
        about = "\0".join((entry.lane_key, _burst(tx, entry.lane_key), text, *where))
        name = f"over-cap:{hashlib.sha256(about.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
        post(tx, posting, envelope_of(entry, name), text, What.NOTICE, now)


def _burst(tx: Transaction, lane_key: str) -> str:
    """Return the turn that everything waits behind, or the one that was the last."""
    running = tx.inbox.running(lane_key)
    if running and running[0].turn_id:
        return running[0].turn_id
    lane = tx.lanes.find(lane_key)
    if lane is None or lane.session_id is None:
        return ""
    turn = tx.turns.latest(lane.session_id, ANSWER)
    return turn.id if turn else lane.session_id
