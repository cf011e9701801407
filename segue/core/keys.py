"""The deterministic name of the place a conversation lives in.

    agent:<agent>:<platform>[:account:<account>]:<chat_type>[:<chat_id>][:topic:<thread>][:<participant>]
    agent:<agent>:<main_key>                    the owner's direct messages, all in one lane
    agent:<agent>:dm:<platform>%3A<peer>        one person, whatever the account; or dm:<name> for a linked person
    agent:<agent>:cron:<job> · batch:<name>:<line> · hook:<id> · node-<id> · api:<client>:<conversation> · subagent:<id>

Segments are percent-encoded, and every optional part stands behind a tag or after a part that is always written.
So two lanes never share a key, and a key can be read back into its lane.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from segue.core import sources
from segue.core.errors import InvalidKey, InvalidSource
from segue.core.ids import LaneKey, encode_segment
from segue.core.phone_ids import WHATSAPP, canonical_id, is_among, is_number
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource

DEFAULT_AGENT = "main"
CHAT_TYPES = ("dm", "group", "channel")
RESERVED = frozenset({"account", "agent", "api", "batch", "cron", "dm", "hook", "node", "person", "subagent", "topic"})
API, BATCH, JOB, HOOK = "api", "batch", "cron", "hook"
_TASK_KINDS = {BATCH: 2, JOB: 1, HOOK: 1, API: 2, "subagent": 1, "node": 1}  # how many names each has
_NODE = "node-"

_MOST_REMEMBERED = 1024
_PLATFORM = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_ENCODED = re.compile("(?:%[0-9A-F]{2})+")


@dataclass(frozen=True, slots=True)
class Chat:
    """A place on a platform. Empty means absent."""

    platform: str
    chat_type: str
    chat_id: str = ""
    thread: str = ""
    participant: str = ""
    account: str = ""
    agent: str = DEFAULT_AGENT

    def __post_init__(self) -> None:
        if not _PLATFORM.fullmatch(self.platform) or self.platform in RESERVED:
            raise InvalidSource(f"{self.platform!r} cannot be the name of a platform.")
        if self.chat_type not in CHAT_TYPES:
            raise InvalidSource(f"{self.chat_type!r} is no type of chat: use dm, group, channel or thread.")

    @property
    def room(self) -> Self | None:
        """The place as everybody in it sees it; None where nobody else can look on."""
        return None if self.chat_type == "dm" else replace(self, participant="")

    @property
    def is_shared(self) -> bool:
        """Whether several people can be in this conversation."""
        return self.chat_type != "dm" and not self.participant


@dataclass(frozen=True, slots=True)
class Person:
    """One person's direct messages wherever they come from; `name` is a link name or `platform:peer`."""

    name: str
    agent: str = DEFAULT_AGENT


@dataclass(frozen=True, slots=True)
class Main:
    """The owner's direct messages, all of them."""

    main_key: str = "main"
    agent: str = DEFAULT_AGENT

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.main_key) or self.main_key in RESERVED or self.main_key.startswith(_NODE):
            raise InvalidKey(
                f"{self.main_key!r} cannot be the main key: use small letters and digits, no reserved word."
            )


@dataclass(frozen=True, slots=True)
class Task:
    """Something that runs by itself: a cron job, a line of a batch, a hook, a node, an API conversation, a subagent."""

    kind: str
    name: tuple[str, ...]
    agent: str = DEFAULT_AGENT

    def __post_init__(self) -> None:
        if _TASK_KINDS.get(self.kind) != len(self.name):
            raise InvalidKey(f"{self.kind}:{':'.join(self.name)} is no lane of its own.")


Place = Chat | Person | Main | Task


@dataclass(frozen=True, slots=True)
class KeyRules:
    """The settings that decide which messages share a lane."""

    dm_scope: DmScope = DmScope.PER_CHANNEL_PEER
    main_key: str = "main"
    identity_links: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owners: frozenset[str] = frozenset()
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False

    def __post_init__(self) -> None:
        Main(self.main_key)  # refuses what could be mistaken for another lane
        for name in self.identity_links:
            if not name or ":" in name:
                raise InvalidKey(f"{name!r} cannot name a linked person: it must not be empty or contain a colon.")

    def linked_name(self, platform: str, peer: str) -> str | None:
        """The name under which this person's ids on several platforms were linked."""
        links = self.identity_links.items()
        return next((name for name, ids in links if peer and is_among(platform, peer, _on(platform, ids))), None)

    def is_owner(self, platform: str, peer: str) -> bool:
        """Whether this person is an owner. Somebody unknown never is."""
        return bool(peer) and is_among(platform, peer, _on(platform, self.owners))


def _on(platform: str, people: Iterable[str]) -> list[str]:
    """The ids on one platform, of people who are listed with their platform."""
    return [one.removeprefix(f"{platform}:") for one in people if one.startswith(f"{platform}:")]


def is_shared(place: Place) -> bool:
    """Whether several people can be in a conversation."""
    return isinstance(place, Chat) and place.is_shared


def place_of(source: SessionSource, rules: KeyRules, agent: str = DEFAULT_AGENT) -> Place:
    """The lane a message belongs to."""
    if task := _task(source, agent):
        return task
    chat = _normalised(source, agent)
    if chat.chat_type == "dm":
        return _direct(chat, source.participant or chat.chat_id, rules)
    per_user = rules.thread_sessions_per_user if chat.thread else rules.group_sessions_per_user
    return replace(chat, participant=source.participant) if per_user else chat


def build_key(place: Place) -> LaneKey:
    """The key of a lane. Equal lanes have equal keys and different lanes different ones."""
    match place:
        case Chat():
            segments = _chat_segments(place)
        case Person(name=name):
            segments = ["dm", name]
        case Main(main_key=main_key):
            segments = [main_key]
        case Task(kind="node", name=name):
            segments = [_NODE + "".join(name)]
        case Task(kind=kind, name=name):
            segments = [kind, *name]
    return LaneKey(":".join(map(encode_segment, ["agent", place.agent, *segments])))


@lru_cache(_MOST_REMEMBERED)
def parse_key(key: str, main_key: str = "main") -> Place:
    """The lane of a key; the inverse of `build_key`."""
    tag, *rest = (_decode(segment) for segment in key.split(":"))
    if tag != "agent" or len(rest) < 2 or not rest[0]:
        raise InvalidKey(f"{key!r} is no lane key: it must begin with agent:<agent>:.")
    place = _parsed(rest[0], rest[1:], main_key)
    if place is None or build_key(place) != key:
        raise InvalidKey(f"{key!r} is no lane key.")
    return place


def is_isolated(key: str) -> bool:
    """Whether everything in a lane has a session of its own."""
    return key.split(":")[2:3] in ([JOB], [BATCH])


def _task(source: SessionSource, agent: str) -> Task | None:
    """The lane of something that no person says in a chat."""
    match source.platform:
        case sources.WEBHOOK:
            return Task(HOOK, (source.chat_id,), agent)
        case sources.CRON:
            return Task(JOB, (source.chat_id,), agent)
        case sources.BATCH:
            return Task(BATCH, (source.chat_id, source.thread_id or ""), agent)
        case sources.API_SERVER:
            return Task(API, (source.participant, source.chat_id), agent)
    return None


def _normalised(source: SessionSource, agent: str) -> Chat:
    chat_type, chat_id, thread = source.chat_type, source.chat_id or "", source.thread_id or ""
    if chat_type == "thread":
        chat_type, chat_id, thread = "group", source.parent_chat_id or chat_id, thread or chat_id
    if chat_type == "dm":
        chat_id = _direct_chat(source)
    account = source.account or ""
    account = "" if account == "default" else account
    return Chat(source.platform, chat_type, chat_id, thread, account=account, agent=agent)


def _direct_chat(source: SessionSource) -> str:
    """The id of a direct chat: that of the person where there is none, or where only the person's has the number."""
    chat_id = canonical_id(source.platform, source.chat_id)
    is_anonymous = chat_id.endswith("@lid") and source.platform == WHATSAPP and is_number(source.participant)
    return source.participant if is_anonymous or not chat_id else chat_id


def _direct(chat: Chat, peer: str, rules: KeyRules) -> Place:
    if rules.dm_scope is DmScope.PER_ACCOUNT_CHANNEL_PEER:
        return chat
    if rules.dm_scope is DmScope.MAIN:
        return Main(rules.main_key, chat.agent) if rules.is_owner(chat.platform, peer) else chat
    if name := rules.linked_name(chat.platform, peer):
        return Person(name, chat.agent)
    if rules.dm_scope is DmScope.PER_PEER and peer:
        return Person(f"{chat.platform}:{peer}", chat.agent)
    return chat


def _chat_segments(chat: Chat) -> list[str]:
    segments = [chat.platform]
    if chat.account:
        segments += ["account", chat.account]
    segments.append(chat.chat_type)
    if chat.chat_id or chat.thread or chat.participant:
        segments.append(chat.chat_id)
    if chat.thread:
        segments += ["topic", chat.thread]
    if chat.participant:
        segments.append(chat.participant)
    return segments


def _parsed(agent: str, segments: list[str], main_key: str) -> Place | None:
    match segments:
        case [name] if name == main_key:
            return Main(name, agent)
        case [name] if name.startswith(_NODE):
            return Task("node", (name.removeprefix(_NODE),), agent)
        case ["dm", name]:
            return Person(name, agent)
        case [kind, *name] if kind != "node" and _TASK_KINDS.get(kind) == len(name):
            return Task(kind, tuple(name), agent)
        case [platform, "account", account, chat_type, *where] if _is_chat(platform, chat_type):
            return _chat(Chat(platform, chat_type, account=account, agent=agent), where)
        case [platform, chat_type, *where] if _is_chat(platform, chat_type):
            return _chat(Chat(platform, chat_type, agent=agent), where)
    return None


def _is_chat(platform: str, chat_type: str) -> bool:
    return chat_type in CHAT_TYPES and platform not in RESERVED and _PLATFORM.fullmatch(platform) is not None


def _chat(chat: Chat, where: list[str]) -> Chat | None:
    match where:
        case []:
            return chat
        case [chat_id]:
            return replace(chat, chat_id=chat_id)
        case [chat_id, "topic", thread]:
            return replace(chat, chat_id=chat_id, thread=thread)
        case [chat_id, "topic", thread, participant]:
            return replace(chat, chat_id=chat_id, thread=thread, participant=participant)
        case [chat_id, participant]:
            return replace(chat, chat_id=chat_id, participant=participant)
    return None


def _decode(segment: str) -> str:
    def raw(match: re.Match[str]) -> str:
        octets = bytes.fromhex(match[0].replace("%", ""))
        try:
            return octets.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise InvalidKey(f"{segment!r} in a lane key is not well encoded.") from error

    return _ENCODED.sub(raw, segment)
