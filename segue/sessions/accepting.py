"""A message arrives: it is put down, once, with how far its platform has been read. Only then is it confirmed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from segue.core.inbound import ORIGINAL, Cursor, Inbound
from segue.core.inbox import Entry, InboxState, Want, chat_of, entry_of
from segue.core.keys import API, KeyRules, Task, build_key, is_isolated, place_of
from segue.core.lifecycle import Lane
from segue.core.principals import onlookers_at, principal_of, scope_in
from segue.core.queueing import Drop, Interrupt, MakeRoom, QueueRules, Refuse, Steer, admit
from segue.core.routes import as_last_seen
from segue.core.sources import SessionSource, kept_id, kept_source
from segue.core.text import storable
from segue.ports.store import Transaction
from segue.sessions.queueing import rules_in

OVERTAKEN = "A newer message took its place."
TOO_MANY = LEFT_OUT = "Too many messages were waiting."
SUMMARISED = "Too many messages were waiting; the next answer is told of it in short."
EDITED = "It was edited before it was answered."
DELETED = "It was deleted before it was answered."
STOPPED_BY = "It was stopped by message {}."


class Accepted(NamedTuple):
    """What became of a message."""

    entry: Entry
    is_new: bool
    is_steering: bool = False
    """Whether the turn that runs should hear it."""
    is_ending: bool = False
    """Whether the turn that runs should end for it."""
    cancelled: tuple[Entry, ...] = ()
    """What was cancelled for it."""
    is_shown: bool = False
    """True if people are shown it in the chat of its lane, because a program says it."""

    @property
    def is_refused(self) -> bool:
        return self.entry.state == InboxState.REFUSED


def with_route_known(tx: Transaction, inbound: Inbound) -> Inbound:
    """A message with what is known of where its answer goes: by its id alone no room is told from a person."""
    route = inbound.route
    if route is None:
        return inbound
    last = tx.inbox.last_from(route.platform, route.account or "", storable(chat_of(route)))
    return inbound._replace(route=as_last_seen(route, last.source if last else None))


def entry_in_lane(inbound: Inbound, keys: KeyRules, agent: str, want: Want, now: float) -> Entry:
    """A message as it is put down in its lane; what runs by itself gives no commands."""
    place = place_of(inbound.source, keys, inbound.agent or agent)
    person = inbound.principal or principal_of(inbound.source, keys)
    key, scope = build_key(place), scope_in(place, person, onlookers_at(inbound.route, keys, place.agent))
    entry = entry_of(inbound, key, scope.principal, scope.room or "", person, now)
    if is_isolated(key) or (isinstance(place, Task) and place.kind == API and want == Want.PLAIN):
        return entry._replace(want=Want.QUEUED)  # each is answered by itself
    return entry._replace(want=want if inbound.is_person else Want.PLAIN)


def entry_in_named_lane(entry: Entry, lane: Lane) -> Entry:
    """A message that is said in another lane than that of where it comes from: it belongs to whom the lane belongs."""
    return entry._replace(lane_key=lane.key, principal=lane.principal, audience=lane.audience)


def accept(
    tx: Transaction,
    entry: Entry,
    rules: QueueRules,
    cursor: Cursor | None = None,
    is_clearing: bool = False,
    is_steering: bool = False,
    *,
    is_offered: bool = False,
    is_asking: Callable[[Entry], bool] = lambda _: False,
) -> Accepted:
    """Put a message down, in the transaction that moves the platform's cursor. A second time it changes nothing.

    What clears a lane also cancels the commands in it that are `is_asking`; the others are still carried out.
    What was only offered is not put down when it is refused: whoever has it brings it again.
    """
    if cursor is not None:
        tx.inbox.move_cursor(entry.platform, entry.account, cursor.name, cursor.value)
    standing, earlier = tx.inbox.standing(entry.lane_key), _versions_waiting(tx, entry)
    others = 0 if earlier else standing.waiting  # what takes the place of another needs no room
    is_busy = standing.running > 0
    rules = rules_in(tx, entry.lane_key, rules) if is_busy else rules
    if is_offered:  # whoever brings it can bring it again, and need not take the place of another
        rules = rules._replace(drop=Drop.NEW)
    admission = admit(rules, others, Want(entry.want), is_busy=is_busy)
    if isinstance(admission, Refuse):
        entry = entry._replace(state=InboxState.REFUSED, reason=TOO_MANY, ended_at=entry.admitted_at)
        if is_offered:
            return Accepted(entry, is_new=not any(one.edit == entry.edit for one in tx.inbox.named(entry)))
    number = tx.inbox.add(entry)
    if number is None:
        return Accepted(entry, is_new=False)
    entry = entry._replace(id=number)
    cancelled = cancel(tx, earlier, EDITED, entry.admitted_at)
    if is_clearing:
        cancelled += cancel(tx, _earlier(tx, entry, is_asking), cancelled_by(entry), entry.admitted_at)
    match admission:
        case Interrupt():
            cancelled += _overtaken(tx, entry)
        case MakeRoom(dropped):
            cancelled += _dropped(tx, entry, dropped, rules.drop)
    is_heard = (
        is_steering or isinstance(admission, Steer) or (isinstance(admission, MakeRoom) and admission.is_steering)
    )
    is_ending = is_clearing or isinstance(admission, Interrupt)
    return Accepted(entry, True, is_heard, is_ending, tuple(cancelled))


def cancel(tx: Transaction, entries: Sequence[Entry], reason: str, now: float) -> list[Entry]:
    """Nobody answers these any more."""
    tx.inbox.change(entries, state=str(InboxState.CANCELLED), reason=reason, ended_at=now)
    return [entry._replace(state=InboxState.CANCELLED, reason=reason, ended_at=now) for entry in entries]


def _versions_waiting(tx: Transaction, entry: Entry) -> list[Entry]:
    """What still waits of a message, and is replaced by its newest version."""
    if entry.edit == ORIGINAL:
        return []
    waiting = [one for one in tx.inbox.named(entry) if one.state == InboxState.WAITING]
    return [one for one in waiting if one.person == entry.person]  # nobody edits what another has said


def withdraw(tx: Transaction, source: SessionSource, message_id: str, now: float) -> int:
    """Answer what somebody has deleted no more, if nobody has begun to; how many versions of it waited."""
    source = kept_source(source)
    where = (source.platform, source.account or "", chat_of(source), kept_id(message_id))
    waiting = [one for one in tx.inbox.of_message(*where) if one.state == InboxState.WAITING]
    return len(cancel(tx, waiting, DELETED, now))


def cancelled_by(entry: Entry) -> str:
    """Why what waited before a command is not answered."""
    return f"It was cancelled by message {entry.id}."


def stopped_by(entry: Entry) -> str:
    """Why a turn that ran when a command came was stopped."""
    return STOPPED_BY.format(entry.id)


def _earlier(tx: Transaction, entry: Entry, is_asking: Callable[[Entry], bool]) -> list[Entry]:
    """What waits for an answer before a message."""
    waiting = [one for one in tx.inbox.waiting(entry.lane_key) if one.id < entry.id]
    return [one for one in waiting if one.want != Want.COMMAND or is_asking(one)]


def _plain_before(tx: Transaction, entry: Entry) -> list[Entry]:
    return [one for one in tx.inbox.waiting(entry.lane_key) if one.id < entry.id and one.want == Want.PLAIN]


def _overtaken(tx: Transaction, entry: Entry) -> list[Entry]:
    return cancel(tx, _plain_before(tx, entry), OVERTAKEN, entry.admitted_at)


def _dropped(tx: Transaction, entry: Entry, dropped: int, drop: Drop) -> list[Entry]:
    """The oldest that can go; what they said is passed on when the rule says so."""
    reason = LEFT_OUT if drop is Drop.OLD else SUMMARISED
    return cancel(tx, _plain_before(tx, entry)[:dropped], reason, entry.admitted_at)
