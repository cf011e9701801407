"""Which deliveries are held back.

A rule matches a delivery when everything that it names is so; a rule that names nothing matches all. Any rule that
denies wins over all that allow, and where no rule matches the default counts. What was chosen for a session counts more
than all rules. Answers to commands are never held back: who turned sending off must be able to turn it on again.
"""

from enum import StrEnum
from typing import NamedTuple

from segue.core.ids import LaneKey
from segue.core.sources import SessionSource


class Action(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class Override(StrEnum):
    """What was chosen for a session."""

    ON = "on"
    OFF = "off"
    INHERIT = "inherit"


class Match(NamedTuple):
    """What a rule is about. What is not named may be anything."""

    platform: str | None = None
    chat_type: str | None = None
    """dm, group, channel or thread; a thread of a group is also the group."""
    key_prefix: str | None = None
    """How the lane's key begins behind `agent:<agent>:`."""
    raw_key_prefix: str | None = None
    """How the whole key begins."""


class SendRule(NamedTuple):
    action: Action
    match: Match = Match()


class SendPolicy(NamedTuple):
    rules: tuple[SendRule, ...] = ()
    default: Action = Action.ALLOW


class Delivery(NamedTuple):
    """Something that is about to be sent."""

    route: SessionSource
    key: LaneKey
    """The lane that it comes from."""
    is_control: bool = False
    """Whether it answers a command."""


class Suppression(NamedTuple):
    """Why a delivery is held back."""

    sentence: str
    rule: SendRule | None = None
    """The one that denied it, if one did."""


def suppress(delivery: Delivery, policy: SendPolicy, override: str | None = None) -> Suppression | None:
    """Why this is not sent; None when it is. `override` is the session's own choice, if it has made one."""
    if delivery.is_control or override == Override.ON:
        return None
    if override == Override.OFF:
        return Suppression("Sending is turned off for this session; /send on turns it on.")
    matching = [rule for rule in policy.rules if _matches(rule.match, delivery)]
    denying = next((rule for rule in matching if rule.action is Action.DENY), None)
    if denying is not None:
        return Suppression(f"The send policy denies {_described(denying.match)}.", denying)
    if matching or policy.default is Action.ALLOW:
        return None
    return Suppression("The send policy denies what none of its rules allows.")


def _matches(match: Match, delivery: Delivery) -> bool:
    route, key = delivery.route, delivery.key
    return (
        match.platform in (None, route.platform)
        and (match.chat_type is None or match.chat_type in _types(route))
        and (match.key_prefix is None or _without_agent(key).startswith(match.key_prefix))
        and (match.raw_key_prefix is None or key.startswith(match.raw_key_prefix))
    )


def _types(route: SessionSource) -> set[str]:
    """The types of chat that a place is."""
    types = {route.chat_type}
    if route.chat_type == "thread":
        types.add("group")
    elif route.thread_id and route.chat_type != "dm":
        types.add("thread")
    return types


def _without_agent(key: LaneKey) -> str:
    tag, _, rest = key.partition(":")
    return rest.partition(":")[2] if tag == "agent" else key


def _described(match: Match) -> str:
    named = [f"{name} {value}" for name, value in match._asdict().items() if value is not None]
    return " and ".join(named) or "everything"
