"""Something that is to be sent, from the transaction that decided so until the platform has it."""

import json
from enum import StrEnum
from typing import NamedTuple

from segue.core.attachments import Attachment, attachments_in
from segue.core.sources import SessionSource


class OutboxState(StrEnum):
    DRAFT = "draft"
    """It is still being written. A beginning of it is shown, or may be; nobody delivers it before it is complete."""
    PENDING = "pending"
    SENDING = "sending"
    """It may have left this machine."""
    DELIVERED = "delivered"
    UNKNOWN = "unknown"
    """It may have arrived: it is sent again, with the same key or with a mark."""
    DEAD = "dead"
    SUPPRESSED = "suppressed"
    """The send policy did not let it go."""


MARK = "(sent again) "
"""Before what may be there twice, where a platform cannot tell."""

UNSENT = (OutboxState.PENDING, OutboxState.SENDING, OutboxState.UNKNOWN)


class What(StrEnum):
    REPLY = "reply"
    NOTICE = "notice"
    """What the program says by itself."""
    ANSWER = "answer"
    """To a command."""


class Letter(NamedTuple):
    """A row of the outbox: one piece of text for one place."""

    id: int
    key: str
    """The same whenever it is sent again."""
    lane_key: str
    principal: str
    audience: str
    turn_id: str | None
    session_id: str | None
    platform: str
    account: str
    chat: str
    route: str
    """The source as JSON."""
    text: str
    what: str
    state: str
    created_at: float
    reply_to: str | None = None
    attempts: int = 0
    is_repeat: int = 0
    """Whether it may be there twice."""
    is_shown: int = 0
    """Whether a beginning of it may be there: then that message is edited until it says this."""
    not_before: float = 0.0
    message_id: str | None = None
    reason: str | None = None
    ended_at: float | None = None
    file: str | None = None
    """What is sent along, as JSON."""

    @property
    def source(self) -> SessionSource:
        return SessionSource.from_dict(json.loads(self.route))

    @property
    def attachment(self) -> Attachment | None:
        return next(iter(attachments_in(self.file)), None)
