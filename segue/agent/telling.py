"""What the agent without a model says, as Markdown; and what of it the next question may refer to.

A reply is all that is kept between two questions: the numbers of a list, the conversation that was shown and what was
asked about are read back from it. What others wrote is quoted or escaped, so that no text of theirs reads like a line
of ours.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import NamedTuple

from segue.core.extracts import Spoken, Summary
from segue.core.markdown import quoted
from segue.core.moments import ago
from segue.core.requests import Act, Resume, Show, Summarise
from segue.core.sessions import Listed, Session
from segue.core.text import count, one_line, printable, shorten

NOTICE = (
    "There is no model here, so I answer from past conversations alone: I find, show, summarise and resume them. For a"
    " model, set a key such as `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, or `model:` in the configuration."
)
HELP = (
    "Ask about anything that was said before, in your own words or with a few of them. For example:\n\n"
    "- `what did we decide about the cache?`\n"
    "- `list my conversations`, or `what did we talk about yesterday?`\n"
    "- `show 2` or `show the conversation about the garden`\n"
    "- `summarise 2`, `summarise my last conversation`\n"
    "- `resume 2` or `resume the one about taxes`, to go on there"
)
GREETING = "Hello. Ask me what was said before, or say `list` to see your last conversations and `help` for more."
NEXT = "Say `resume 1` or `/resume 1` to go on there, `show 1` to read it, or `summarise 1` for a summary."
NEXT_OF_ONE = "Say `resume it` to go on there."
_TITLE = 80
_VERBS: dict[Act, str] = {Show: "show", Summarise: "summarise", Resume: "resume"}
_ACTS = {verb: act for act, verb in _VERBS.items()}

_EFFECTIVE = re.compile(r"[\\`*_\[\]<]|~~|&(?=#?\w)")
_FACTS = r"\*\*.+\*\* · .+ · (?P<ticks>`+) ?(?P<id>.+?) ?(?P=ticks)"
_NUMBERED = re.compile(rf"^(?P<number>\d{{1,2}})\. {_FACTS}$", re.MULTILINE)
_HEADER = re.compile(rf"^{_FACTS}$", re.MULTILINE)
_ASKED = re.compile(rf"^Which one shall I ({'|'.join(_ACTS)})\?", re.MULTILINE)


class Offer(NamedTuple):
    """What the replies so far let somebody refer to."""

    ids: tuple[str, ...] = ()
    """Of the last list, in its order."""
    act: Act = Show
    """What a number alone asks for."""
    shown: str | None = None
    """The conversation that the last reply is about."""


class Row(NamedTuple):
    """A conversation in a list, with the passage that is shown of it."""

    session: Session | Listed
    passage: str = ""


def offered(replies: Sequence[str]) -> Offer:
    """What is on offer after these replies, the last one last."""
    header = _HEADER.search(replies[-1]) if replies else None
    shown = header["id"] if header else None
    for reply in reversed(replies):
        if ids := tuple(found["id"] for found in _NUMBERED.finditer(reply)):
            asked = _ASKED.search(reply)
            return Offer(ids, _ACTS[asked[1]] if asked else Show, shown)
    return Offer(shown=shown)


def numbered(rows: Iterable[Row], now: float, zone: tzinfo) -> str:
    lines = []
    for number, row in enumerate(rows, 1):
        lines.append(f"{number}. {facts(row.session, now, zone)}")
        if row.passage:
            lines += [f"   {line}" for line in quotation(row.passage).split("\n")]
    return "\n".join(lines)


def facts(session: Session | Listed, now: float, zone: tzinfo) -> str:
    """One line that tells a conversation from others: its name, when and where it was, its id."""
    title = shorten(one_line(session.title or "") or one_line(session.first_line) or "—", _TITLE)
    when = ago(session.last_active_at, now, zone)
    return f"**{_plain(title)}** · {when} · {_plain(one_line(session.source))} · {_code(session.id)}"


def quotation(text: str) -> str:
    return quoted(printable(text))


def which(act: Act, rows: Sequence[Row], now: float, zone: tzinfo) -> str:
    """A question back, when several conversations fit."""
    verb = _VERBS[act]
    return f"Which one shall I {verb}? Say `{verb} 1`, for example, or just the number.\n\n{numbered(rows, now, zone)}"


def transcript(session: Session, shown: Sequence[Spoken | None], now: float, zone: tzinfo) -> str:
    messages = [f"> **{one.role.capitalize()}:**\n{quotation(one.text)}" if one else "> …" for one in shown]
    told = "\n>\n".join(messages) or "> (no words)"
    return f"{facts(session, now, zone)}\n\n{told}\n\n{NEXT_OF_ONE}"


def summary(session: Session, told: Summary, messages: int, now: float, zone: tzinfo) -> str:
    pieces = [("It began with", told.request), *(("", line) for line in told.sentences), ("It ended with", told.answer)]
    lines = [_item(name, text) for name, text in pieces if text] or ["- (no words)"]
    size = f"{count(messages, 'message')}; these are sentences from it, in their order:"
    return "\n".join([facts(session, now, zone), "", size, "", *lines, "", NEXT_OF_ONE])


def _item(name: str, text: str) -> str:
    said = quotation(text).removeprefix("> ").replace("\n> ", " ")
    return f"- {name}: “{said}”" if name else f"- “{said}”"


def _code(text: str) -> str:
    """An id as code, whatever is in it."""
    plain = one_line(text)
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"


def _plain(text: str) -> str:
    """One line without anything that Markdown makes something of."""
    return _EFFECTIVE.sub(r"\\\g<0>", text)
