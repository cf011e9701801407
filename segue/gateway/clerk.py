"""Carries commands out that are given in lanes: in their turn, or at once when they only read."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from segue.agent.door import Door
from segue.core.commands import Command, Unknown
from segue.core.errors import InUse, LeaseLost, SegueError, StoreError
from segue.core.inbox import Entry, Want
from segue.core.keys import KeyRules, parse_key
from segue.core.lifecycle import Lane
from segue.core.messages import Spot
from segue.core.preferences import Preferences, decode
from segue.core.queueing import QueueRules
from segue.core.reading import Reading
from segue.core.scope import OWNER, Scope
from segue.core.sessions import Session
from segue.gateway.at_work import logged_for
from segue.gateway.holding import LaneHolder
from segue.hookspecs import Tell, nobody
from segue.ports.store import Transaction
from segue.sessions.answering import House, admitted_to, is_waiting
from segue.sessions.commanding.acts import Answer, Compress, Offer, Redone, Restart, Situation, Undone
from segue.sessions.commanding.helping import unknown
from segue.sessions.lane_commands import Errand, carry_out, finish, refuse, refuse_while_answering
from segue.sessions.lane_status import LaneStatus, lane_status
from segue.sessions.leasing import hold

_log = logging.getLogger(__name__)

AT_ONCE = frozenset({"status", "help", "sessions", "search", "history", "usage", "context", "stop", "queue"})
"""Commands that need not wait until an answer has been written."""
ABOUT_MODELS = frozenset({"new", "model"})
"""Commands for which it has to be known which models there are."""
MOST_REMEMBERED = 1_000
"""People in lanes."""
EVERYWHERE = frozenset({"sethome", "handoff"})
"""Commands of owners that are about other places than the one in which they are given."""


Told = Callable[[Transaction, str], None]
"""Puts down what a person is told."""


def _no_parts(_lane: Lane, _session: Session) -> Sequence[tuple[str, int]]:
    return ()


def _usual_queue(_platform: str) -> QueueRules:
    return QueueRules()


async def _known_already() -> None: ...


@dataclass(frozen=True, slots=True)
class Means:
    """What commands need of the world."""

    read: Callable[[Entry], Reading]
    """What a message means."""
    situation: Callable[[Scope, str, Preferences], Situation]
    """Where and when it is given, and which agent answers there by which choices."""
    compress: Callable[[LaneHolder, Entry, str, Told], Awaitable[str]]
    """Go on from a summary; what the person is told, and that they are, in the transaction that does it."""
    restart: Callable[[], None]
    stop_suspends: bool = False
    queue: Callable[[str], QueueRules] = _usual_queue
    """Of a platform."""
    parts: Callable[[Lane, Session], Sequence[tuple[str, int]]] = _no_parts
    """The tools that a session is answered with, and how many characters a model is told of each."""
    until_known: Callable[[], Awaitable[None]] = _known_already
    """Waits until it is known which models there are: no transaction may wait for that."""


@dataclass(slots=True)
class _Memory:
    """What a lane was shown and had taken back last; gone with the process."""

    listed: tuple[str, ...] = ()
    undone: list[tuple[Spot, ...]] = field(default_factory=list)


class _Cancelled(SegueError):
    """What was being done is not wanted any more: nothing of it is kept."""


class Clerk:
    def __init__(self, door: Door, house: House, keys: KeyRules, means: Means, tell: Tell = nobody) -> None:
        self._door = door
        self._house = house
        self._keys = keys
        self._means = means
        self._tell = tell
        self._memories: dict[tuple[str, str], _Memory] = {}

    def is_at_once(self, entry: Entry) -> bool:
        command = self._means.read(entry).command
        return isinstance(command, Unknown) or (isinstance(command, Command) and command.name in AT_ONCE)

    def is_clearing(self, entry: Entry) -> bool:
        """Whether nothing before a message should be answered any more."""
        return entry.want == Want.COMMAND and self._means.read(entry).is_clearing

    async def carry_out(self, holder: LaneHolder | None, entry: Entry) -> None:
        """Do what a message says that is a command; its sender is told what came of it."""
        command = self._means.read(entry).command
        if not isinstance(command, Command):
            sentence = unknown(command) if command else "This is no command."
            await self._refuse(holder, entry, sentence)
            return
        if command.name in ABOUT_MODELS:
            await self._means.until_known()
        scope = admitted_to(entry).scope
        errand = Errand(entry, command, self._means.stop_suspends)
        situated = partial(self._situated, holder, entry, scope)
        is_everywhere = command.name in EVERYWHERE and entry.person == OWNER
        door = self._door if is_everywhere else self._door.under(scope)
        try:
            carried = await door.write(carry_out, errand, self._house, situated)
        except (StoreError, LeaseLost):
            raise  # it is carried out later, or by whoever has the lane now
        except SegueError as error:
            await self._refuse(holder, entry, _message_for(entry, error))
            return
        if carried is not None:
            for fact in carried.facts:
                self._tell(fact)
            await self._follow(holder, entry, carried.answer)

    def _situated(
        self, holder: LaneHolder | None, entry: Entry, scope: Scope, tx: Transaction, lane: Lane | None
    ) -> Situation:
        if holder is not None:
            hold(tx, holder.lease)
        memory = self._memory(entry)

        def claim(tx: Transaction, session_id: str) -> None:
            refuse_while_answering(tx, session_id)
            if holder is not None:
                holder.claim(tx, session_id, scope.principal)

        session = tx.sessions.find(lane.session_id) if lane and lane.session_id else None
        chosen = decode(session.model_config if session else None)
        agent = session.agent if session else parse_key(entry.lane_key, self._keys.main_key).agent
        situation = self._means.situation(scope, agent, chosen)
        return situation._replace(
            parts=self._means.parts(lane, session) if lane and session else situation.parts,
            session_id=lane.session_id if lane else None,
            source=entry.platform,
            route=entry.source,
            keys=self._keys,
            is_for_owner_alone=entry.is_for_owner_alone,
            listed=memory.listed,
            undone=memory.undone[-1] if memory.undone else (),
            waiting=tx.inbox.standing(entry.lane_key).waiting - 1,
            lane=self._status(tx, lane, entry),
            claim=claim,
        )

    def _status(self, tx: Transaction, lane: Lane | None, entry: Entry) -> LaneStatus:
        mode = self._means.queue(entry.platform).mode
        return lane_status(tx, lane, entry, self._house.rules, self._house.posting, mode)

    async def _follow(self, holder: LaneHolder | None, entry: Entry, answer: Answer) -> None:
        memory = self._memory(entry)
        match answer.act:
            case Offer(session_ids):
                memory.listed = session_ids
            case Undone(spots):
                memory.undone.append(spots)
            case Redone():
                memory.undone.pop()
            case Compress(focus) if holder is not None:
                await self._door.write(self._finish, entry, await self._compressed(holder, entry, focus))
            case Restart():
                self._means.restart()
        if holder is not None:
            await holder.now_holds(holder.lease)

    async def _refuse(self, holder: LaneHolder | None, entry: Entry, sentence: str) -> None:
        await self._door.write(self._refused, holder, entry, sentence)

    def _refused(self, tx: Transaction, holder: LaneHolder | None, entry: Entry, sentence: str) -> None:
        if holder is not None:
            hold(tx, holder.lease)
        refuse(tx, entry, self._house, sentence, time.time())

    async def _compressed(self, holder: LaneHolder, entry: Entry, focus: str) -> str:
        try:
            return await self._means.compress(holder, entry, focus, partial(self._done_unless_cancelled, entry))
        except _Cancelled:
            return ""  # whoever cancelled it was told
        except (StoreError, InUse):
            raise  # it still waits, and is tried again
        except SegueError as error:
            return _message_for(entry, error)
        except Exception:  # noqa: BLE001 - of a model anything may come, and it must not be tried for ever
            with logged_for(entry.lane_key, entry.session_id):
                _log.exception("Compression failed; the conversation stays as it is, and its sender was told")
            return "The conversation could not be compressed; it stays as it is."

    def _done_unless_cancelled(self, entry: Entry, tx: Transaction, told: str) -> None:
        if not is_waiting(tx, entry):
            raise _Cancelled
        self._finish(tx, entry, told)

    def _finish(self, tx: Transaction, entry: Entry, told: str) -> None:
        finish(tx, entry, self._house, told, time.time())

    def _memory(self, entry: Entry) -> _Memory:
        """Of whoever gives a command where they give it; those who gave none for longest are forgotten."""
        name = (entry.lane_key, entry.person)
        memory = self._memories[name] = self._memories.pop(name, _Memory())
        if len(self._memories) > MOST_REMEMBERED:
            del self._memories[next(iter(self._memories))]
        return memory


def _message_for(entry: Entry, error: SegueError) -> str:
    """Return the message of an error, without its details for people who are not owners."""
    return error.in_chat if entry.is_for_owner_alone else error.public
