"""Who may speak to us, and who may command.

Everything here is decided from what is known of a message; who the owners are and who was let in are arguments. An
adapter says what it saw, and never who somebody is to us.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from segue.core.phone_ids import is_among
from segue.core.sources import SessionSource
from segue.core.text import storable

EVERY_GROUP = "*"
OWNER_COMMANDS = frozenset({"handoff", "restart", "send", "sethome"})
"""Commands that change what others get or where it goes; from anybody else they are ignored."""

_COMMAND = re.compile(r"\s*(?:@[^\s/@]+\s+)?/(?P<name>[A-Za-z]+)(?=[@\s]|$)")


class Role(StrEnum):
    """What somebody is to us."""

    OWNER = "owner"
    PERSON = "person"


class DmAccess(StrEnum):
    """What becomes of direct messages of people whom nobody let in."""

    PAIRING = "pairing"
    ALLOWLIST = "allowlist"
    OPEN = "open"
    DISABLED = "disabled"
    """Nobody's direct messages are answered but those of owners."""


class AccessRules(NamedTuple):
    """Who may speak on a platform beside owners."""

    dm: DmAccess = DmAccess.PAIRING
    groups: frozenset[str] = frozenset()
    """Groups and channels in which everybody may."""
    allow: frozenset[str] = frozenset()
    """People who may everywhere."""
    allow_roles: frozenset[str] = frozenset()
    """Roles whose holders may everywhere; which roles somebody has is known to the adapter."""
    allow_bots: bool = False
    mention: bool = True
    """Whether one has to be addressed where others talk too."""


class Reason(StrEnum):
    """Why a message is ignored."""

    OWN = "it is our own"
    BOT = "bots are not answered"
    NO_DIRECT_MESSAGES = "direct messages are not answered"
    STRANGER = "nobody let its sender in"
    NOT_ADDRESSED = "it is not addressed to us"


class Allowed(NamedTuple):
    role: Role


class AskToPair(NamedTuple):
    """Its sender is told how to be let in, and nothing else happens."""


class Ignored(NamedTuple):
    """Nothing happens, and nobody is told."""

    reason: Reason


Access = Allowed | AskToPair | Ignored


def decide(
    source: SessionSource,
    rules: AccessRules,
    known_as: Role | None,
    *,
    is_mention: bool = False,
) -> Access:
    """Whether somebody may speak; `known_as` is what they were made by the settings or by pairing."""
    if source.is_bot and not rules.allow_bots:
        return Ignored(Reason.BOT)
    role = _role(source, rules, known_as)
    if source.chat_type == "dm":
        return _in_private(source, rules, role)
    return _in_a_room(source, rules, role, is_mention=is_mention)


def can_be_known(peer: str) -> bool:
    """Whether there is a person, by an id that can be kept as it is: nobody is ever taken for somebody else."""
    return peer != "" and peer == storable(peer)


def is_withheld(text: str, role: Role, *, is_person: bool = True) -> bool:
    """Whether a message is an owner's command that somebody else gave: it does nothing, and no model reads it.

    Whatever stands behind the name of the command, it is one; and nothing that runs by itself is an owner.
    """
    form = _COMMAND.match(text)
    if form is None or form["name"].lower() not in OWNER_COMMANDS:
        return False
    return role is not Role.OWNER or not is_person


def _role(source: SessionSource, rules: AccessRules, known_as: Role | None) -> Role | None:
    """What the sender is to us. A bot is never an owner, whatever it is called."""
    if known_as is not None:
        return Role.PERSON if source.is_bot else known_as
    is_listed = bool(source.peer) and is_among(source.platform, source.peer, rules.allow)
    has_role = bool(rules.allow_roles) and source.role_authorized
    return Role.PERSON if is_listed or has_role else None


def _in_private(source: SessionSource, rules: AccessRules, role: Role | None) -> Access:
    if role is Role.OWNER:
        return Allowed(role)
    if rules.dm is DmAccess.DISABLED:
        return Ignored(Reason.NO_DIRECT_MESSAGES)
    if role is not None or rules.dm is DmAccess.OPEN:
        return Allowed(Role.PERSON)
    is_somebody = can_be_known(source.peer) and not source.is_bot  # two bots would never stop asking
    can_pair = rules.dm is DmAccess.PAIRING and is_somebody
    return AskToPair() if can_pair else Ignored(Reason.STRANGER)


def _in_a_room(source: SessionSource, rules: AccessRules, role: Role | None, *, is_mention: bool) -> Access:
    is_open = EVERY_GROUP in rules.groups or not rules.groups.isdisjoint(_rooms(source))
    if role is None and not is_open:
        return Ignored(Reason.STRANGER)
    if rules.mention and not is_mention:
        return Ignored(Reason.NOT_ADDRESSED)
    return Allowed(role or Role.PERSON)


def _rooms(source: SessionSource) -> set[str]:
    """The chat, and the one that a thread belongs to."""
    return {room for room in (source.chat_id, source.chat_id_alt, source.parent_chat_id) if room}
