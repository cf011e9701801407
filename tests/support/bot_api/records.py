"""What is kept of a world, for the tests to look at. Moments are of the monotonic clock, which all processes share."""

from dataclasses import dataclass, field
from typing import Any

Entities = list[dict[str, Any]]


@dataclass
class Upload:
    """A file that the bot sent."""

    file_name: str
    mime_type: str
    size: int
    sha256: str


@dataclass
class Call:
    """A call that was taken. One that still waits, as a long poll does, has no answer yet."""

    number: int
    method: str
    params: dict[str, Any]
    uploads: dict[str, Upload]
    at: float
    ended_at: float | None = None
    status: int | None = None
    answer: Any = None


@dataclass
class Untaken:
    """A call that never reached the bot's world, because of a trouble."""

    method: str
    params: dict[str, Any]
    at: float


@dataclass
class Version:
    """What a message said from a moment on; of a file, its caption."""

    text: str
    entities: Entities
    at: float


@dataclass
class Kept:
    """A message as it stands now, and all that it said before."""

    chat_id: int
    message_id: int
    is_by_bot: bool
    message: dict[str, Any]
    """As the Bot API shows it."""
    versions: list[Version] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)
    deleted_at: float | None = None

    @property
    def text(self) -> str:
        return self.versions[-1].text

    @property
    def entities(self) -> Entities:
        return self.versions[-1].entities

    @property
    def thread(self) -> int | None:
        found: int | None = self.message.get("message_thread_id")
        return found

    @property
    def reply_to(self) -> int | None:
        replied = self.message.get("reply_to_message")
        return None if replied is None else int(replied["message_id"])


@dataclass
class Delivery:
    """An update that was posted to the webhook; a failure to connect has no status."""

    update_id: int
    at: float
    status: int | None


@dataclass
class State:
    """How things are at this moment."""

    complaints: list[str]
    """What no bot should do."""
    commands: dict[str, list[dict[str, Any]]]
    """By scope: default, all_private_chats, chat:5, chat_member:5:7, each followed by its language if it has one."""
    pending: list[int]
    """The ids of the updates that the bot has not confirmed."""
    is_polled: bool
    """A long poll waits."""
    allowed_updates: list[str]
    webhook: dict[str, Any] | None
