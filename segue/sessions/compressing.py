"""A conversation that outgrew its session goes on in a child: one summary in, nothing copied."""

from collections.abc import Sequence

from segue.core.compaction import Pruned, prunable, squeezed
from segue.core.errors import InvalidSession
from segue.core.leases import Lease
from segue.core.messages import SUMMARY_SEQ, Draft, Spot, State
from segue.core.pruning import Pruning
from segue.core.sessions import COMPRESSION, Session, as_child
from segue.core.turns import FLUSH, Turn
from segue.ports.store import Transaction
from segue.sessions.finding import find_successor, get_session
from segue.sessions.leasing import hold
from segue.sessions.reading import Placed, placed_view
from segue.sessions.starting import insert_session
from segue.sessions.titling import free_title


def compress_session(
    tx: Transaction, session_id: str, *, child_id: str, summary: Draft, kept: Spot | None, now: float
) -> Session:
    """End a session with `compression` and continue in a child that begins with the summary. One winner among many."""
    parent = get_session(tx, session_id)
    tx.sessions.change(session_id, ended_at=now, end_reason=COMPRESSION)  # first: whoever else does it waits here
    if tx.sessions.children([session_id]):
        raise InvalidSession(f"Session {session_id} was compressed already.")
    title = free_title(tx, parent.principal, parent.title) if parent.title else None
    fresh = parent._replace(
        id=child_id,
        started_at=now,
        ended_at=None,
        end_reason=None,
        last_active_at=now,
        kept_session_id=kept.session_id if kept else None,
        kept_seq=kept.seq if kept else None,
        message_count=1,
        tool_call_count=0,
        input_tokens=0,
        output_tokens=0,
        cache_read_tokens=0,
        cache_write_tokens=0,
        reasoning_tokens=0,
        api_call_count=0,
        estimated_cost_usd=None,
        actual_cost_usd=None,
        branched_from=None,
        reset_from=None,
        context_tokens=None,
    )
    child = as_child(fresh, parent, title, is_lane_free=find_successor(tx, parent) is None)
    insert_session(tx, child)
    tx.messages.insert(child_id, SUMMARY_SEQ, State.LIVE, summary)
    tx.sessions.tag(child_id, tx.sessions.tags([parent.id]).get(parent.id, []))
    return child


def prune_results(tx: Transaction, session_id: str, window: int, rules: Pruning) -> int:
    """Cut old tool results down in what a model is shown, when they take too much of its window; how many."""
    view = placed_view(tx, session_id)
    return _prune(tx, view, prunable([one.said for one in view], window, rules))


def squeeze_results(tx: Transaction, session_id: str, first: int, most_tokens: int) -> int:
    """Cut down the results that stay from a place of the view on, when they alone are more than may stay."""
    view = placed_view(tx, session_id)[first:]
    return _prune(tx, view, squeezed([one.said for one in view], most_tokens))


def _prune(tx: Transaction, view: Sequence[Placed], cuts: Sequence[Pruned]) -> int:
    for one in cuts:
        place = view[one.at]
        tx.messages.prune(place.session_id, place.said.seq, one.cut.noted)
    return len(cuts)


def kept_from(view: Sequence[Placed], kept: int) -> Spot | None:
    """The first of the last so many messages."""
    return Spot(view[-kept].session_id, view[-kept].said.seq) if kept else None


def move_turn(tx: Transaction, turn: Turn, child: Session) -> Turn:
    """Let a turn that runs go on in the child of its session."""
    moved = turn._replace(session_id=child.id, first_seq=SUMMARY_SEQ + 1)
    tx.turns.change(turn.id, session_id=moved.session_id, first_seq=moved.first_seq)
    return moved


def has_flushed(tx: Transaction, session_id: str) -> bool:
    """Whether the agent was asked to write down what it wants to remember, in this session."""
    return tx.turns.latest(session_id, FLUSH) is not None


def begin_flush(tx: Transaction, lease: Lease, turn: Turn) -> bool:
    """Note that the agent is asked now; False when it was asked before."""
    hold(tx, lease)
    if has_flushed(tx, turn.session_id):
        return False
    tx.turns.insert(turn)
    return True
