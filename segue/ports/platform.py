"""A platform: where people are, and how words get there and back.

An adapter receives what people say and passes it on, and it sends what it is given. It decides nothing: who may speak,
which conversation it is, what is answered and when it is sent are decided elsewhere, and so is what happens after a
failure. It says only which of three kinds the failure was.
"""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from segue.core.attachments import Attachment
from segue.core.errors import SegueError
from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.routes import Places
from segue.core.sources import SessionSource
from segue.ports.files import Files


class Arriving(StrEnum):
    """What a platform does with a message that we did not confirm."""

    ACK_GATED = "ack-gated"
    """It brings it again until it is confirmed."""
    CURSOR = "cursor"
    """It is asked for everything behind a place that we keep."""
    NON_REPLAY = "non-replay"
    """It forgets it."""


class Units(StrEnum):
    """What a platform counts when it says how long a message may be."""

    CHARACTERS = "characters"
    UTF16 = "utf-16"
    BYTES = "bytes"


class Traits(NamedTuple):
    """What can be relied upon."""

    arriving: Arriving
    longest: int
    """Units of one message."""
    units: Units = Units.CHARACTERS
    has_key: bool = False
    """Whether what is sent twice with one key is there once."""
    can_send: bool = True
    """Whether anything can be sent there at all; what is said to a place where nothing can be is kept, and not sent."""
    can_edit: bool = False
    """Whether a message that was sent can say something else later. Then sending it tells what it is called."""
    can_attach: bool = False
    """Whether files can be sent."""
    shows_typing: bool = False
    needs_raw_ids: bool = False
    """Whether an agent has to know ids as they are, to mention people by them."""
    is_listener: bool = False
    """True if it only waits to be called, as a webhook server does. Every gateway runs such an adapter; one sends."""


class Equipment(NamedTuple):
    """What the adapter of a platform is given beside its settings."""

    places: Places
    files: Files
    folder: Path
    """Its own in the home, for what only it understands, such as the keys of a device. It is made when needed."""


class Post(NamedTuple):
    """Something to be sent."""

    route: SessionSource
    text: str
    key: str
    """The same whenever the same is sent again."""
    reply_to: str | None = None
    file: Attachment | None = None
    """A file that is sent; then the text is what stands below it, and may be empty."""


class Sent(NamedTuple):
    """What the platform calls it."""

    message_id: str | None = None


class SendFailed(SegueError):
    """It was not sent."""


class SendLater(SendFailed):
    """Nothing left this machine, or the platform says that it took nothing: it can be sent again, after a while."""

    def __init__(self, sentence: str, seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class SendUnknown(SendFailed):
    """It may have arrived."""


class SendRefused(SendFailed):
    """It will never arrive there."""


class Intake(Protocol):
    """Where a platform passes on what people say."""

    async def receive(self, inbound: Inbound) -> Receipt:
        """Take a message. When this returns it is safe, and the platform may be told so; when it raises it is not."""

    async def learn(self, source: SessionSource) -> None:
        """Take what is told of a place and of nobody's words: a new name of a group, say.

        It moves no clock and begins no turn, and who answers there goes on answering.
        """

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        """Somebody has deleted what they said: it is not answered, if nobody has begun to."""

    async def cursor(self, name: str) -> str | None:
        """How far the platform has been read."""

    async def advance(self, cursor: Cursor) -> None:
        """The platform has been read so far, and everything up to there was passed on or is nothing for us.

        A cursor that comes with a message moves with it; this is for what brings none.
        """

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        """Whether what somebody says there is answered, addressed to us or not. Files of nothing else are fetched."""

    async def is_welcome(self, source: SessionSource) -> bool:
        """Whether somebody may bring us into a chat: they would be heard there, or told how to be."""

    def connected(self) -> None:
        """The platform has answered. Until this is said, or a message comes, it counts as being connected to."""


class Platform(Protocol):
    name: str
    account: str
    """Which of our accounts there; empty when there is only one."""
    traits: Traits

    async def run(self, intake: Intake) -> None:
        """Be connected and pass on what arrives, until cancelled; raises what it cannot mend by trying again."""

    async def send(self, post: Post) -> Sent:
        """Send. Raises `SendLater`, `SendUnknown` or `SendRefused`."""

    async def edit(self, post: Post, message_id: str) -> None:
        """Let a message that was sent say something else; nothing is wrong if it says that already.

        Raises as `send` does: `SendRefused` when the message is not there any more, or cannot be edited any more.
        """

    async def typing(self, route: SessionSource) -> None:
        """Show that an answer is being written. It does not matter whether that works."""
