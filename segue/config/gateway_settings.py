"""The settings of the gateway: where it listens, what waits, how answers appear, what models are told of people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from segue.config.declaring import about, is_word, nothing
from segue.config.kinds import Amount, Choice, Flag, Listing, Number, Section, Table, Text
from segue.config.naming import PLATFORM
from segue.core.addresses import is_network
from segue.core.queueing import Drop, QueueMode, QueueRules
from segue.core.streaming import Streaming
from segue.core.turn_slots import USUAL_LIMITS, TurnLimits

_QUEUE, _STREAMING = QueueRules(), Streaming()
_LONGEST_CURSOR = 8

_MODE = about(
    Choice(QueueMode),
    "What becomes of what waits: it is one turn together (collect), each is a turn of its own (followup), the turn "
    "that runs hears it (steer), or that one ends and the newest is answered (interrupt).",
)
_DEBOUNCE = about(Amount(3600), "For how many seconds more is waited for before a turn begins.")
_CAP = about(Number(1, 1000), "How many messages may wait in a lane.")
_DROP = about(
    Choice(Drop),
    "Which one goes when there are more: the oldest, of which a line is kept (summarize), the oldest (old), or the new "
    "one (new); whoever said it is told once in a burst.",
)

_ENABLED = about(Flag(), "Whether an answer is shown before it is finished, where a platform lets messages be edited.")
_EDIT_INTERVAL = about(Amount(3600), "Seconds between two edits of a message, at least.")
_BUFFER_THRESHOLD = about(Number(0, 100_000), "Characters that have to be new for an edit, at least.")
_CURSOR = about(
    Text(
        f"at most {_LONGEST_CURSOR} printable characters",
        lambda text: len(text) <= _LONGEST_CURSOR and (text == "" or text.isprintable()),
    ),
    "What stands behind a text that is not finished.",
)


def _is_host(text: str) -> bool:
    return is_word(text) and not set(text) & set(" /")


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """How much of what people send along is kept."""

    largest_mb: int = field(
        default=20, metadata=about(Number(0, 2000), "Of one file, in millions of bytes; what is larger is only told.")
    )
    total_mb: int = field(
        default=2000, metadata=about(Number(0, 1_000_000), "Of all files together, in millions of bytes.")
    )


@dataclass(frozen=True, slots=True)
class QueueOverrides:
    """What is different on a platform."""

    mode: QueueMode | None = field(default=None, metadata=_MODE)
    debounce: float | None = field(default=None, metadata=_DEBOUNCE)
    cap: int | None = field(default=None, metadata=_CAP)
    drop: Drop | None = field(default=None, metadata=_DROP)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What becomes of messages that come while an answer is being written."""

    mode: QueueMode = field(default=_QUEUE.mode, metadata=_MODE)
    debounce: float = field(default=_QUEUE.debounce.total_seconds(), metadata=_DEBOUNCE)
    cap: int = field(default=_QUEUE.cap, metadata=_CAP)
    drop: Drop = field(default=_QUEUE.drop, metadata=_DROP)
    by_platform: Mapping[str, QueueOverrides] = field(
        default_factory=nothing,
        metadata=about(
            Table(PLATFORM, Section(QueueOverrides), "a mapping from a platform to mode, debounce, cap and drop"),
            "What is different on a platform: {slack: {mode: steer}}.",
        ),
    )

    def on(self, platform: str) -> QueueRules:
        """What holds on a platform, as the core reads it."""
        said = _merged(self, self.by_platform.get(platform), ("mode", "debounce", "cap", "drop"))
        return QueueRules(said["mode"], timedelta(seconds=said["debounce"]), said["cap"], said["drop"])


@dataclass(frozen=True, slots=True)
class StreamingOverrides:
    """What is different on a platform."""

    enabled: bool | None = field(default=None, metadata=_ENABLED)
    edit_interval: float | None = field(default=None, metadata=_EDIT_INTERVAL)
    buffer_threshold: int | None = field(default=None, metadata=_BUFFER_THRESHOLD)
    cursor: str | None = field(default=None, metadata=_CURSOR)


@dataclass(frozen=True, slots=True)
class StreamingSettings:
    """How an answer is shown on a platform while it is being written."""

    enabled: bool = field(default=_STREAMING.is_enabled, metadata=_ENABLED)
    edit_interval: float = field(default=_STREAMING.edit_interval, metadata=_EDIT_INTERVAL)
    buffer_threshold: int = field(default=_STREAMING.buffer_threshold, metadata=_BUFFER_THRESHOLD)
    cursor: str = field(default=_STREAMING.cursor, metadata=_CURSOR)
    by_platform: Mapping[str, StreamingOverrides] = field(
        default_factory=nothing,
        metadata=about(
            Table(
                PLATFORM,
                Section(StreamingOverrides),
                "a mapping from a platform to enabled, edit_interval, buffer_threshold and cursor",
            ),
            "What is different on a platform: {discord: {edit_interval: 2}}.",
        ),
    )

    def on(self, platform: str) -> Streaming:
        """What holds on a platform, as the core reads it."""
        names = ("edit_interval", "buffer_threshold", "cursor", "enabled")
        said = _merged(self, self.by_platform.get(platform), names)
        return Streaming(said["edit_interval"], said["buffer_threshold"], said["cursor"], said["enabled"])


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """What models are told of people."""

    redact_ids: bool = field(
        default=True,
        metadata=about(
            Flag(),
            "Whether models are told other ids of people and chats than those of the platform; where people are "
            "mentioned by their ids they are told the real ones.",
        ),
    )


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Where the gateway listens."""

    host: str = field(
        default="127.0.0.1",
        metadata=about(
            Text("a name or an address of this machine", _is_host), "The address; 127.0.0.1 is this machine."
        ),
    )
    port: int = field(default=8766, metadata=about(Number(0, 65_535), "The port; 0 is any that is free."))
    hosts: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("a name such as segue.example.org", _is_host)),
            "Names by which programs call it, beside those of this machine to itself.",
        ),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("an address such as 127.0.0.1, or a network such as 10.0.0.0/8", is_network)),
            "Proxies in front of it whose X-Forwarded-For says who calls; nobody else's is believed.",
        ),
    )
    max_turns: int = field(
        default=USUAL_LIMITS.in_all,
        metadata=about(
            Number(1, 10_000), "How many turns run at once; the others wait in line, each person's in turn."
        ),
    )
    max_turns_per_person: int = field(
        default=USUAL_LIMITS.per_person,
        metadata=about(Number(1, 10_000), "How many of them may be of one person who is not an owner."),
    )

    @property
    def turn_limits(self) -> TurnLimits:
        return TurnLimits(self.max_turns, self.max_turns_per_person)


def _merged(general: object, overrides: object, names: tuple[str, ...]) -> dict[str, Any]:
    """What is said in general, and in its place what is said for a platform."""
    special = {name: value for name in names if (value := getattr(overrides, name, None)) is not None}
    return {name: getattr(general, name) for name in names} | special


QUEUE, STREAMING = Section(QueueSettings), Section(StreamingSettings)
PRIVACY, GATEWAY = Section(PrivacySettings), Section(GatewaySettings)
ATTACHMENTS = Section(AttachmentSettings)
