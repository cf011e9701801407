"""A conversation that outgrew its session goes on in a child: one summary in, nothing copied."""

from typing import NamedTuple

from segue.core.errors import InvalidSession
from segue.core.messages import SUMMARY_SEQ, Draft, State
from segue.core.sessions import COMPRESSION, Session, as_child
from segue.ports.store import Transaction
from segue.sessions.finding import find_successor, get_session
from segue.sessions.starting import insert_session
from segue.sessions.titling import free_title


class Kept(NamedTuple):
    """The first message that stays word for word."""

    session_id: str
    seq: int


def compress_session(
    tx: Transaction, session_id: str, *, child_id: str, summary: Draft, kept: Kept | None, now: float
) -> Session:
    """End a session with `compression` and continue in a child that begins with the summary. One winner among many."""
    parent = get_session(tx, session_id)
    if tx.sessions.children([session_id]):
        raise InvalidSession(f"Session {session_id} was compressed already.")
    tx.sessions.change(session_id, ended_at=now, end_reason=COMPRESSION)
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
