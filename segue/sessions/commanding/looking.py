"""`/history` and `/search`: what was said, here and anywhere."""

from collections.abc import Iterable

from segue.core.errors import Invalid
from segue.core.messages import SUMMARY_SEQ, Message
from segue.core.moments import ago
from segue.core.query import parse
from segue.core.recap import Voice, recap
from segue.core.sessions import Session
from segue.core.text import count, one_line
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Offer, Situation, session_of
from segue.sessions.commanding.wording import how_many, inset, name_of
from segue.sessions.finding import find_ancestors, get_session
from segue.sessions.searching import REBUILDING, Hit, Wish, by_conversation, search

SEARCH_SECONDS = 0.25
"""How long `/search` may look."""
_EXCHANGES = 10
_HITS = 30
_CONVERSATIONS = 5
_HITS_SHOWN = 3
BEING_REBUILT = "The search index is being made anew, and searching is slow until it is there."
_SIGNS = {Voice.USER: "● ", Voice.ASSISTANT: "◆ ", Voice.TOOLS: "  ", Voice.SUMMARY: "■ "}
_SPEAKERS = {"user": "●", "assistant": "◆", "tool": "⚙"}


def history(tx: Transaction, argument: str, situation: Situation) -> Answer:
    most = how_many(argument, _EXCHANGES, "/history")
    session = session_of(tx, situation)
    parts = [*find_ancestors(tx, session), session] if session else []
    earlier, messages = _last_said(tx, parts, most)
    if not messages:
        return Answer("Nothing has been said yet.")
    more = [f"… {count(earlier, 'earlier message')} …"] if earlier else []
    lines = [inset(line.text, _SIGNS[line.voice]) for one in _exchanges(messages) for line in recap(one).lines]
    return Answer("\n".join([*more, *lines]))


def find(tx: Transaction, argument: str, situation: Situation) -> Answer:
    if not argument.strip():
        raise Invalid("Say what to look for, such as /search hotel lisbon.")
    found = search(tx, parse(argument), Wish(_HITS), situation.now, situation.zone, situation.time_left)
    grouped = by_conversation(tx, found.hits)
    shown = list(grouped)[:_CONVERSATIONS]
    lines = [line for number, tip in enumerate(shown, 1) for line in _told(tx, number, tip, grouped[tip], situation)]
    if not shown and not found.is_incomplete:
        lines.append("Nothing was found.")
    elif len(grouped) > len(shown) or len(found.hits) == _HITS:
        all_of_it = ": `segue sessions search` shows all of it." if situation.in_terminal else "; more words find less."
        lines.append(f"… there is more{all_of_it}")
    lines += found.notes if situation.in_terminal else map(_note_in_chat, found.notes)
    if shown:
        lines.append("/resume NUMBER goes on with one of them.")
    return Answer("\n".join(lines), Offer(tuple(shown)) if shown else None, found.is_damaged)


def _note_in_chat(note: str) -> str:
    return BEING_REBUILT if note == REBUILDING else note


def _last_said(tx: Transaction, parts: list[Session], most: int) -> tuple[int, list[Message]]:
    """The last exchanges of a conversation, and how many messages come before them."""
    earlier, messages, missing = 0, list[Message](), most
    for part in reversed(parts):
        starts = tx.messages.last_user_seqs(part.id, missing) if missing else []
        found: list[Message] = []
        if missing:
            missing -= len(starts)
            found = tx.messages.of(part.id, after=SUMMARY_SEQ if missing else starts[-1] - 1)
        summary = tx.messages.find_seq(part.id, SUMMARY_SEQ)
        earlier += part.message_count - len(found) - int(summary is not None and summary.is_live)
        messages = found + messages
    return earlier, messages


def _exchanges(messages: list[Message]) -> list[list[Message]]:
    """What somebody said, with all that followed, one after the other."""
    exchanges: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def _told(tx: Transaction, number: int, tip: str, hits: list[Hit], situation: Situation) -> Iterable[str]:
    session = get_session(tx, tip)
    yield f"{number:>3}  {name_of(session)} · {one_line(tip)}"
    for hit in hits[:_HITS_SHOWN]:
        sign = "■" if hit.found.seq == SUMMARY_SEQ else _SPEAKERS.get(hit.found.role, "■")
        yield f"     {sign} {one_line(hit.snippet)} · {ago(hit.found.timestamp, situation.now, situation.zone)}"
    if len(hits) > _HITS_SHOWN:
        yield f"     … {len(hits) - _HITS_SHOWN} more here"
