"""Sessions ended or removed from outside: never one that a living process works in.

The right to the session, and to the lane it is open in, is taken, used and let go in one transaction.
"""

from segue.core.background import ProcessState
from segue.core.errors import WrongState
from segue.core.inbox import InboxState
from segue.core.leases import Lease, lane_lease, session_lease
from segue.core.sessions import Session, standing
from segue.ports.store import Transaction
from segue.sessions.backgrounding import has_keeper
from segue.sessions.finding import find_tip, get_id, get_session
from segue.sessions.leasing import IsGone, is_held, release, take_lease
from segue.sessions.minding import Hand, check_free
from segue.sessions.starting import end_session
from segue.sessions.turning import close_left_turn

ENDED = "user_request"
GIVEN_UP = "Its answer was cut off, and its conversation was ended at the console."


def end_on_request(tx: Transaction, wanted: str, now: float, hand: Hand) -> Session:
    """End the open session that an id or a title means. An answer that was cut off in it is given up.

    If it is the one of a lane, the next message there begins another.
    """
    session = get_session(tx, find_tip(tx, get_id(tx, wanted)))
    if not session.is_open:
        raise WrongState(f"Session {session.id} is not open ({standing(session)}).")
    taken = seize(tx, session, hand)
    close_left_turn(tx, session.id, now)
    if lane := tx.lanes.find_by_session(session.id):
        cut_off = tx.inbox.running(lane.key)
        tx.inbox.change(cut_off, state=str(InboxState.DEAD), reason=GIVEN_UP, ended_at=now)
    end_session(tx, session.id, ENDED, now)
    for lease in taken:
        release(tx, lease)
    return get_session(tx, session.id)


def seize(tx: Transaction, session: Session, hand: Hand) -> list[Lease]:
    """Take the right to a session and to the lane it is open in; whoever has it is named."""
    lane = tx.lanes.find_by_session(session.id)
    if lane is not None:
        check_free(tx, lane, hand.is_gone)
    names = [*([lane_lease(lane.key)] if lane is not None else []), session_lease(session.id)]
    return [take_lease(tx, name, hand.run_id, session.principal, hand.is_gone) for name in names]


def is_in_use(tx: Transaction, session: Session, is_gone: IsGone) -> bool:
    """True if somebody works in a session or its lane, a message waits there, or a process that it started runs."""
    lane = tx.lanes.find_by_session(session.id)
    names = [session_lease(session.id), *([lane_lease(lane.key)] if lane is not None else [])]
    if any(is_held(tx, name, is_gone) for name in names):
        return True
    if lane is not None and any(tx.inbox.standing(lane.key)):
        return True
    own = (one for one in tx.processes.of(session.id) if one.state == ProcessState.RUNNING)
    return any(has_keeper(tx, one, is_gone) for one in own)
