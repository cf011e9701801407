"""A command that was given in a lane, carried out once: done, told and crossed off in one transaction."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from segue.core import messages
from segue.core.commands import Command
from segue.core.errors import InUse
from segue.core.greeting import GREETING_ENTRY, is_greeted
from segue.core.inbox import Entry, InboxState, Want
from segue.core.keys import parse_key
from segue.core.lifecycle import Lane, Phase, Reset
from segue.core.moments import instant
from segue.core.outbox import What
from segue.core.policy import ResetReason
from segue.core.preferences import encode
from segue.core.scope import OWNER, Audience, Principal, Scope
from segue.core.text import count
from segue.core.turns import ANSWER, TurnState
from segue.hookspecs import Fact, SessionReset, SessionStarted
from segue.ports.store import ResetRow, Transaction
from segue.sessions.accepting import cancelled_by
from segue.sessions.answering import House, admitted_to, furnish, is_waiting
from segue.sessions.commanding import act
from segue.sessions.commanding.acts import Again, Answer, Begin, Compress, Situation, Stop, Switch
from segue.sessions.delegating import count_stopped
from segue.sessions.delivering import envelope_of, post
from segue.sessions.finding import get_session
from segue.sessions.lane_chat import show_command, show_speech
from segue.sessions.lane_status import count_processes
from segue.sessions.opening import Arrival, Opened, Rules, begin_session, new_lane, open_session, save_lane
from segue.sessions.rewinding import rewind_from
from segue.sessions.steering import adopt, suspend_lane

SWITCHED = "session_switch"
"""Why a lane has another session that somebody chose."""
NEED_A_SESSION = frozenset({"title", "model", "think", "verbose", "send", "queue"})
"""Commands whose outcome a session keeps: the first one in a lane begins it."""


class Errand(NamedTuple):
    """A command, and where it stands in the inbox."""

    entry: Entry
    command: Command
    is_suspending: bool = False
    """Whether `/stop` also ends the conversation."""


class Carried(NamedTuple):
    """What came of a command, and what others are told when it is in the database."""

    answer: Answer
    facts: tuple[Fact, ...] = ()


Furnish = Callable[[Transaction, Lane | None], Situation]
"""The situation in which a command is given."""


def carry_out(tx: Transaction, errand: Errand, house: House, situated: Furnish) -> Carried | None:
    """Do what a command says, unless that was done before. What cannot be done is raised, and nothing has changed."""
    entry, command = errand.entry, errand.command
    if not is_waiting(tx, entry):
        return None
    lane, facts = tx.lanes.find(entry.lane_key), list[Fact]()
    if command.name in NEED_A_SESSION and (lane is None or lane.session_id is None):
        lane = _begun(tx, entry, house, situated)
        facts.append(SessionStarted(lane.key, str(lane.session_id), lane.principal))
    situation = situated(tx, lane)
    answer = act(tx, command, situation)
    cancelled = _cancelled(tx, entry)
    told = _stopped(tx, lane, errand, cancelled) if isinstance(answer.act, Stop) else answer.text
    if cancelled and not isinstance(answer.act, Stop):
        told = _before_an_id(told, cancelled)
    match answer.act:
        case Begin(text=text):
            if lane is not None:
                facts.append(_begin(tx, lane, entry, answer.act, situation, house))
            if text is None and _is_greeted(entry, answer.act, situation):
                tx.inbox.change([entry], want=str(Want.QUEUED), text=GREETING_ENTRY, is_person=0)
            elif text is None:
                _done(tx, entry, situation.now)
            else:
                _said_instead(tx, entry, text)
        case Again(text=text, content=content, undo_from=spot):
            rewind_from(tx, str(situation.session_id), spot)
            _said_instead(tx, entry, text, content)
        case Switch(session_id):
            lane = _switch(tx, lane or _laid_out(entry, house, situation.now), session_id, situation.now)
            if session_id != situation.session_id:
                facts.append(_switched(tx, lane, session_id, situation))
            _done(tx, entry, situation.now)
        case Compress():
            pass  # whoever does it crosses it off when it is done
        case _:
            _done(tx, entry, situation.now)
    if command.name == "stop" and errand.is_suspending and lane is not None:
        suspend_lane(tx, lane.key, instant(situation.now))
    tell(tx, house, entry, told, situation.now)
    show_command(tx, house.posting, entry, command.name, told, situation.now)
    if isinstance(answer.act, Begin) and answer.act.text is not None:
        show_speech(tx, house.posting, entry._replace(text=answer.act.text), situation.now)
    return Carried(answer, tuple(facts))


def refuse(tx: Transaction, entry: Entry, house: House, sentence: str, now: float) -> None:
    """A command that could not be carried out: its sender is told why."""
    if is_waiting(tx, entry):
        _done(tx, entry, now)
        tell(tx, house, entry, sentence, now)


def finish(tx: Transaction, entry: Entry, house: House, told: str, now: float) -> None:
    """What a command began is done, and its sender is told: in the transaction that does it, or a second time."""
    if is_waiting(tx, entry):
        _done(tx, entry, now)
    tell(tx, house, entry, told, now)


def tell(tx: Transaction, house: House, entry: Entry, text: str, now: float) -> None:
    if text:
        post(tx, house.posting, envelope_of(entry, f"{entry.id}:answer", entry.session_id), text, What.ANSWER, now)


def refuse_while_answering(tx: Transaction, session_id: str) -> None:
    """Nobody goes over to a conversation in which an answer is being written."""
    if tx.turns.running_in(session_id) is not None:
        raise InUse("An answer is being written in that conversation; try again when it is there.")


def _begun(tx: Transaction, entry: Entry, house: House, situated: Furnish) -> Lane:
    fresh = situated(tx, None).new_session_id
    agent = parse_key(entry.lane_key, house.rules.keys.main_key).agent
    arrival = Arrival(entry.source, instant(entry.admitted_at), fresh, agent, admitted=admitted_to(entry))
    return furnish(tx, open_session(tx, arrival, _rules_for(entry, house)), house).lane


def _rules_for(entry: Entry, house: House) -> Rules:
    """The rules, with its sender as an owner if they are one: who was made so by pairing cannot be asked here."""
    source, keys = entry.source, house.rules.keys
    own = {f"{source.platform}:{source.peer}"} if entry.person == OWNER else set()
    return house.rules._replace(keys=replace(keys, owners=keys.owners | own))


def _begin(tx: Transaction, lane: Lane, entry: Entry, begin: Begin, situation: Situation, house: House) -> Fact:
    """A new session in the lane; the old one has been ended."""
    now, old = instant(situation.now), tx.sessions.find(begin.reset_from or "")
    lane = begin_session(
        tx, lane, situation.new_session_id, now, reset_from=begin.reset_from, agent=old.agent if old else "main"
    )
    had_activity = old is not None and old.message_count > 0
    row = ResetRow(
        lane.key, now, ResetReason.ASKED, entry.person, begin.reset_from, situation.new_session_id, had_activity
    )
    tx.lanes.add_reset(row)
    lane = save_lane(tx, lane._replace(updated_at=now, last_person_at=now, finalised_at=None))
    opened = Opened(lane, get_session(tx, situation.new_session_id), Reset(ResetReason.ASKED))
    furnish(tx, opened, house)
    tx.sessions.change(situation.new_session_id, model_config=encode(begin.preferences))
    if begin.reset_from is None:
        return SessionStarted(lane.key, situation.new_session_id, lane.principal)
    return SessionReset(lane.key, situation.new_session_id, lane.principal, begin.reset_from, ResetReason.ASKED)


def _laid_out(entry: Entry, house: House, now: float) -> Lane:
    """The lane of a command that is the first thing said in it."""
    place = parse_key(entry.lane_key, house.rules.keys.main_key)
    scope = Scope(Principal(entry.principal), Audience(entry.audience))
    return new_lane(place, entry.source, scope, instant(now))


def _switch(tx: Transaction, lane: Lane, session_id: str, now: float) -> Lane:
    """The lane goes on with another session, which belongs here now."""
    adopt(tx, get_session(tx, session_id), lane)
    active = lane._replace(phase=Phase.ACTIVE, phase_reason=None, phase_since=None, finalised_at=None)
    return save_lane(tx, active._replace(updated_at=instant(now), last_person_at=instant(now)))


def _switched(tx: Transaction, lane: Lane, session_id: str, situation: Situation) -> Fact:
    old = tx.sessions.find(situation.session_id or "")
    reason = old.end_reason if old and old.end_reason else SWITCHED
    return SessionReset(lane.key, session_id, lane.principal, old.id if old else None, reason)


def _said_instead(tx: Transaction, entry: Entry, text: str, content: Any = None) -> None:
    """What stands behind a command is answered like anything that somebody says, with all that is more than words."""
    parts = {"parts": messages.encode(content)} if isinstance(content, list) else {}
    tx.inbox.change([entry], want=str(Want.QUEUED), text=text, **parts)


def _done(tx: Transaction, entry: Entry, now: float) -> None:
    tx.inbox.change([entry], state=str(InboxState.DONE), ended_at=now)


def _is_greeted(entry: Entry, begin: Begin, situation: Situation) -> bool:
    is_welcome = is_greeted(entry.platform, begin.preferences, is_person=bool(entry.is_person))
    return is_welcome and situation.greets(begin.preferences)


def _stopped(tx: Transaction, lane: Lane | None, errand: Errand, cancelled: str) -> str:
    """What was stopped, what goes on all the same, and what comes next; nobody wonders whether they were heard."""
    stopped = _what_ran(tx, lane, errand.entry)
    running = count_processes(tx, lane)
    is_ended = errand.is_suspending and lane is not None and lane.session_id is not None
    sentences = (
        stopped if stopped or cancelled else "Nothing was being done.",
        cancelled,
        f"{count(running, 'background process')} still running." if running else "",
        "The next message begins a new conversation." if is_ended else "",
    )
    return " ".join(filter(None, sentences))


def _what_ran(tx: Transaction, lane: Lane | None, entry: Entry) -> str:
    if lane is None or lane.session_id is None:
        return ""
    if subagents := count_stopped(tx, lane.session_id, entry.admitted_at):
        return f"Stopped, with {count(subagents, 'subagent')}."
    turn = tx.turns.latest(lane.session_id, ANSWER)
    if turn is None:
        return ""
    has_stopped = turn.state == TurnState.STOPPED and (turn.ended_at or 0.0) >= entry.admitted_at
    return "Stopped." if has_stopped or turn.state == TurnState.RUNNING else ""  # which has been told to stop


def _before_an_id(said: str, more: str) -> str:
    """Put a sentence behind others, and before an id that stands on a line of its own."""
    sentences, _, identifier = said.partition("\n")
    return "\n".join(filter(None, (" ".join(filter(None, (sentences, more))), identifier)))


def _cancelled(tx: Transaction, entry: Entry) -> str:
    left_out = tx.inbox.left_out(entry.lane_key, cancelled_by(entry))
    cancelled = sum(not one.is_greeting for one in left_out)
    return f"{count(cancelled, 'waiting message')} cancelled." if cancelled else ""
