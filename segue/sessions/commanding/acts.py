"""What a command is given, and what comes of it: words for the person, and an act for whoever runs the chat.

Acts are what a transaction cannot do: go over to another session, begin one, ask again, stop, leave.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from segue.core.keys import KeyRules
from segue.core.messages import Spot
from segue.core.preferences import Preferences, decode
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import Transaction
from segue.sessions.finding import get_session
from segue.sessions.lane_status import LaneStatus

_NOTHING_CHOSEN = Preferences()
_PLAIN_KEYS = KeyRules()


def _unhurried() -> float:
    return inf


def _taken_as_given(name: str) -> str:
    return name


def _nothing_meant(_word: str) -> str | None:
    return None


def greets_nobody(_chosen: Preferences) -> bool:
    """Return False: the agent greets in no conversation."""
    return False


def _unclaimed(_tx: Transaction, _session_id: str) -> None:
    return None


def _everything_is(_tx: Transaction, _session_id: str) -> bool:
    return True


class Linked(NamedTuple):
    """A platform, and since when it is connected; nothing while it is not."""

    platform: str
    since: float | None


class Situation(NamedTuple):
    """Where and when a command is given."""

    session_id: str | None
    """The session that is going on; nothing before its first message."""
    now: float
    zone: tzinfo
    new_session_id: str
    source: str = "cli"
    cwd: str | None = None
    model: str = ""
    """The one that is used now."""
    public_model: str = ""
    """What people who are not owners are told of it."""
    is_for_owner_alone: bool = True
    """Whether an owner gives it and nobody else reads the answer, who then reads names of providers and errors."""
    preferences: Preferences = _NOTHING_CHOSEN
    """What was chosen before there is a session to keep it."""
    listed: Sequence[str] = ()
    """The sessions that were offered last, in their order."""
    models: Callable[[str], str] = _taken_as_given
    """The model that a name means; raises when there is none."""
    meant: Callable[[str], str | None] = _nothing_meant
    """The model that a word names for certain."""
    system_prompt: str = ""
    """The one that a session will begin with."""
    title: str | None = None
    """The title that a session will begin with."""
    parts: Sequence[tuple[str, int]] = ()
    """What else the model is told: each tool, and how many characters it takes."""
    time_left: Callable[[], float] = _unhurried
    """For how many seconds more a search may look."""
    claim: Callable[[Transaction, str], object] = _unclaimed
    """Makes a session ours, in the transaction that goes over to it; raises when somebody else is at work there."""
    is_ours: Callable[[Transaction, str], bool] = _everything_is
    """Whether we are still the ones at work in a session, so that it ends when we leave it."""
    undone: tuple[Spot, ...] = ()
    """The messages that the last `/undo` took, if nothing was said since."""
    is_answering: bool = False
    """Whether an answer is being written at this moment."""
    route: SessionSource | None = None
    """Where it is given, on a platform."""
    keys: KeyRules = _PLAIN_KEYS
    homes: Mapping[str, SessionSource] = MappingProxyType({})
    """The home channels that the settings name."""
    links: Sequence[Linked] = ()
    """The platforms, as far as whoever gives it may know."""
    waiting: int = 0
    """How many messages wait to be answered."""
    lane: LaneStatus | None = None
    """On a platform: how the lane stands."""
    greets: Callable[[Preferences], bool] = greets_nobody
    """True if the agent greets whoever begins a conversation with these choices."""

    @property
    def model_named(self) -> str:
        """The model that is used now, as whoever reads the answer may know it."""
        return (self.model if self.is_for_owner_alone else self.public_model) or "none"

    @property
    def in_terminal(self) -> bool:
        return self.route is None


@dataclass(frozen=True, slots=True)
class Switch:
    """Go on with another session, which has choices of its own."""

    session_id: str
    recap: bool
    preferences: Preferences = _NOTHING_CHOSEN
    note: str = ""
    """That the part which was named is not the newest one, as a sentence."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin a new session with these choices; the text is the first thing said in it, unchanged."""

    text: str | None
    preferences: Preferences = _NOTHING_CHOSEN
    reset_from: str | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Say what was said before once more; `content` is all of it, where `text` are its words.

    Whoever does it lets the conversation fall silent from `undo_from` on, in the transaction that says it again.
    """

    text: str
    content: Any
    undo_from: Spot


@dataclass(frozen=True, slots=True)
class Undone:
    """These messages were taken back; `/redo` may bring them back."""

    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Redone:
    """What was undone last speaks again."""


@dataclass(frozen=True, slots=True)
class Prefer:
    """These are the choices from now on. When there is a session, it has them already."""

    preferences: Preferences


@dataclass(frozen=True, slots=True)
class Title:
    """Name the session so as soon as there is one."""

    title: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Numbers of a list: what `/resume 2` means from now on."""

    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compress:
    """Go on from a summary that keeps what matters."""

    focus: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop what is being done."""


@dataclass(frozen=True, slots=True)
class Handed:
    """The conversation goes on elsewhere."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Let the gateway begin a new life."""


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave."""


Act = Switch | Begin | Again | Undone | Redone | Prefer | Title | Offer | Compress | Stop | Handed | Restart | Quit


class Answer(NamedTuple):
    """What the person is told, and what is to be done."""

    text: str
    act: Act | None = None
    is_index_damaged: bool = False
    """Whether the search index was found damaged, and should be made anew."""


def session_of(tx: Transaction, situation: Situation) -> Session | None:
    """The session that is going on, if there is one."""
    return get_session(tx, situation.session_id) if situation.session_id else None


def chosen_in(session: Session | None, situation: Situation) -> Preferences:
    """What this conversation has chosen."""
    return decode(session.model_config) if session else situation.preferences
