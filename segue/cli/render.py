"""Conversations as text: cells of tables, and transcripts line by line. Nothing here prints."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from segue.cli.output import has_no_room, is_narrow, style, wrapped
from segue.core.documents import WHY_ANEW
from segue.core.messages import SUMMARY_SEQ, Message, called
from segue.core.sessions import standing
from segue.core.text import count, one_line, printable
from segue.sessions.reading import Part

_PREVIEW = 60
_TOOL_OUTPUT_LINES = 12


def transcript(parts: Sequence[Part], *, around: int | None = None) -> Iterator[str]:
    """A conversation as lines: a heading, then each part, with a rule where one ends and the next begins."""
    last, _, _ = parts[-1]
    yield style(wrapped(one_line(last.title or last.first_line or last.id)), bold=True)
    messages = count(sum(session.message_count for session, _, _ in parts), "message")
    facts = one_line(f"{last.id} · {last.source} · {_when(last.started_at)} · {messages} · {standing(last)}")
    yield style(wrapped(facts), dim=True)
    for number, (session, rows, reset) in enumerate(parts):
        if number:
            yield _rule(f"compressed, and continued as {session.id}")
        if reset is not None:
            when = _when(reset.at.timestamp())
            yield _rule(f"begun anew {WHY_ANEW[reset.reason]} on {when}; before it: {reset.from_session}")
        for message in rows:
            yield ""
            yield from _message(message, marked=message.seq == around)


def _message(message: Message, *, marked: bool) -> Iterator[str]:
    yield _heading(message, marked=marked)
    text = printable(message.content or "").rstrip()
    if message.role == "tool" and is_narrow():
        text = _beginning(text)
    if text:
        yield wrapped(text) if message.role in ("user", "assistant") else style(wrapped(text), dim=True)
    elif not message.calls:
        yield style("(no words)", dim=True)
    for call in message.calls:
        function = call.get("function")
        arguments = function.get("arguments", "") if isinstance(function, dict) else ""
        yield style(one_line(f"→ {called(call)} {arguments}"), fg="cyan")


def _heading(message: Message, *, marked: bool) -> str:
    who, colour = {
        "user": (f"● {message.author or 'You'}", "yellow"),
        "assistant": ("◆ Assistant", "green"),
        "tool": (f"⚙ {message.tool_name or 'tool'}", "cyan"),
        "system": ("■ System", "magenta"),
    }[message.role]
    if message.seq == SUMMARY_SEQ:
        who = "■ Summary of what came before"
    state = f" · {message.note}" if message.note else ""
    arrow = "▶ " if marked else ""
    rest = f"#{message.seq} · {_when(message.timestamp)}{state}"
    name = arrow + one_line(who)
    gap = "\n  " if has_no_room(f"{name}  {rest}") else "  "
    return style(name, bold=True, fg=colour) + gap + style(one_line(rest), dim=True)


def _beginning(text: str) -> str:
    lines = text.split("\n")
    hidden = len(lines) - _TOOL_OUTPUT_LINES
    return (
        text
        if hidden <= 0
        else "\n".join(lines[:_TOOL_OUTPUT_LINES]) + f"\n… {count(hidden, 'more line')}; --raw shows all"
    )


def _rule(text: str) -> str:
    return "\n" + style(wrapped(one_line(f"── {text} ──")), dim=True)


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")
