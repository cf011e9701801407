"""Slash commands, carried out: each in one transaction, under the scope of whoever gave it."""

from collections.abc import Callable

from segue.core.commands import Command
from segue.core.errors import Invalid
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Compress, Quit, Restart, Situation, Stop, session_of
from segue.sessions.commanding.choosing import model, queue, send, think, verbose
from segue.sessions.commanding.helping import help_
from segue.sessions.commanding.homing import handoff, sethome
from segue.sessions.commanding.looking import find, history
from segue.sessions.commanding.measuring import context
from segue.sessions.commanding.naming import title
from segue.sessions.commanding.switching import branch, new, resume, sessions
from segue.sessions.commanding.telling import status, usage
from segue.sessions.commanding.undoing import redo, retry, undo

READS = frozenset(
    {
        *("sessions", "history", "retry", "compress", "search", "status", "usage", "context"),
        *("stop", "steer", "restart", "help", "quit"),
    }
)
"""Commands that change nothing: they can be given a transaction for reading."""

CHANGES = frozenset({"title", "undo", "redo", "model", "think", "verbose", "send", "queue", "handoff"})
"""Commands that change the session they are given in: whoever gives one has to have it."""


def act(tx: Transaction, command: Command, situation: Situation) -> Answer:
    """Do what a command says. What cannot be done is a `SegueError`, and then nothing has changed."""
    return _ACTS[command.name](tx, command.argument, situation)


def _stop(_tx: Transaction, _argument: str, _situation: Situation) -> Answer:
    return Answer("", Stop())


def _steer(_tx: Transaction, argument: str, _situation: Situation) -> Answer:
    if not argument.strip():
        raise Invalid("/steer takes what is to be said, such as /steer only the cheap ones.")
    return Answer("Nothing is being answered; it is answered like any message.")


def _restart(_tx: Transaction, _argument: str, _situation: Situation) -> Answer:
    return Answer("The gateway restarts.", Restart())


def _compress(tx: Transaction, argument: str, situation: Situation) -> Answer:
    if session_of(tx, situation) is None:
        return Answer("There is nothing to compress: nothing has been said yet.")
    return Answer("", Compress(argument))


def _quit(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if session is None or not session.message_count:
        return Answer("", Quit())
    return Answer(f"`segue --resume {one_line(session.id)}` comes back to this conversation.", Quit())


_ACTS: dict[str, Callable[[Transaction, str, Situation], Answer]] = {
    "new": new,
    "title": title,
    "resume": resume,
    "sessions": sessions,
    "branch": branch,
    "history": history,
    "search": find,
    "undo": undo,
    "redo": redo,
    "retry": retry,
    "model": model,
    "think": think,
    "verbose": verbose,
    "status": status,
    "usage": usage,
    "context": context,
    "compress": _compress,
    "stop": _stop,
    "queue": queue,
    "steer": _steer,
    "send": send,
    "sethome": sethome,
    "handoff": handoff,
    "restart": _restart,
    "help": help_,
    "quit": _quit,
}
