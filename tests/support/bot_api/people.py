"""What people do around a bot. Each of it becomes an update, which aiogram must be able to read."""

import base64
import time
from itertools import count
from typing import Any

from bot_api import models
from bot_api.updates import Entry
from bot_api.world import Chat, World, version_of

_ANONYMOUS_ADMIN = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
_AS_A_CHANNEL = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}


class People:
    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = count(1)
        self._held: dict[int, dict[str, Any]] = {}

    def say(
        self,
        chat: int,
        user: int | None = None,
        *,
        text: str | None = None,
        entities: list[dict[str, Any]] | None = None,
        thread: int | None = None,
        is_topic: bool | None = None,
        reply_to: int | None = None,
        sender_chat: int | None = None,
        media: str | None = None,
        file: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
        **how: Any,
    ) -> dict[str, Any]:
        """Say something in a chat, which is there from then on. In a channel it is a post."""
        place = self._world.chat(chat)
        message = self._sender(place, user, sender_chat) | self._placed(place, thread, is_topic)
        if reply_to is not None:
            replied = self._world.messages[chat, reply_to].message
            message["reply_to_message"] = {name: one for name, one in replied.items() if name != "reply_to_message"}
        if media is not None:
            message |= self._shown(media, file or {})
        if text is not None:
            message |= _marked("caption" if media else "text", text, entities)
        kept = self._world.new_message(place, by_bot=False, message=message | (extra or {}))
        return self._tell({_kind(place, is_edit=False): kept.message}, **how)

    def edit(
        self,
        chat: int,
        message_id: int,
        *,
        text: str,
        entities: list[dict[str, Any]] | None = None,
        edit_date: int | None = None,
        **how: Any,
    ) -> dict[str, Any]:
        kept = self._world.messages[chat, message_id]
        name = "text" if "text" in kept.message else "caption"
        message = {one: value for one, value in kept.message.items() if one not in ("entities", "caption_entities")}
        dated = {"edit_date": int(time.time()) if edit_date is None else edit_date}
        kept.message = message | _marked(name, text, entities) | dated
        kept.versions.append(version_of(kept.message))
        return self._tell({_kind(self._world.chat(chat), is_edit=True): kept.message}, **how)

    def press(self, chat: int, user: int, message_id: int, data: str, **how: Any) -> dict[str, Any]:
        """Press a button under a message of the bot."""
        query = f"query{next(self._numbers)}"
        self._world.queries.add(query)
        pressed = {
            "id": query,
            "from": self._world.user(user),
            "message": self._world.messages[chat, message_id].message,
            "chat_instance": str(chat),
            "data": data,
        }
        return self._tell({"callback_query": pressed}, **how)

    def update(self, update: dict[str, Any] | str, update_id: int | None = None) -> int:
        """Any update, which nobody reads first. A text goes out as it is, and should itself hold the id."""
        number = self._world.updates.new_id() if update_id is None else update_id
        if isinstance(update, str):
            self._world.updates.put(Entry(number, update, is_out_of_order=True))
        else:
            self._world.updates.add(update, update_id=update.get("update_id", number), out_of_order=True)
        return number

    def redeliver(self, update_id: int, *, as_new: bool = False) -> dict[str, Any]:
        """The same update again, or the same message in a new one."""
        update = {name: value for name, value in self._world.updates.all[update_id].items() if name != "update_id"}
        return self._world.updates.add(update, update_id=None if as_new else update_id, out_of_order=True)

    def release(self, update_ids: list[int]) -> None:
        """Let go what was held, in this order."""
        for update_id in update_ids:
            self._world.updates.add(self._held.pop(update_id), update_id=update_id, out_of_order=True)

    def migrate(self, chat: int, to: int) -> dict[str, Any]:
        """A group becomes a supergroup under another number."""
        old, title = self._world.chat(chat), self._world.chat(chat).info["title"]
        old.migrated_to = to
        self._world.chat(to, type="supergroup", title=title)
        told = self._sender(old, None, None) | {"migrate_to_chat_id": to}
        kept = self._world.new_message(old, by_bot=False, message=told)
        return self._tell({"message": kept.message})

    def _tell(self, update: dict[str, Any], *, held: bool = False, checked: bool = True) -> dict[str, Any]:
        number = self._world.updates.new_id()
        if checked and (fault := models.faults_of_update({"update_id": number} | update)):
            raise ValueError(f"aiogram does not read this update, which checked=False would allow: {fault}")
        if held:
            self._held[number] = update
            return {"update_id": number} | update
        return self._world.updates.add(update, update_id=number)

    def _sender(self, chat: Chat, user: int | None, sender_chat: int | None) -> dict[str, Any]:
        if user is not None:
            chat.members.setdefault(user, "member")
            return {"from": dict(self._world.user(user))}
        if chat.type == "private":
            return {"from": dict(self._world.user(chat.id))}
        if chat.type == "channel":
            return {"sender_chat": chat.info}
        if sender_chat is None or sender_chat == chat.id:
            return {"from": _ANONYMOUS_ADMIN, "sender_chat": chat.info}
        return {"from": _AS_A_CHANNEL, "sender_chat": self._world.chat(sender_chat, type="channel").info}

    def _placed(self, chat: Chat, thread: int | None, is_topic: bool | None) -> dict[str, Any]:
        """Where there are no topics, a thread is only a line of replies, to which nothing can be sent."""
        if thread is None:
            return {}
        if not (chat.has_topics if is_topic is None else is_topic):
            return {"message_thread_id": thread}
        chat.threads.add(thread)
        return {"message_thread_id": thread, "is_topic_message": True}

    def _shown(self, media: str, file: dict[str, Any]) -> dict[str, Any]:
        content = base64.b64decode(file.get("content", ""))
        kept = self._world.files.add(content, file.get("file_name", ""), file.get("mime_type", ""), file.get("size"))
        return self._world.files.shown_as(media, kept)


def _marked(name: str, text: str, entities: list[dict[str, Any]] | None) -> dict[str, Any]:
    marks = "entities" if name == "text" else "caption_entities"
    return {name: text} | ({marks: entities} if entities else {})


def _kind(chat: Chat, *, is_edit: bool) -> str:
    kind = "channel_post" if chat.type == "channel" else "message"
    return f"edited_{kind}" if is_edit else kind
