"""What is known of the place that a lane belongs to: its names for people, and its ids as the platform has them."""

from dataclasses import replace
from typing import Any, NamedTuple

from segue.core.sources import SessionSource

_SAME_PLACE = ("platform", "account", "chat_id", "thread_id")
_NAMES_OF_PLACE = ("chat_name", "chat_topic", "label", "subject", "space", "guild_id", "parent_chat_id", "chat_id_alt")


class Origin(NamedTuple):
    """The place of a lane as others are shown it."""

    label: str
    """What people would call it."""
    provider: str
    sender: str
    """The raw id of whoever spoke last."""
    recipient: str
    """The raw id of where answers go."""
    account: str | None
    thread: str | None
    display_name: str | None
    subject: str | None
    room: str | None
    space: str | None

    def to_dict(self) -> dict[str, Any]:
        """Everything that says something; who and where under the names that other programs have for it."""
        said = self._asdict()
        said["from"], said["to"] = said.pop("sender"), said.pop("recipient")
        return {name: value for name, value in said.items() if value}


def origin_of(source: SessionSource) -> Origin:
    is_direct = source.chat_type == "dm"
    return Origin(
        label=_label(source),
        provider=source.platform,
        sender=source.user_id or source.chat_id,
        recipient=source.chat_id or source.user_id or "",
        account=source.account,
        thread=source.thread_id,
        display_name=source.chat_name or (source.user_name if is_direct else None),
        subject=source.subject or (source.chat_name if source.chat_type == "group" else None),
        room=None if is_direct or source.chat_type == "group" else source.chat_name or source.chat_id,
        space=source.space or source.guild_id,
    )


def is_same_place(one: SessionSource, other: SessionSource) -> bool:
    return all((getattr(one, name) or "") == (getattr(other, name) or "") for name in _SAME_PLACE)


def known_now(before: SessionSource | None, now: SessionSource) -> SessionSource:
    """A place as it is told now; what nobody says of it this time is as it was."""
    if before is None or not is_same_place(before, now):
        return now
    return replace(now, **_names(now, before))


def renamed(lane: SessionSource, said: SessionSource) -> SessionSource:
    """A lane's place with the names that are told of it; who spoke there last is as it was."""
    return replace(lane, **_names(said, lane))


def _names(newer: SessionSource, older: SessionSource) -> dict[str, Any]:
    names = [*_NAMES_OF_PLACE, *(["user_name"] if newer.participant == older.participant else [])]
    return {name: getattr(newer, name) or getattr(older, name) for name in names}


def _label(source: SessionSource) -> str:
    if source.chat_type == "dm":
        return source.label or source.user_name or source.chat_name or source.participant or source.chat_id
    place = source.subject or source.chat_name or source.chat_id
    named = f"{source.label} · {place}" if source.label and source.label != place else place
    return f"{named} · {source.thread_id}" if source.thread_id else named
