"""What becomes of a message that arrives while an answer is being written, and which messages are answered together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from segue.core.inbox import Entry, Want, chat_of
from segue.core.sources import SessionSource
from segue.core.text import one_line, shorten

MOST_PAUSES = 10
_QUOTED = 80
_MOST_QUOTED = 10
_LEFT_OUT = "earlier messages were left out, because too many were waiting:"
LEFT_OUT_PATTERN = f"[% {_LEFT_OUT}%"
"""What a note about left-out messages looks like, as SQL compares."""


class QueueMode(StrEnum):
    """What happens to messages that come while a turn runs."""

    COLLECT = "collect"
    """They wait, and the next turn answers them together."""
    FOLLOWUP = "followup"
    """They wait, and each has a turn of its own."""
    STEER = "steer"
    """The agent hears them between two steps."""
    INTERRUPT = "interrupt"
    """The turn ends, and the newest is answered."""


class Drop(StrEnum):
    """What goes when too many wait."""

    SUMMARIZE = "summarize"
    """The oldest; the next turn is told in short what they said."""
    OLD = "old"
    NEW = "new"
    """What has just arrived."""


class QueueRules(NamedTuple):
    mode: QueueMode = QueueMode.COLLECT
    debounce: timedelta = timedelta(seconds=1)
    """How long it is quiet before what waited is answered."""
    cap: int = 20
    drop: Drop = Drop.SUMMARIZE


@dataclass(frozen=True, slots=True)
class Wait:
    """In line, behind what came before."""


@dataclass(frozen=True, slots=True)
class Steer:
    """To the agent that is at work."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """In place of what is being done, and of everything that waits."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Too many wait."""


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """In line, in place of the oldest that wait."""

    dropped: int
    is_steering: bool = False
    """Whether it goes to the agent that is at work, as they would have."""


Admission = Wait | Steer | Interrupt | Refuse | MakeRoom


def admit(rules: QueueRules, waiting: int, want: Want, *, is_busy: bool) -> Admission:
    """What becomes of a message when so many others wait; commands are never in the way."""
    if want is Want.COMMAND:
        return Wait()
    is_beside = is_busy and want is Want.PLAIN
    if is_beside and rules.mode is QueueMode.INTERRUPT:
        return Interrupt()
    is_steering = is_beside and rules.mode is QueueMode.STEER
    if waiting < rules.cap:
        return Steer() if is_steering else Wait()
    if rules.drop is Drop.NEW or want is Want.QUEUED:
        return Refuse()
    return MakeRoom(waiting - rules.cap + 1, is_steering)


def together(waiting: Sequence[Entry], mode: QueueMode) -> list[Entry]:
    """The first of what waits, with everything that is answered by the same turn."""
    if not waiting:
        return []
    first, *rest = waiting
    batch = [first]
    if mode is QueueMode.FOLLOWUP or first.want != Want.PLAIN:
        return batch
    for entry in rest:
        if entry.want != Want.PLAIN or _place(entry) != _place(first):
            break
        batch.append(entry)
    return batch


def pause_before(entries: Sequence[Entry], debounce: timedelta, now: float) -> float:
    """For how many seconds more is waited for what a person may say next; nobody else is waited for.

    Whoever goes on and on is answered after so many pauses. A clock that was set back makes nobody wait.
    """
    pause = debounce.total_seconds()
    quiet, waited = now - entries[-1].admitted_at, now - entries[0].admitted_at
    if quiet < 0 or not entries[-1].is_person:
        return 0.0
    return max(0.0, min(pause - quiet, MOST_PAUSES * pause - waited))


def _place(entry: Entry) -> tuple[str, ...]:
    """Who said it where, and where the answer goes."""
    return entry.person, *_chat(entry.source), *_chat(entry.destination)


def _chat(source: SessionSource) -> tuple[str, ...]:
    return source.platform, source.account or "", chat_of(source), source.thread_id or ""


def left_out(texts: Sequence[str]) -> str:
    """What the agent is told of messages that nobody answers any more."""
    quoted = [f"- {shorten(one_line(text), _QUOTED)}" for text in texts[-_MOST_QUOTED:]]
    more = [f"- and {len(texts) - _MOST_QUOTED} before them"] if len(texts) > _MOST_QUOTED else []
    told = f"[{len(texts)} {_LEFT_OUT}"
    return "\n".join([told, *more, *quoted]) + "]"
