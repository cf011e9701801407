"""A batch: prompts that somebody wrote down in a file, each asked once in a conversation of its own.

The name of the batch and the id of a line name what is asked for ever. So however often a file is run, and whatever
crashes when, each of its lines is answered once.
"""

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.ids import encode_segment
from segue.core.inbound import Inbound
from segue.core.inbox import ERASED, Entry, InboxState
from segue.core.keys import BATCH, DEFAULT_AGENT, KeyRules, build_key, place_of
from segue.core.sources import SessionSource, kept_source
from segue.core.text import one_line, shorten, storable

PLATFORM = BATCH
AT_ONCE = 4
MOST_AT_ONCE = 64
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_UNFIT = re.compile(r"[^a-z0-9_.-]+")
_SHOWN_ID = 60
_ROOM = 40
"""Characters of a name that was made fit, before what tells it from others."""


class Line(NamedTuple):
    """One prompt of a batch."""

    number: int
    """Where it stands in the file."""
    id: str
    prompt: str
    agent: str | None = None

    @property
    def place(self) -> str:
        """The line as people find it."""
        told = f"Line {self.number}"
        return told if self.id == str(self.number) else f"{told} ({shorten(one_line(self.id), _SHOWN_ID)!r})"


class Result(NamedTuple):
    """What became of a line."""

    id: str
    state: str
    """`done`, `failed` or `cancelled`; `waiting` or `running` while nobody knows."""
    answer: str | None
    session_id: str | None
    error: str | None


FAILED = "failed"
STATES = {InboxState.DEAD: FAILED, InboxState.REFUSED: FAILED}
"""What a state of the inbox is called here, when it is called otherwise."""


def is_batch_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def checked_name(text: str) -> str:
    if not is_batch_name(text):
        raise Invalid(f"{text!r} cannot name a batch: use small letters, digits, dots, - and _, at most 64.")
    return text


def name_after(stem: str) -> str:
    """What a batch is called when only its file has a name; two that differ stay two."""
    if is_batch_name(stem):
        return stem
    fit = _UNFIT.sub("-", stem.lower()).strip("-._")[:_ROOM].rstrip("-._")
    digest = hashlib.sha256(stem.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit}-{digest}" if fit else digest


def inbound_of(name: str, line: Line) -> Inbound:
    """What a line asks, as a message; its answer is kept, and sent nowhere."""
    source = SessionSource(platform=PLATFORM, chat_id=name, chat_name=name, chat_type="channel", thread_id=line.id)
    return Inbound(source, line.id, line.prompt, is_person=False, agent=line.agent or DEFAULT_AGENT)


def lanes_of(name: str) -> Callable[[str], bool]:
    """Whether a lane is one of a batch."""
    ours = [BATCH, encode_segment(name)]
    return lambda key: key.split(":")[2:4] == ours


def refuse_another(line: Line, known: Entry, name: str) -> None:
    """Nothing is passed over in silence: under an id that is known only what it asked before can be asked."""
    if known.origin == ERASED:
        return  # nobody knows any more what it asked
    asked = inbound_of(name, line)
    lane = build_key(place_of(kept_source(asked.source), KeyRules(), asked.agent or DEFAULT_AGENT))
    what = "prompt" if known.text != storable(line.prompt) else "agent" if known.lane_key != lane else None
    if what is not None:
        raise Invalid(
            f"{line.place} has another {what} than it had when the batch {name!r} was run before: give the line"
            " another id, or the batch another --name."
        )
