"""Conversations as text: cells of tables, and transcripts line by line. Nothing here prints."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from segue.cli.output import Column, style, wrapped
from segue.core.messages import SUMMARY_SEQ, Message, called
from segue.core.moments import ago
from segue.core.policy import ResetReason
from segue.core.sessions import Listed, standing
from segue.core.text import count, one_line, printable, shorten
from segue.ports.store import TrashEntry
from segue.sessions.reading import Part

_PREVIEW = 60
_TOOL_OUTPUT_LINES = 12
_WHY = {
    ResetReason.IDLE: "after a long silence",
    ResetReason.DAILY: "at the daily hour",
    ResetReason.SUSPENDED: "after a stop",
    ResetReason.ASKED: "on request",
}


def session_table(sessions: Sequence[Listed], now: float) -> tuple[list[Column], list[list[str]]]:
    """A list of sessions as columns and rows; titles have a column when there are any."""
    if any(session.title for session in sessions):
        columns = [Column("Title", 2), Column("Preview", 3, yields=2), Column("Last Active", yields=1), Column("ID")]
    else:
        columns = [Column("Preview", 1), Column("Last Active", yields=1), Column("Src", yields=2), Column("ID")]
    cells = [_cells(session, now) for session in sessions]
    return columns, [[row[column.name] for column in columns] for row in cells]


def _cells(session: Listed, now: float) -> dict[str, str]:
    return {
        "Title": session.title or "—",
        "Preview": shorten(one_line(session.first_line), _PREVIEW),
        "Last Active": ago(session.last_active_at, now),
        "Src": session.source,
        "ID": session.id,
    }


def trash_cells(entry: TrashEntry, now: float) -> list[str]:
    name = entry.title or shorten(one_line(entry.first_line), _PREVIEW) or "—"
    return [name, str(entry.message_count), ago(entry.trashed_at, now), entry.session_id]


def transcript(parts: Sequence[Part], *, around: int | None = None) -> Iterator[str]:
    """A conversation as lines: a heading, then each part, with a rule where one ends and the next begins."""
    last, _, _ = parts[-1]
    yield style(one_line(last.title or last.first_line or last.id), bold=True)
    messages = count(sum(session.message_count for session, _, _ in parts), "message")
    yield style(
        one_line(f"{last.id} · {last.source} · {_when(last.started_at)} · {messages} · {standing(last)}"), dim=True
    )
    for number, (session, rows, reset) in enumerate(parts):
        if number:
            yield _rule(f"compressed, and continued as {session.id}")
        if reset is not None:
            when = _when(reset.at.timestamp())
            yield _rule(f"begun anew {_WHY[reset.reason]} on {when}; before it: {reset.from_session}")
        for message in rows:
            yield ""
            yield from _message(message, marked=message.seq == around)


def _message(message: Message, *, marked: bool) -> Iterator[str]:
    yield _heading(message, marked=marked)
    text = printable(message.content or "").rstrip()
    if message.role == "tool":
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
    state = "" if message.is_live else f" · {message.state}"
    arrow = "▶ " if marked else ""
    rest = f"  #{message.seq} · {_when(message.timestamp)}{state}"
    return style(arrow + one_line(who), bold=True, fg=colour) + style(one_line(rest).rjust(len(rest)), dim=True)


def _beginning(text: str) -> str:
    lines = text.split("\n")
    hidden = len(lines) - _TOOL_OUTPUT_LINES
    return (
        text
        if hidden <= 0
        else "\n".join(lines[:_TOOL_OUTPUT_LINES]) + f"\n… {count(hidden, 'more line')}; --raw shows all"
    )


def _rule(text: str) -> str:
    return "\n" + style(one_line(f"── {text} ──"), dim=True)


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")
