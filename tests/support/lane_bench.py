"""The use cases of a gateway, one transaction after another and without a clock: whoever drives them decides both."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.crash_recovery import is_given_up
from segue.core.errors import LeaseLost
from segue.core.events import Reply, ToolCall, ToolFinished
from segue.core.inbound import Inbound
from segue.core.inbox import Entry, Want
from segue.core.keys import KeyRules
from segue.core.leases import Lease, Run
from segue.core.messages import draft
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.queueing import Drop, QueueMode, QueueRules
from segue.core.reading import read
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import Turn, TurnState
from segue.gateway.answering import CRASHED, STALE
from segue.gateway.clerk import Clerk, Means, Told
from segue.gateway.holding import LaneHolder, take_lane
from segue.ports.store import Store, Transaction
from segue.sessions import compressing, turning
from segue.sessions.accepting import Accepted, stopped_by
from segue.sessions.admitting import Routing, admit_all
from segue.sessions.answering import Batch, House, begin_answer, bury_answer, end_answer, take_up_answer
from segue.sessions.commanding.acts import Situation
from segue.sessions.delivering import Posting
from segue.sessions.leasing import begin_run, hold
from segue.sessions.opening import Rules
from segue.sessions.queueing import AnswerThese, Carry, CutOff, Due, next_due
from segue.sessions.reading import placed_view
from segue.sessions.recovering import interrupt_left
from segue.sessions.turning import LastReply, Outcome

P = ParamSpec("P")
T = TypeVar("T")


class StraightDoor(Door):
    """To the store without a thread: nothing is ever waited for."""

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.store.write(self.scope, work, *args, **kwargs)

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.store.read(self.scope, work, *args, **kwargs)


def straight(work: "Coroutine[Any, Any, T]") -> T:
    """What comes of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("It waits for something.")


@dataclass
class Doing:
    """A turn at work, as the process knows it."""

    lease: Lease
    turn: Turn


@dataclass
class Bench:
    """A gateway whose lives, turns and moments are in the hands of a test."""

    store: Store
    mode: str
    drop: str
    cap: int
    stop_suspends: bool
    idle: float
    freshness: float
    is_greeting: bool = False
    fresh: str = ""
    """The name of the session that the next thing begins, if it begins one."""
    now: float = 1_750_000_000.0
    lives: int = 0
    turns: int = 0
    doing: dict[str, Doing] = field(default_factory=dict)
    left: list[tuple[str, Doing]] = field(default_factory=list)
    """Turns of lives that are over."""
    holders: dict[str, LaneHolder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy = ResetPolicy(ResetMode.IDLE, idle=timedelta(seconds=self.idle))
        rules = Rules(KeyRules(), ResetPolicies(policy), timedelta(seconds=self.freshness))
        self.door = StraightDoor(self.store, OWNER)
        self.queue = QueueRules(QueueMode(self.mode), timedelta(0), self.cap, Drop(self.drop))
        self.house = House(rules, Posting(lambda _platform, _account: None), lambda _tx, _opened, _earlier: "Be brief.")
        self.routing = Routing(
            rules.keys,
            lambda _: None,
            lambda _: self.queue,
            lambda _: "main",
            lambda inbound: read(inbound.text),
            self.house.posting,
        )
        self.live()

    def close(self) -> None:
        self.door.close()

    # Lives

    def live(self) -> None:
        """A new process, after whatever became of the last one."""
        self.lives += 1
        run = Run(f"life-{self.lives}", "segue gateway", "here", "boot", self.lives, "1", self.now, self.now)
        self.presence = Presence(self.door, run, lambda other: other.id != run.id)
        means = Means(
            lambda entry: read(entry.text),
            self._situation,
            _uncompressed,
            _unmoved,
            self.stop_suspends,
            lambda _: self.queue,
        )
        self.clerk = Clerk(self.door, self.house, self.house.rules.keys, means)
        self.write(begin_run, run)
        self.write(interrupt_left, self.presence.is_gone, self.now)

    def crash(self) -> None:
        self.left += self.doing.items()
        self.doing, self.holders = {}, {}
        self.live()

    def write(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return self.store.write(OWNER, work, *arguments, **named)

    def _situation(self, _scope: object, _agent: str, _chosen: object) -> Situation:
        said = Situation(None, self.now, UTC, self.fresh, model="scripted")
        return said._replace(greets=lambda _: self.is_greeting)

    # Arriving

    def arrive(self, inbound: Inbound) -> Accepted:
        """Put a message down; the turn that runs ends for it, and what only reads is told beside it."""
        (accepted,) = self.write(admit_all, [(inbound, self.now)], self.routing)
        assert isinstance(accepted, Accepted)
        entry = accepted.entry
        was_busy = accepted.is_new and entry.lane_key in self.doing
        if was_busy and accepted.is_ending:
            self.end(entry.lane_key, TurnState.STOPPED, reason=stopped_by(entry))
        if was_busy and entry.want == Want.COMMAND and self.clerk.is_at_once(entry):
            self.carry_out(None, entry)
        return accepted

    # Working

    def due(self, lane: str) -> Due:
        if lane not in self.holders:
            lease = self.write(take_lane, lane, self.presence.run.id, self.presence.is_gone)
            self.holders[lane] = LaneHolder(self.presence, lease)
        return self.store.read(OWNER, next_due, lane, lambda _: self.queue)

    def work(self, lane: str, due: Due) -> None:
        """Do the next thing in a lane; a turn stays open until somebody ends it."""
        holder = self.holders[lane]
        match due:
            case None:
                straight(self.holders.pop(lane).let_go())
            case CutOff():
                self._take_up(lane, due)
            case Carry(entry):
                self.carry_out(holder, entry)
            case AnswerThese(entries):
                self.turns += 1
                batch = Batch(entries, f"turn-{self.turns}", self.presence.run.id, self.fresh, self.now)
                begun = self.write(begin_answer, batch, self.house, holder.claim)
                if begun is None and entries[0].is_greeting:
                    return  # somebody has spoken meanwhile
                assert begun is not None, "nobody else takes what was found"
                straight(holder.now_holds(begun.lease))
                self.doing[lane] = Doing(begun.lease, begun.situation.turn)
            case _:
                raise AssertionError(f"Messages were forgotten: {due}")

    def carry_out(self, holder: LaneHolder | None, entry: Entry) -> None:
        straight(self.clerk.carry_out(holder, entry))

    def _take_up(self, lane: str, due: CutOff) -> None:
        holder, turn = self.holders[lane], due.turn
        if is_given_up(turn.blame):
            outcome = Outcome(turn, TurnState.FAILED, "", self.now, CRASHED)
            self.write(self._bury, holder, due, outcome)
        elif self.now - due.last_at <= self.freshness:
            begun = self.write(take_up_answer, due.lane, turn, self.presence.run.id, holder.claim)
            straight(holder.now_holds(begun.lease))
            self.doing[lane] = Doing(begun.lease, begun.situation.turn)
        else:
            self.write(turning.give_up_turn, holder.lease, turn, self.now, STALE, self._ending)

    def _bury(self, tx: Transaction, holder: LaneHolder, due: CutOff, outcome: Outcome) -> None:
        turning.end_turn(tx, holder.lease, outcome)
        bury_answer(tx, due.lane, outcome, self.house.posting)

    # Turns

    def say_between(self, lane: str, said: str, result: str) -> None:
        doing = self.doing[lane]
        call = ToolCall(f"call-{result}", "probe")
        self.write(turning.record_reply, doing.lease, doing.turn, None, Reply(said, (call,)), self.now)
        finished = ToolFinished(call, result)
        self.write(turning.record_result, doing.lease, doing.turn, None, finished, self.now)

    def end(self, lane: str, state: TurnState, text: str = "", reason: str | None = None) -> None:
        self._end(self.doing.pop(lane), state, text, reason)

    def is_refused_to_the_dead(self, doing: Doing) -> bool:
        """Whether a life that is over cannot end its turn any more."""
        try:
            self._end(doing, TurnState.DONE, "From the other side.", None)
        except LeaseLost:
            return True
        return False

    def _end(self, doing: Doing, state: TurnState, text: str, reason: str | None) -> None:
        last = LastReply(None, Reply(text)) if text else None
        outcome = Outcome(doing.turn, state, text, self.now, reason)
        self.write(turning.end_turn, doing.lease, outcome, last, self._ending)

    def _ending(self, tx: Transaction, outcome: Outcome) -> None:
        end_answer(tx, outcome, self.house.posting)

    def compress(self, lane: str, session_id: str, summary: str, kept: int) -> None:
        """Go on from a summary, in the middle of a turn or between two."""
        self.due(lane)
        holder, doing = self.holders[lane], self.doing.get(lane)
        moved = self.write(self._compressed, holder, session_id, summary, kept, doing.turn if doing else None)
        straight(holder.now_holds(holder.lease))
        if doing and moved:
            doing.turn = moved

    def _compressed(
        self, tx: Transaction, holder: LaneHolder, session_id: str, summary: str, kept: int, turn: Turn | None
    ) -> Turn | None:
        hold(tx, holder.lease)
        first = compressing.kept_from(placed_view(tx, session_id), kept)
        told = draft("user", summary, self.now)
        child = compressing.compress_session(
            tx, session_id, child_id=self.fresh, summary=told, kept=first, now=self.now
        )
        holder.claim(tx, child.id, child.principal)
        return compressing.move_turn(tx, turn, child) if turn else None


async def _uncompressed(_holder: LaneHolder, _entry: Entry, _focus: str, _told: Told) -> str:
    raise AssertionError("Whoever drives compresses.")


def _unmoved() -> None: ...
