"""`/new`, `/reset`, `/resume`, `/sessions`, `/branch`: from one conversation to another, and the way back."""

import re

from segue.core.errors import InvalidSession, NotFound
from segue.core.moments import ago
from segue.core.policy import ResetReason
from segue.core.preferences import Succession, carried_over, decode
from segue.core.sessions import Kind, Listed, Session
from segue.core.text import count, one_line
from segue.ports.store import Filter, Transaction
from segue.sessions.branching import branch_session
from segue.sessions.commanding.acts import Answer, Begin, Offer, Situation, Switch, chosen_in, session_of
from segue.sessions.commanding.wording import how_many, name_of, way_back
from segue.sessions.finding import find_successor, find_tip, get_named, get_session
from segue.sessions.listing import list_sessions
from segue.sessions.starting import end_session, reopen_session

_LISTED = 10
_MOST = 50
_NUMBER = re.compile("[0-9]{1,3}")
_NEW_ALREADY = "This is a new conversation already."
_SPOKEN = Filter(kinds=(Kind.INTERACTIVE,))


def new(tx: Transaction, argument: str, situation: Situation) -> Answer:
    session = tx.sessions.find(situation.session_id or "")  # which somebody may have deleted meanwhile
    model, first = _model_and_text(argument, situation)
    before = chosen_in(session, situation)
    chosen = carried_over(before, Succession.NEW, model=model)
    if session is None:
        return Answer(_NEW_ALREADY if first is None else "", Begin(first, chosen))
    if _is_only_greeted(session) and first is None and model == before.model:
        return Answer(_NEW_ALREADY)
    _leave(tx, situation, ResetReason.ASKED)
    told = "A new conversation begins."
    if session.message_count and not _is_only_greeted(session):
        told += f" The last one, “{name_of(session)}”, is kept.\n{way_back(session.id)}"
    return Answer(told, Begin(first, chosen, reset_from=session.id))


def _is_only_greeted(session: Session) -> bool:
    """True if the agent has spoken first and nobody has said anything since."""
    return bool(session.message_count) and not session.first_line


def _model_and_text(argument: str, situation: Situation) -> tuple[str | None, str | None]:
    """The model that the first word names, if it names one, and what is said; a text stays as it is."""
    word, _, rest = argument.lstrip().partition(" ")
    model = situation.meant(word) if word and "\n" not in word else None
    return (model, rest.strip() or None) if model else (None, argument or None)


def sessions(tx: Transaction, argument: str, situation: Situation) -> Answer:
    most = min(how_many(argument, _LISTED, "/sessions"), _MOST)
    found = list_sessions(tx, _SPOKEN, most)
    if not found:
        return Answer("There is no conversation yet.")
    lines = [_line(number, one, situation) for number, one in enumerate(found, 1)]
    total = tx.sessions.count(_SPOKEN)
    more = [f"… {count(total - len(found), 'more conversation')}"] if total > len(found) else []
    lines += [*more, "/resume NUMBER goes on with one of them."]
    return Answer("\n".join(lines), Offer(tuple(one.id for one in found)))


def resume(tx: Transaction, argument: str, situation: Situation) -> Answer:
    wanted = argument.strip()
    if not wanted:
        return sessions(tx, "", situation)
    named = _named(tx, wanted, situation)
    target = get_session(tx, find_tip(tx, named))
    situation.claim(tx, target.id)
    if target.id == situation.session_id:
        return _stay(target, situation)
    _leave(tx, situation, "session_switch")
    _take_up(tx, target)
    note = compressed_note(tx, named, target.id)
    told = f"You are in “{name_of(target)}” now. {note}".rstrip()
    switch = Switch(target.id, recap=True, preferences=decode(target.model_config), note=note)
    return Answer(f"{told}\n{one_line(target.id)}", switch)


def compressed_note(tx: Transaction, named: str, tip: str) -> str:
    """What somebody is told who named an earlier part of a conversation; nothing for the newest one."""
    if named == tip:
        return ""
    title = get_session(tx, named).title
    shown = f"“{one_line(title)}”" if title else "The part you named"
    return f"{shown} was compressed; this is where it goes on."


def _stay(session: Session, situation: Situation) -> Answer:
    """Whoever asks for the conversation that they are in wants to go on with it, also where its time was over."""
    if situation.in_terminal:
        return Answer("You are in that conversation already.")
    stayed = Switch(session.id, recap=False, preferences=decode(session.model_config))
    return Answer("You are in that conversation already; it goes on.", stayed)


def branch(tx: Transaction, argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if session is None:
        raise InvalidSession("Nothing has been said yet, so there is nothing to branch from.")
    fresh = situation.new_session_id
    made = branch_session(
        tx,
        session.id,
        branch_id=fresh,
        source=situation.source,
        now=situation.now,
        title=argument,
        cwd=situation.cwd,
    )
    situation.claim(tx, fresh)
    _leave(tx, situation, "branched")
    told = f"You are in a branch now, “{name_of(made)}”.\n{one_line(fresh)}\n“{name_of(session)}” stays as it is."
    if not made.title:
        told = f"You are in a branch of “{name_of(session)}” now; /title names it.\n{one_line(fresh)}\n"
        told += "What it comes from stays as it is."
    told += f"\n{way_back(session.id)}"
    return Answer(told, Switch(fresh, recap=False, preferences=decode(made.model_config)))


def _line(number: int, one: Listed, situation: Situation) -> str:
    facts = [ago(one.last_active_at, situation.now, situation.zone), one_line(one.id)]
    if one.source != situation.source:
        facts.append(one_line(one.source))
    if one.id == situation.session_id:
        facts.append("this one")
    return f"{number:>3}  {name_of(one)} · {' · '.join(facts)}"


def _named(tx: Transaction, wanted: str, situation: Situation) -> str:
    """The session that somebody means: a number of the last list, an id or a title."""
    number = int(wanted) if _NUMBER.fullmatch(wanted) else None
    if number is not None and 0 < number <= len(situation.listed):
        return get_session(tx, situation.listed[number - 1]).id
    if number is not None and not tx.sessions.find(wanted) and not tx.sessions.titled(wanted):
        raise NotFound(f"No conversation was listed as number {number}; /sessions makes a new list.")
    return get_named(tx, wanted)


def _leave(tx: Transaction, situation: Situation, reason: str) -> None:
    session = tx.sessions.find(situation.session_id or "")
    if session is not None and situation.is_ours(tx, session.id):
        end_session(tx, session.id, reason, situation.now)


def _take_up(tx: Transaction, target: Session) -> None:
    """Carry on with a session. One whose lane has gone on without it leaves that lane."""
    if find_successor(tx, target):
        tx.sessions.change(target.id, lane_key=None)
    reopen_session(tx, target.id)
