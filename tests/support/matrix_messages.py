"""The messages of a Matrix room as they stand, told from its events. Nothing here asks a server."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

Event = dict[str, Any]
UNREADABLE = "unreadable"
"""The kind of a message whose key never came."""


@dataclass(frozen=True)
class Message:
    event_id: str
    sender: str
    msgtype: str
    body: str
    formatted_body: str | None
    thread: str | None
    """The event that its thread began with."""
    reply_to: str | None
    mentions: tuple[str, ...]
    versions: tuple[str, ...]
    """What its body was, in order; the last is what it is."""
    edits: tuple[str, ...]
    """The events that made those versions out of the first."""
    transaction_id: str | None
    """Only the device that sent a message is told."""
    is_redacted: bool = False
    content: Event = field(default_factory=dict, repr=False)


def messages(events: Iterable[Event]) -> list[Message]:
    """In order, edits applied. What was redacted is still there, without its words."""
    found: dict[str, Message] = {}
    for event in events:
        if event["type"] not in ("m.room.message", "m.room.encrypted") or "state_key" in event:
            continue
        edited = found.get(_edited(event) or "")
        if edited is None:
            found[event["event_id"]] = _message(event)
        elif edited.sender == event["sender"]:
            found[edited.event_id] = _apply(edited, event)
    return list(found.values())


def _relation(event: Event) -> Event:
    relation: Event = event["content"].get("m.relates_to", {})
    return relation


def _edited(event: Event) -> str | None:
    relation = _relation(event)
    return relation.get("event_id") if relation.get("rel_type") == "m.replace" else None


def _message(event: Event) -> Message:
    content = event["content"]
    relation = _relation(event)
    is_fallback = relation.get("is_falling_back", False)
    return Message(
        event_id=event["event_id"],
        sender=event["sender"],
        msgtype=content.get("msgtype", UNREADABLE if event["type"] == "m.room.encrypted" else ""),
        body=content.get("body", ""),
        formatted_body=content.get("formatted_body"),
        thread=relation.get("event_id") if relation.get("rel_type") == "m.thread" else None,
        reply_to=None if is_fallback else relation.get("m.in_reply_to", {}).get("event_id"),
        mentions=_mentions(content),
        versions=(content.get("body", ""),),
        edits=(),
        transaction_id=event.get("unsigned", {}).get("transaction_id"),
        is_redacted="redacted_because" in event.get("unsigned", {}),
        content=content,
    )


def _apply(message: Message, event: Event) -> Message:
    content = event["content"].get("m.new_content", {})
    return replace(
        message,
        msgtype=content.get("msgtype", message.msgtype),
        body=content.get("body", ""),
        formatted_body=content.get("formatted_body"),
        mentions=_mentions(content),
        versions=(*message.versions, content.get("body", "")),
        edits=(*message.edits, event["event_id"]),
        content=content,
    )


def _mentions(content: Event) -> tuple[str, ...]:
    return tuple(content.get("m.mentions", {}).get("user_ids", ()))
