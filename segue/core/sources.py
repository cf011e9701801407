"""Where a message came from: platform, account, chat, thread and person, as its adapter saw them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Self

from segue.core.errors import InvalidSource
from segue.core.phone_ids import canonical_id
from segue.core.text import storable

LONGEST_ID = 500
LONGEST_NAME = 1000
_MOST_REMEMBERED = 1024
_NAMES = frozenset({"chat_name", "user_name", "chat_topic", "label", "subject", "space"})

API_SERVER, BATCH, CRON, WEBHOOK = "api_server", "batch", "cron", "webhook"
UNATTENDED = frozenset({BATCH, CRON, WEBHOOK})
"""Where programs speak, and no people; nothing is sent there."""
ALWAYS_CONNECTED = frozenset({API_SERVER, BATCH, CRON})
"""Platforms that every gateway has, whatever its settings name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSource:
    """The full origin of one message."""

    platform: str
    chat_id: str = ""
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    is_bot: bool = False
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    role_authorized: bool = False
    account: str | None = None
    label: str | None = None
    """What the platform calls the conversation."""
    subject: str | None = None
    space: str | None = None
    """The name of the server or workspace, whose id is `guild_id`."""

    @property
    def description(self) -> str:
        """The origin as a person would name it: `DM with Alice`, `group: My Group, thread: 12345`."""
        if self.platform == "cli":
            return "terminal"
        if self.chat_type == "dm":
            return f"DM with {self.user_name or self.user_id or 'someone'}"
        parts = [f"{self.chat_type}: {self.chat_name or self.chat_id}"]
        if self.thread_id:
            parts.append(f"thread: {self.thread_id}")
        return ", ".join(parts)

    @property
    def participant(self) -> str:
        """The person, by the id that stays the same when the platform has two; empty when unknown."""
        return canonical_id(self.platform, self.user_id_alt or self.user_id or "")

    @property
    def peer(self) -> str:
        """The person as others name them; in direct messages without a person, the chat stands for them."""
        return self.participant or (canonical_id(self.platform, self.chat_id) if self.chat_type == "dm" else "")

    def to_dict(self) -> dict[str, Any]:
        """Every field that says something, ready for JSON."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) not in (None, "", False)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; fields that a newer program added are left aside."""
        if not isinstance(data.get("platform"), str):
            raise InvalidSource("A source needs a platform.")
        said: dict[str, Any] = {name: data[name] for name in _FIELDS if data.get(name) is not None}
        for name, value in said.items():
            said[name] = value if isinstance(value, bool | str) else str(value)
        return cls(**said)


_FIELDS = tuple(field.name for field in fields(SessionSource))


@lru_cache(_MOST_REMEMBERED)
def source_from(text: str) -> SessionSource:
    """A source as it is stored, which is asked for again and again while a message is answered."""
    return SessionSource.from_dict(json.loads(text))


def kept_id(given: str) -> str:
    """An id in characters that every database holds, and not endless; two that differ stay two."""
    clean = storable(given)
    if clean == given and len(given) <= LONGEST_ID:
        return given
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{clean[: LONGEST_ID - 40]}~{digest[:32]}"


def kept_source(source: SessionSource) -> SessionSource:
    """A source whose ids and names every database holds."""
    said = {name: value for name in _FIELDS if isinstance(value := getattr(source, name), str)}
    clean = {name: storable(one)[:LONGEST_NAME] if name in _NAMES else kept_id(one) for name, one in said.items()}
    changed: dict[str, Any] = {name: one for name, one in clean.items() if one != said[name]}
    return replace(source, **changed) if changed else source
