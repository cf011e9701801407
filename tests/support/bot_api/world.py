"""What there is around one bot: chats, people, messages and files."""

import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from bot_api.files import Files
from bot_api.records import Call, Delivery, Kept, Untaken, Upload, Version
from bot_api.refusals import Refused, bad, too_many
from bot_api.troubles import Troubles
from bot_api.updates import Updates
from bot_api.webhooks import Webhook

_SUPERGROUPS = -1_000_000_000_000
_TOLD = ("id", "type", "title", "username", "first_name", "last_name", "is_forum")


@dataclass
class Chat:
    info: dict[str, Any]
    """As a message shows it."""
    threads: set[int] = field(default_factory=set)
    members: dict[int, str] = field(default_factory=dict)
    refusal: tuple[int, str] | None = None
    """What is answered to whatever is sent here."""
    migrated_to: int | None = None
    sent_at: float = -math.inf
    last_message: int = 0

    @property
    def id(self) -> int:
        return int(self.info["id"])

    @property
    def type(self) -> str:
        return str(self.info["type"])

    @property
    def has_topics(self) -> bool:
        return bool(self.info.get("is_forum")) or self.type == "private"


class World:
    def __init__(self, bot: dict[str, Any]) -> None:
        self.bot = bot
        self.token = f"{bot['id']}:AA{secrets.token_urlsafe(64)[:33]}"
        self.chats: dict[int, Chat] = {}
        self.users: dict[int, dict[str, Any]] = {bot["id"]: bot}
        self.messages: dict[tuple[int, int], Kept] = {}
        self.files = Files()
        self.updates = Updates()
        self.webhook: Webhook | None = None
        self.troubles = Troubles()
        self.calls: list[Call] = []
        self.untaken: list[Untaken] = []
        self.complaints: list[str] = []
        self.deliveries: list[Delivery] = []
        self.commands: dict[str, list[dict[str, Any]]] = {}
        self.queries: set[str] = set()
        """The callback queries that wait for an answer."""
        self.seconds_between = 0.0
        """How long a chat must be left alone between two messages or edits."""
        self._last_message = 0

    def user(self, user_id: int, **details: Any) -> dict[str, Any]:
        known = self.users.setdefault(user_id, {"id": user_id, "is_bot": False, "first_name": f"Person {user_id}"})
        known.update(details)
        return known

    def chat(self, chat_id: int, **details: Any) -> Chat:
        """A chat that is there from now on, of the kind that its number suggests."""
        if chat_id not in self.chats:
            self.chats[chat_id] = Chat({"id": chat_id} | self._usual(chat_id))
        chat = self.chats[chat_id]
        chat.info.update({name: details.pop(name) for name in _TOLD if name in details})
        chat.threads.update(details.pop("threads", []))
        chat.members.update({int(member): status for member, status in details.pop("members", {}).items()})
        if details:
            raise ValueError(f"a chat has no {', '.join(details)}")
        return chat

    def find_chat(self, given: int | str) -> Chat:
        """The chat that a call names, unless there is a reason to refuse."""
        chat = next((chat for chat in self.chats.values() if self._is_named(chat, given)), None)
        if chat is None:
            raise bad("chat not found")
        if chat.migrated_to is not None:
            raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
        return chat

    def open_chat(self, given: int | str) -> Chat:
        """The chat, when something may be sent to it."""
        chat = self.find_chat(given)
        if chat.refusal is not None:
            raise Refused(*chat.refusal)
        return chat

    def wait_your_turn(self, chat: Chat) -> None:
        left = chat.sent_at + self.seconds_between - time.monotonic()
        if left > 0:
            raise too_many(math.ceil(left))
        chat.sent_at = time.monotonic()

    def new_message(
        self, chat: Chat, *, by_bot: bool, message: dict[str, Any], uploads: list[Upload] | None = None
    ) -> Kept:
        head: dict[str, Any] = {
            "message_id": self._new_message_id(chat),
            "date": int(time.time()),
            "chat": dict(chat.info),
        }
        whole = head | message
        kept = Kept(chat.id, whole["message_id"], by_bot, whole, [version_of(whole)], uploads or [])
        self.messages[chat.id, whole["message_id"]] = kept
        return kept

    def find_message(self, chat: Chat, message_id: int | None) -> Kept | None:
        kept = None if message_id is None else self.messages.get((chat.id, message_id))
        return None if kept is None or kept.deleted_at is not None else kept

    def _usual(self, chat_id: int) -> dict[str, Any]:
        if chat_id > 0:
            user = self.user(chat_id)
            named = {name: user[name] for name in ("first_name", "last_name", "username") if name in user}
            return {"type": "private"} | named
        return {"type": "supergroup" if chat_id < _SUPERGROUPS else "group", "title": f"Group {-chat_id}"}

    def _is_named(self, chat: Chat, given: int | str) -> bool:
        if isinstance(given, str) and given.startswith("@"):
            return str(chat.info.get("username", "")).lower() == given[1:].lower()
        return str(chat.id) == str(given).strip()

    def _new_message_id(self, chat: Chat) -> int:
        """Supergroups and channels count for themselves; all other chats of a bot share one count."""
        if chat.id < _SUPERGROUPS:
            chat.last_message += 1
            return chat.last_message
        self._last_message += 1
        return self._last_message


def version_of(message: dict[str, Any]) -> Version:
    name, marks = ("text", "entities") if "text" in message else ("caption", "caption_entities")
    return Version(message.get(name, ""), message.get(marks, []), time.monotonic())
