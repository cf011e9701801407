"""`/title`: what the conversation is called."""

from segue.core.errors import Invalid, TitleTaken
from segue.core.sessions import Session, TitleSource, standing
from segue.core.text import one_line
from segue.core.titles import clean_title
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Situation, Title, session_of
from segue.sessions.titling import set_title

_SOURCES = {
    TitleSource.USER: "set by you",
    TitleSource.MODEL: "found by a model",
    TitleSource.FIRST_WORDS: "the first words of the conversation",
    TitleSource.LINEAGE: "carried on from an earlier part",
    TitleSource.IMPORT: "from an import",
}


def title(tx: Transaction, argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if not argument:
        return Answer(_shown(session, situation.title))
    wanted = clean_title(argument)
    if wanted is None:
        raise Invalid("A title needs at least one visible character.")
    if session is None:
        _check_free(tx, wanted)
        return Answer(f"This conversation will be called “{wanted}” once something is said in it.", Title(wanted))
    set_title(tx, session.id, wanted)
    return Answer(f"This conversation is called “{wanted}” now.")


def _shown(session: Session | None, waiting: str | None) -> str:
    if session is None and waiting:
        return f"This conversation will be called “{one_line(waiting)}” once something is said in it."
    if session is None:
        return "Nothing has been said yet; /title TITLE names what comes."
    name = one_line(session.id)
    if session.title is None:
        return f"This conversation has no title.\n{name}"
    source = next((words for key, words in _SOURCES.items() if key == session.title_source), "of unknown origin")
    return f"“{one_line(session.title)}” ({source}).\n{name}"


def _check_free(tx: Transaction, wanted: str) -> None:
    holder = tx.sessions.holder_of(tx.scope.principal, wanted)
    if holder is not None:
        is_seen = tx.sessions.find(holder.id) is not None
        raise TitleTaken(wanted, holder.id if is_seen else TitleTaken.ELSEWHERE, standing(holder))
