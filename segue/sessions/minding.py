"""What whoever looks after lanes does to one from outside: while somebody works there, nothing.

The right to the lane is taken, used and let go in one transaction. Nobody sees it in between, and a process that had it
once and was given up for dead can store nothing there afterwards.
"""

from datetime import datetime
from typing import NamedTuple

from segue.core.errors import InUse
from segue.core.inbox import InboxState
from segue.core.leases import Lease, lane_lease, session_lease
from segue.core.lifecycle import Lane
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions.backgrounding import has_background_work
from segue.sessions.leasing import IsGone, find_holder, release, take_lease
from segue.sessions.steering import delete_lane, get_lane, reset_on_request
from segue.sessions.turning import close_left_turn

CONSOLE = "console"
GIVEN_UP = "Its answer was cut off, and the lane was reset at the console."


class Hand(NamedTuple):
    """Who does it: the id of a run of this process, and how it finds out about others."""

    run_id: str
    is_gone: IsGone


class Renewed(NamedTuple):
    """A lane with a new session."""

    lane: Lane
    old_session: str | None
    given_up: int
    """How many messages had an answer that was cut off, and get none now."""
    waiting: int


def renew_lane(tx: Transaction, key: str, fresh_id: str, now: datetime, hand: Hand) -> Renewed:
    """Begin a new session in a lane. What waits there is answered in it; a turn that was cut off is given up."""
    lane = get_lane(tx, key)
    taken = _take(tx, lane, hand)
    running = tx.inbox.running(key)
    if lane.session_id:
        close_left_turn(tx, lane.session_id, now.timestamp())
    tx.inbox.change(running, state=str(InboxState.DEAD), reason=GIVEN_UP, ended_at=now.timestamp())
    renewed = reset_on_request(tx, key, fresh_id, now, CONSOLE)
    _let_go(tx, taken)
    return Renewed(renewed, lane.session_id, len(running), tx.inbox.standing(key).waiting)


def forget_lane(tx: Transaction, key: str, now: datetime, hand: Hand) -> Lane:
    """Forget a lane in which nothing is to be done. Its session ends and keeps its transcript."""
    lane = get_lane(tx, key)
    check_idle(tx, lane)
    taken = _take(tx, lane, hand)
    delete_lane(tx, key, now)
    _let_go(tx, taken)
    return lane


def check_free(tx: Transaction, lane: Lane, is_gone: IsGone) -> None:
    """Whether nobody works in a lane; otherwise say who."""
    if run := find_holder(tx, lane_lease(lane.key), is_gone):
        advice = "Wait until the answer is there, or stop it with /stop in that chat."
        raise InUse(
            f"Somebody is at work in {lane.key}: {run.program}, process {run.pid} on {run.host}. {advice}",
            in_chat=f"An answer is being written there. {advice}",
        )


def check_idle(tx: Transaction, lane: Lane) -> None:
    """Whether nothing is to be done in a lane; otherwise say what."""
    standing = tx.inbox.standing(lane.key)
    if standing.waiting:
        waits = "1 message waits" if standing.waiting == 1 else f"{count(standing.waiting, 'message')} wait"
        raise InUse(f"{waits} in {lane.key}; `segue inbox cancel --lane` cancels what waits there.")
    if standing.running:
        raise InUse(f"An answer is not finished in {lane.key}; `segue lanes reset` gives up one that was cut off.")
    if has_background_work(tx, lane):
        raise InUse(f"Something that was started in {lane.key} still runs in the background; stop it there first.")


def _take(tx: Transaction, lane: Lane, hand: Hand) -> list[Lease]:
    """The right to a lane and to its session, which may be open in a chat."""
    check_free(tx, lane, hand.is_gone)
    names = [lane_lease(lane.key), *([session_lease(lane.session_id)] if lane.session_id else [])]
    return [take_lease(tx, name, hand.run_id, lane.principal, hand.is_gone) for name in names]


def _let_go(tx: Transaction, taken: list[Lease]) -> None:
    for lease in taken:
        release(tx, lease)
