"""A message that was accepted: it ends answered, cancelled, refused or dead, and never nowhere."""

import json
from enum import StrEnum
from typing import Any, NamedTuple

from segue.core.attachments import MOST_FILES
from segue.core.greeting import GREETING_ENTRY
from segue.core.inbound import Inbound
from segue.core.messages import encode
from segue.core.scope import OWNER, Audience, Principal, Scope
from segue.core.sources import API_SERVER, UNATTENDED, SessionSource, source_from


class InboxState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    """A turn is at work on it."""
    DONE = "done"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DEAD = "dead"


ERASED = '{"platform": "erased"}'
"""The origin of a message whose words were removed for good; its name stays, so that it is never accepted again."""
OPEN = (InboxState.WAITING, InboxState.RUNNING)
UNANSWERED = (InboxState.REFUSED, InboxState.DEAD)


class Want(StrEnum):
    """How a message wants to be answered."""

    PLAIN = "plain"
    QUEUED = "queued"
    """By a turn of its own, never together with another."""
    COMMAND = "command"
    """It is one: whoever comes to it carries it out."""


class Entry(NamedTuple):
    """A row of the inbox. Platform, account, chat, message and version name it for ever."""

    id: int
    """The order in which messages were accepted."""
    lane_key: str
    principal: str
    """Whose lane it is."""
    audience: str
    person: str
    """Who said it."""
    platform: str
    account: str
    chat: str
    message_id: str
    edit: str
    origin: str
    """The source as JSON: where it comes from."""
    text: str
    parts: str | None
    want: str
    state: str
    admitted_at: float
    is_person: int = 1
    turn_id: str | None = None
    session_id: str | None = None
    """The session that it is a message of."""
    reason: str | None = None
    ended_at: float | None = None
    route: str | None = None
    """Where the answer goes as JSON, when that is not where it comes from."""
    attachments: str | None = None
    """What was sent along, as JSON."""

    @property
    def source(self) -> SessionSource:
        return source_from(self.origin)

    @property
    def destination(self) -> SessionSource:
        """Where the answer goes."""
        return self.source if self.route is None else source_from(self.route)

    @property
    def content(self) -> Any:
        """The whole of it in the chat format."""
        return self.text if self.parts is None else json.loads(self.parts)

    @property
    def author(self) -> str | None:
        return self.source.user_name or self.source.participant or None

    @property
    def is_for_owner_alone(self) -> bool:
        """True if an owner wrote it, or a job of theirs, and nobody else reads the answer."""
        is_owners = self.person == OWNER or not self.is_person
        return is_owners and Scope(Principal(self.principal), Audience(self.audience)).is_owner_alone

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_greeting(self) -> bool:
        """True if the agent speaks first here: whoever gave the command has said nothing."""
        is_marked = not self.is_person and self.want == Want.QUEUED and self.text == GREETING_ENTRY
        return is_marked and self.platform not in (*UNATTENDED, API_SERVER)  # whose own words these may be


def chat_of(source: SessionSource) -> str:
    """The chat that a message's id belongs to."""
    return source.chat_id or source.participant


def entry_of(inbound: Inbound, lane_key: str, principal: str, audience: str, person: str, now: float) -> Entry:
    """A message as it is put down."""
    source = inbound.source
    return Entry(
        id=0,
        lane_key=lane_key,
        principal=principal,
        audience=audience,
        person=person,
        platform=source.platform,
        account=source.account or "",
        chat=chat_of(source),
        message_id=inbound.message_id,
        edit=inbound.edit,
        origin=_as_json(source),
        text=inbound.text,
        parts=None if inbound.parts is None else encode(inbound.parts),
        want=Want.PLAIN,
        state=InboxState.WAITING,
        admitted_at=now,
        is_person=int(inbound.is_person),
        route=None if inbound.route is None else _as_json(inbound.route),
        attachments=encode([file.as_item() for file in inbound.files[:MOST_FILES]]) if inbound.files else None,
    )


def _as_json(source: SessionSource) -> str:
    return json.dumps(source.to_dict(), ensure_ascii=False)
