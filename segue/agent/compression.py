"""A conversation that becomes too long for its model goes on in a child session, before the model is asked again.

First old tool results are cut down in what the model is shown. If that is not enough, the agent may write down what it
wants to remember, what was said first is summarised, and the rest is read through from where it is. The last step is
one transaction: a program that is killed on the way has compressed, or it has not.
"""

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from segue.agent.door import Door
from segue.agent.footing import Footing
from segue.agent.holding import Holds
from segue.agent.remembering import readable, remember
from segue.agent.summarising import Summariser, Summary
from segue.core.compaction import Need, Plan, continued, plan, turns_kept_on_request
from segue.core.events import Compressed, Event, Note, Reply
from segue.core.leases import Lease
from segue.core.messages import Said, draft
from segue.core.pruning import Rules
from segue.core.sessions import Session
from segue.core.silence import FLUSH_REQUEST, is_silent
from segue.core.sizes import UNKNOWN_WINDOW, tokens_of_all, tokens_of_rest
from segue.core.turns import FLUSH, Turn, TurnState
from segue.core.usage import Purpose
from segue.ports.agent import Agent, Task
from segue.ports.failpoints import Point, reached
from segue.ports.store import Transaction
from segue.sessions import compressing
from segue.sessions.leasing import hold
from segue.sessions.reading import Placed, placed_view, view_of
from segue.sessions.recording import add_usage

_SHARE_OF_TAIL = 0.5
_SHARE_OF_SUMMARY = 0.1
_LEAST_SUMMARY, _MOST_SUMMARY = 200, 4_000
_LEAST_TAIL = 200
_LONG = "This conversation is getting long: what was said first is summarised."

Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Means:
    """What a compression needs of the world."""

    summariser: Callable[[], Awaitable[Summariser]]
    new_session_id: Callable[[], str]
    can_flush: Callable[[], bool]
    rules: Rules


class Wish(NamedTuple):
    """How a conversation is to be compressed."""

    need: Need
    kept_turns: int
    focus: str = ""


Ending = Callable[[Transaction, Compressed], None]
"""What else is done in the transaction that goes on in a child."""


def nothing_else(_tx: Transaction, _compressed: Compressed) -> None: ...


class Compression:
    """Makes the conversations of one place shorter."""

    def __init__(self, door: Door, holder: Holds, means: Means) -> None:
        self._door = door
        self._holder = holder
        self._means = means

    @property
    def rules(self) -> Rules:
        return self._means.rules

    async def make_room(
        self, footing: Footing, need: Need, task: Task, agent: Agent, emit: Emit
    ) -> Sequence[Said] | None:
        """Let the conversation of a turn fit; what it is then, or nothing when it cannot be made shorter."""
        session_id = footing.turn.session_id
        before = tokens_of_all(await self._door.read(view_of, session_id))
        pruned = await self._door.write(self._prune, footing.lease, session_id, need.window)
        view = await self._door.read(view_of, session_id)
        if pruned and self._fits(view, need):
            return view
        if not need.is_urgent:
            await self.flush(footing.lease, task._replace(session_id=session_id, view=view), need, agent, emit)
        done = await self.compress(footing.lease, session_id, Wish(need, self.rules.kept_turns), emit, footing.turn)
        if done is not None:
            footing.lease, footing.turn = done.lease, done.turn or footing.turn
        shorter = await self._door.read(view_of, footing.turn.session_id)
        return shorter if tokens_of_all(shorter) < before else None

    async def compress_on_request(
        self, lease: Lease, session: Session, focus: str, emit: Emit, ending: Ending = nothing_else
    ) -> "_Done | None":
        """Go on in a child because somebody asked for it; nothing when there is nothing to be summarised."""
        view = await self._door.read(view_of, session.id)
        wish = Wish(need_of(session), turns_kept_on_request(view, self.rules.kept_turns), focus)
        return await self.compress(lease, session.id, wish, emit, ending=ending)

    async def compress(
        self,
        lease: Lease,
        session_id: str,
        wish: Wish,
        emit: Emit,
        turn: Turn | None = None,
        ending: Ending = nothing_else,
    ) -> "_Done | None":
        """Go on in a child; nothing when there is nothing to be summarised."""
        view = await self._door.read(placed_view, session_id)
        summary_tokens, tail_tokens = _budgets(wish.need, self.rules.threshold)
        made = plan([one.said for one in view], tail_tokens, wish.kept_turns)
        if made is None:
            await self._door.write(self._squeeze, lease, session_id, 0, tail_tokens)
            return None
        emit(Note(_LONG, _LONG))
        reached(Point.BEFORE_SUMMARY)
        summariser = await self._means.summariser()
        summary = await summariser.summarise(made.summary, made.told, summary_tokens, wish.focus)
        if summary.trouble:
            emit(Note(f"No model summarised it ({summary.trouble}): the summary is what was said, in short."))
        reached(Point.BEFORE_COMPRESSION)
        child_id = self._means.new_session_id()
        done = await self._door.write(
            self._committed, lease, session_id, view, made, summary, tail_tokens, child_id, turn, ending
        )
        await self._holder.now_holds(done.lease)
        reached(Point.AFTER_COMPRESSION)
        emit(Compressed(done.session.id, done.session.title))
        return done

    def _committed(
        self,
        tx: Transaction,
        lease: Lease,
        session_id: str,
        view: Sequence[Placed],
        made: Plan,
        summary: Summary,
        tail_tokens: int,
        child_id: str,
        turn: Turn | None,
        ending: Ending,
    ) -> "_Done":
        hold(tx, lease)
        now = time.time()
        text = continued(summary.text, [one.said for one in view], made.kept)
        child = compressing.compress_session(
            tx,
            session_id,
            child_id=child_id,
            summary=draft("user", text, now),
            kept=compressing.kept_from(view, len(made.kept)),
            now=now,
        )
        for reply in summary.replies:
            add_usage(tx, child_id, reply.usage, reply.billing, now, Purpose.SUMMARY)
        compressing.squeeze_results(tx, child_id, 1, tail_tokens)
        moved = compressing.move_turn(tx, turn, child) if turn else None
        ending(tx, Compressed(child.id, child.title))
        return _Done(child, self._holder.claim(tx, child_id, child.principal), moved)

    def _prune(self, tx: Transaction, lease: Lease, session_id: str, window: int) -> int:
        hold(tx, lease)
        return compressing.prune_results(tx, session_id, window, self.rules.pruning)

    def _squeeze(self, tx: Transaction, lease: Lease, session_id: str, first: int, most_tokens: int) -> int:
        hold(tx, lease)
        return compressing.squeeze_results(tx, session_id, first, most_tokens)

    def _fits(self, view: Sequence[Said], need: Need) -> bool:
        return tokens_of_all(view) + need.rest <= need.window * self.rules.threshold

    # Writing down what is to be remembered

    async def flush(self, lease: Lease, task: Task, need: Need, agent: Agent, emit: Emit) -> None:
        """Ask the agent once, silently, to save what it wants to remember: soon it will not be told of it any more."""
        view, now = readable(task.view, need, FLUSH_REQUEST), time.time()
        if not self._means.can_flush() or not view:
            return
        turn = Turn(uuid.uuid4().hex, task.session_id, lease.owner, TurnState.DONE, 1, 0, now, kind=FLUSH)
        if not await self._door.write(compressing.begin_flush, lease, turn):
            return
        reached(Point.AFTER_FLUSH_BEGINS)
        remembered = await remember(agent, task._replace(view=view), FLUSH_REQUEST)
        if remembered.trouble:
            emit(Note(f"Nothing was written down before it is summarised: {remembered.trouble}"))
        await self._door.write(_flushed, lease, turn, remembered.replies)
        if remembered.replies and not is_silent(remembered.replies[-1].text):
            emit(Note(remembered.replies[-1].text))


class _Done(NamedTuple):
    session: Session
    lease: Lease
    turn: Turn | None


def need_of(session: Session) -> Need:
    """For what a conversation is made shorter in which no model is being asked."""
    return Need(session.context_window or UNKNOWN_WINDOW, tokens_of_rest(session.system_prompt or "", []))


def _flushed(tx: Transaction, lease: Lease, turn: Turn, replies: Sequence[Reply]) -> None:
    hold(tx, lease)
    now = time.time()
    tx.turns.change(turn.id, ended_at=now)
    for reply in replies:
        add_usage(tx, turn.session_id, reply.usage, reply.billing, now, Purpose.FLUSH)


def _budgets(need: Need, threshold: float) -> tuple[int, int]:
    """How many tokens a summary may have, and what stays word for word."""
    summary = min(max(int(need.window * _SHARE_OF_SUMMARY), _LEAST_SUMMARY), _MOST_SUMMARY)
    room = int(need.window * threshold) - need.rest - 2 * summary
    return summary, max(min(int(need.window * _SHARE_OF_TAIL), room), _LEAST_TAIL)
