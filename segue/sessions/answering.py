"""What waits in a lane is answered: in which session, by which turn, and what is sent when that is over."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from segue.core.attachments import attachments_in
from segue.core.ids import SessionId
from segue.core.inbox import Entry, InboxState
from segue.core.keys import parse_key
from segue.core.leases import Lease
from segue.core.lifecycle import Lane, Reset, Start, Suspension
from segue.core.messages import Draft, draft
from segue.core.moments import instant
from segue.core.outbox import OutboxState, What
from segue.core.policy import ResetReason
from segue.core.preferences import Preferences, Succession, carried_over, decode, encode
from segue.core.queueing import left_out
from segue.core.scope import Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.silence import is_silent
from segue.core.situation import Earlier
from segue.core.streaming import balanced
from segue.core.text import one_line, shorten
from segue.core.turns import Turn, TurnState
from segue.ports.store import Transaction
from segue.sessions import turning
from segue.sessions.accepting import SUMMARISED
from segue.sessions.backgrounding import has_background_work
from segue.sessions.commanding.wording import way_back
from segue.sessions.delegating import end_left_subagents
from segue.sessions.delivering import Posting, draft_of, envelope_of, post
from segue.sessions.finalising import owe_farewell
from segue.sessions.lane_chat import show_answer
from segue.sessions.opening import Admitted, Arrival, Opened, Rules, open_session, policy_of
from segue.sessions.pairing import rules_with_owners
from segue.sessions.steering import complete_turn, suspend_lane
from segue.sessions.turning import Outcome, Situation

STOPPED = "(stopped)"
UNANSWERED = "(no answer)"
_NAME = 60
_WHY = {
    ResetReason.IDLE: "nobody wrote for a while",
    ResetReason.DAILY: "a new day begins",
    ResetReason.SUSPENDED: "the last one was stopped",
    ResetReason.CRASHED: "the gateway crashed repeatedly in the last one",
    ResetReason.ASKED: "you asked for it",
}
_SUCCESSION = {
    ResetReason.IDLE: Succession.IDLE,
    ResetReason.DAILY: Succession.DAILY,
    ResetReason.SUSPENDED: Succession.SUSPENDED,
    ResetReason.CRASHED: Succession.SUSPENDED,
    ResetReason.ASKED: Succession.NEW,
}

Claim = Callable[[Transaction, str, str], Lease]
"""Makes a session ours, in the transaction that goes on with it."""


class House(NamedTuple):
    """The rules by which lanes are answered."""

    rules: Rules
    posting: Posting
    prompt: Callable[[Transaction, Opened, Earlier | None], str]
    """What an agent is told when a session begins."""


class Batch(NamedTuple):
    """Messages that one turn answers."""

    entries: Sequence[Entry]
    turn_id: str
    run_id: str
    fresh_id: str
    now: float
    is_fresh: bool = False
    """Whether it has a new session, whatever the policy says."""


class Begun(NamedTuple):
    """A turn that is open."""

    opened: Opened
    lease: Lease
    situation: Situation
    preferences: Preferences


def begin_answer(tx: Transaction, batch: Batch, house: House, claim: Claim) -> Begun | None:
    """Find or make the session, store what was said, and note that somebody is about to answer: one transaction.

    Nothing begins when one of the messages was cancelled since they were chosen, nor when there is nobody to greet.
    """
    if not all(is_waiting(tx, entry) for entry in batch.entries):
        return None
    first = batch.entries[0]
    if first.is_greeting and len(tx.inbox.waiting(first.lane_key)) > 1:  # whoever speaks already is answered at once
        tx.inbox.change(batch.entries, state=str(InboxState.DONE), ended_at=batch.now)
        return None
    before = tx.lanes.find(first.lane_key)
    arrival = Arrival(
        source=first.source,
        admitted_at=instant(first.admitted_at),
        fresh_id=batch.fresh_id,
        agent=parse_key(first.lane_key, house.rules.keys.main_key).agent,
        busy=has_background_work(tx, before),
        force_new=batch.is_fresh,
        is_person=bool(first.is_person),
        route=None if first.route is None else first.destination,
        admitted=admitted_to(first),
    )
    opened = open_session(tx, arrival, _rules_now(tx, house))
    if isinstance(opened.decision, Start | Reset):
        owe_farewell(tx, before, opened, f"{batch.turn_id}-farewell", batch.run_id, batch.now)
    if isinstance(opened.decision, Start | Reset) or opened.session.system_prompt is None:
        opened = furnish(tx, opened, house)
        _tell_reset(tx, opened, first, house)
    lease = claim(tx, opened.session.id, opened.session.principal)
    end_left_subagents(tx, opened.session.id, batch.now)
    turn = Turn(batch.turn_id, opened.session.id, batch.run_id, TurnState.RUNNING, 1, 0, batch.now)
    situation = turning.open_turn(tx, lease, turn, _messages(tx, batch))
    tx.inbox.change(batch.entries, state=str(InboxState.RUNNING), turn_id=turn.id, session_id=turn.session_id)
    return Begun(opened, lease, situation, decode(opened.session.model_config))


def take_up_answer(tx: Transaction, lane: Lane, turn: Turn, run_id: str, claim: Claim) -> Begun:
    """Carry on a turn that was cut off."""
    session = tx.sessions.find(turn.session_id)
    assert session is not None
    lease = claim(tx, session.id, session.principal)
    end_left_subagents(tx, session.id, turn.begun_at)
    situation = turning.take_up_turn(tx, lease, turn, run_id)
    return Begun(Opened(lane, session, Start()), lease, situation, decode(session.model_config))


def end_answer(tx: Transaction, outcome: Outcome, posting: Posting) -> None:
    """Every message of the turn comes to its end with it, and what was said to them is on its way."""
    entries = [entry for entry in tx.inbox.of_turn(outcome.turn.id) if entry.is_open]
    if not entries:
        return
    reason = _reason_for(entries[-1], outcome)
    state, outcome = _ENDS[outcome.state], outcome._replace(reason=reason)
    is_question = not entries[-1].is_greeting
    if state is InboxState.DEAD and not is_question:
        state = InboxState.CANCELLED
    tx.inbox.change(entries, state=str(state), reason=reason, ended_at=outcome.at)
    session = tx.sessions.find(outcome.turn.session_id)
    override = decode(session.model_config).send if session else None
    envelope = envelope_of(entries[-1], f"{outcome.turn.id}:reply", outcome.turn.session_id, outcome.turn.id)
    if outcome.state is TurnState.DONE:
        complete_turn(tx, entries[0].lane_key)
    said = "" if is_silent(outcome.text) else outcome.text
    draft = draft_of(tx, outcome.turn.id)
    if draft is not None:
        post(tx, posting, envelope, _last_shown(outcome, said), What.REPLY, outcome.at, override)
    elif outcome.state is not TurnState.STOPPED and said:
        post(tx, posting, envelope, said, What.REPLY, outcome.at, override)
    if outcome.state is TurnState.FAILED and reason and is_question and (said or draft is None):
        told = envelope._replace(name=f"{outcome.turn.id}:notice")
        post(tx, posting, told, reason, What.NOTICE, outcome.at, override)
    _show_to_people(tx, posting, entries[-1], outcome, said)


def _show_to_people(tx: Transaction, posting: Posting, entry: Entry, outcome: Outcome, said: str) -> None:
    """Show what a program was answered in the chat of the lane, where others than the program's owner may read."""
    if outcome.state is not TurnState.STOPPED:
        show_answer(tx, posting, entry, said, What.REPLY, outcome.at)
    if outcome.state is TurnState.FAILED:
        reason = outcome.public_reason or outcome.reason or ""
        show_answer(tx, posting, entry, reason, What.NOTICE, outcome.at)


def _reason_for(entry: Entry, outcome: Outcome) -> str | None:
    """Return why a turn ended as it did, in words that whoever wrote and reads there may know."""
    if entry.is_for_owner_alone or outcome.public_reason is None:
        return outcome.reason
    return outcome.public_reason


def drop_answer(tx: Transaction, outcome: Outcome) -> None:
    """A turn that nobody is to hear of: its messages come to their end, and nothing is sent."""
    entries = [entry for entry in tx.inbox.of_turn(outcome.turn.id) if entry.is_open]
    tx.inbox.change(entries, state=str(InboxState.CANCELLED), reason=outcome.reason, ended_at=outcome.at)
    if (draft := draft_of(tx, outcome.turn.id)) is not None:
        tx.outbox.change(draft.id, state=str(OutboxState.SUPPRESSED), reason=outcome.reason, ended_at=outcome.at)


def _last_shown(outcome: Outcome, said: str) -> str:
    """What a message says in the end that showed an answer while it was written."""
    if outcome.state is TurnState.STOPPED:
        return f"{balanced(said)}\n\n{STOPPED}" if said else STOPPED
    return said or outcome.reason or UNANSWERED


def bury_answer(tx: Transaction, lane: Lane, outcome: Outcome, posting: Posting) -> None:
    """A turn that killed its program again and again: its messages are dead, and the lane begins anew."""
    end_answer(tx, outcome, posting)
    suspend_lane(tx, lane.key, instant(outcome.at), Suspension.CRASHED)


def admitted_to(entry: Entry) -> Admitted:
    """Where a message was put down."""
    return Admitted(entry.lane_key, Scope(Principal(entry.principal), Audience(entry.audience)))


def _rules_now(tx: Transaction, house: House) -> Rules:
    """The rules with the owners who were made so since."""
    return house.rules._replace(keys=rules_with_owners(tx, house.rules.keys))


_ENDS = {
    TurnState.DONE: InboxState.DONE,
    TurnState.STOPPED: InboxState.CANCELLED,
    TurnState.FAILED: InboxState.DEAD,
}


def is_waiting(tx: Transaction, entry: Entry) -> bool:
    """Whether it still waits, and not in its place the words that stood behind it."""
    found = tx.inbox.find(entry.id)
    return found is not None and found.state == InboxState.WAITING and found.want == entry.want


def _messages(tx: Transaction, batch: Batch) -> list[Draft]:
    """What was said, as rows; what was left out because too many waited is told first."""
    first = batch.entries[0]
    unanswered = tx.inbox.left_out(first.lane_key, SUMMARISED)
    tx.inbox.change(unanswered, turn_id=batch.turn_id)
    told = [left_out([entry.text for entry in unanswered])] if unanswered else []
    return [
        *(draft("user", text, batch.now) for text in told),
        *(message_of(entry) for entry in batch.entries if not entry.is_greeting),
    ]


def message_of(entry: Entry) -> Draft:
    """What was said, as a message of a conversation."""
    return draft(
        "user",
        entry.content,
        entry.admitted_at,
        author=entry.author,
        platform_message_id=entry.message_id,
        attachments=[file.as_item() for file in attachments_in(entry.attachments)] or None,
    )


def furnish(tx: Transaction, opened: Opened, house: House) -> Opened:
    """Give a session a system prompt; when nothing was chosen in it yet, it takes over what the last one chose."""
    session, earlier, chosen = opened.session, None, Preferences()
    if reset := tx.lanes.reset_into(session.id):
        old = tx.sessions.find(session.reset_from or "")
        chosen = carried_over(decode(old.model_config if old else None), _SUCCESSION[reset.reason])
        if old is not None and old.message_count:
            earlier = Earlier(SessionId(old.id), instant(session.started_at), reset.reason)
    prompt = house.prompt(tx, opened, earlier)
    furnished = session._replace(system_prompt=prompt, model_config=session.model_config or encode(chosen))
    tx.sessions.change(session.id, system_prompt=prompt, model_config=furnished.model_config)
    return opened._replace(session=furnished)


def _tell_reset(tx: Transaction, opened: Opened, first: Entry, house: House) -> None:
    """A line for the person when a conversation began anew by itself, with the way back."""
    decision, old = opened.decision, tx.sessions.find(opened.session.reset_from or "")
    if not isinstance(decision, Reset) or decision.reason is ResetReason.ASKED or old is None or not old.message_count:
        return
    policy = policy_of(parse_key(first.lane_key, house.rules.keys.main_key), first.source, house.rules.policies)
    if policy.notify:
        text = notice_of_reset(decision.reason, old)
        envelope = envelope_of(first, f"{opened.session.id}:reset", old.id)
        override = decode(opened.session.model_config).send
        post(tx, house.posting, envelope, text, What.NOTICE, first.admitted_at, override)


def notice_of_reset(reason: ResetReason, old: Session) -> str:
    name = shorten(one_line(old.title or old.first_line), _NAME)
    return f"A new conversation begins, because {_WHY[reason]}. The last one, “{name}”, is kept.\n{way_back(old.id)}"
