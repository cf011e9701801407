"""What the bot asks for, done to its world. Each function is a method of the Bot API, whose call aiogram has read."""

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bot_api import texts
from bot_api.files import File
from bot_api.records import Entities, Kept
from bot_api.refusals import bad
from bot_api.world import Chat, World, version_of

_ACTIONS = {
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
}
_RIGHTS = {
    "creator": "is_anonymous",
    "administrator": "can_be_edited is_anonymous can_manage_chat can_delete_messages can_manage_video_chats "
    "can_restrict_members can_promote_members can_change_info can_invite_users can_post_stories can_edit_stories "
    "can_delete_stories can_send_welcome_messages",
    "restricted": "is_member can_send_messages can_send_audios can_send_documents can_send_photos can_send_videos "
    "can_send_video_notes can_send_voice_notes can_send_polls can_send_other_messages can_add_web_page_previews "
    "can_react_to_messages can_edit_tag can_change_info can_invite_users can_pin_messages can_manage_topics",
}
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content "
    "and reply markup of the message"
)


class Asked(NamedTuple):
    world: World
    params: dict[str, Any]
    files: dict[str, File]
    """What came along, by the name under which the parameters speak of it."""


def get_me(asked: Asked) -> Any:
    return asked.world.bot


def send_message(asked: Asked) -> Any:
    chat = _chat(asked)
    said = _formatted(asked, "text", "entities", texts.MOST_TEXT)
    if not said["text"]:
        raise bad("message text is empty")
    return _sent(asked, chat, said)


def edit_message_text(asked: Asked) -> Any:
    chat = _chat(asked)
    kept = _editable(asked, chat)
    said = _formatted(asked, "text", "entities", texts.MOST_TEXT) | _keyboard(asked)
    if not said["text"]:
        raise bad("message text is empty")
    if all(said.get(part) == kept.message.get(part) for part in ("text", "entities", "reply_markup")):
        raise bad(_NOT_MODIFIED)
    asked.world.wait_your_turn(chat)
    kept.message = {name: value for name, value in kept.message.items() if name not in ("entities", "reply_markup")}
    kept.message |= said | {"edit_date": int(time.time())}
    kept.versions.append(version_of(kept.message))
    return kept.message


def delete_message(asked: Asked) -> Any:
    kept = asked.world.find_message(_chat(asked), asked.params["message_id"])
    if kept is None:
        raise bad("message to delete not found")
    kept.deleted_at = time.monotonic()
    return True


def send_chat_action(asked: Asked) -> Any:
    chat, thread = _chat(asked), asked.params.get("message_thread_id")
    if not (chat.info.get("is_forum") and thread == 1):  # in General somebody is seen writing only by its number
        _thread(chat, thread)
    if asked.params["action"] not in _ACTIONS:
        raise bad("wrong parameter action in request")
    return True


def set_my_commands(asked: Asked) -> Any:
    commands = asked.params["commands"]
    if len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    if not all(_COMMAND.fullmatch(one["command"]) for one in commands):
        raise bad("BOT_COMMAND_INVALID")
    if not all(1 <= texts.units(one["description"]) <= 256 for one in commands):
        raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    asked.world.commands[_scope(asked)] = commands
    return True


def get_my_commands(asked: Asked) -> Any:
    return asked.world.commands.get(_scope(asked), [])


def delete_my_commands(asked: Asked) -> Any:
    asked.world.commands.pop(_scope(asked), None)
    return True


def get_file(asked: Asked) -> Any:
    return asked.world.files.told(asked.params["file_id"])


def get_chat(asked: Asked) -> Any:
    chat = asked.world.find_chat(asked.params["chat_id"])
    gifts = dict.fromkeys(
        ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
    )
    return chat.info | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}


def get_chat_member(asked: Asked) -> Any:
    world, user_id = asked.world, asked.params["user_id"]
    chat = world.find_chat(asked.params["chat_id"])
    usual = "member" if user_id in (chat.id, world.bot["id"]) else None
    status = chat.members.get(user_id, usual)
    if status is None:
        raise bad("PARTICIPANT_ID_INVALID" if user_id not in world.users else "member not found")
    return {"status": status, "user": world.user(user_id)} | _rights(status)


def answer_callback_query(asked: Asked) -> Any:
    query = asked.params["callback_query_id"]
    if query not in asked.world.queries:
        raise bad("query is too old and response timeout expired or query ID is invalid")
    asked.world.queries.remove(query)
    return True


def leave_chat(asked: Asked) -> Any:
    chat = asked.world.open_chat(asked.params["chat_id"])
    if chat.type == "private":
        raise bad("chat member status can't be changed in private chats")
    chat.refusal = (403, f"Forbidden: bot is not a member of the {chat.type} chat")
    return True


def sending(kind: str) -> Callable[[Asked], Any]:
    """The method that sends files of a kind."""

    def send(asked: Asked) -> Any:
        chat = _chat(asked)
        file = _file(asked, kind)
        said = _formatted(asked, "caption", "caption_entities", texts.MOST_CAPTION) if "caption" in asked.params else {}
        return _sent(asked, chat, asked.world.files.shown_as(kind, file) | said, file)

    return send


def _chat(asked: Asked) -> Chat:
    return asked.world.open_chat(asked.params.get("chat_id", ""))


def _sent(asked: Asked, chat: Chat, content: dict[str, Any], *files: File) -> dict[str, Any]:
    replied = _replied(asked, chat)
    thread = asked.params.get("message_thread_id")
    if thread is None and replied is not None and replied.message.get("is_topic_message"):
        thread = replied.thread
    placed = _thread(chat, thread)
    asked.world.wait_your_turn(chat)
    by = {"sender_chat": chat.info} if chat.type == "channel" else {"from": _name(asked.world.bot)}
    reply = {} if replied is None else {"reply_to_message": _without_reply(replied)}
    message = by | placed | reply | content | _keyboard(asked)
    return asked.world.new_message(chat, by_bot=True, message=message, uploads=[one.upload for one in files]).message


def _formatted(asked: Asked, name: str, marks: str, most: int) -> dict[str, Any]:
    """The text and its entities as they are kept, when they are right."""
    params = asked.params
    entities: Entities = params.get(marks) or []
    wrong = list(texts.faults(params[name], entities))
    if params.get("parse_mode"):
        wrong.append("parse_mode is not read here: send entities")
    if wrong:
        asked.world.complaints.extend(f"{name}: {fault}" for fault in wrong)
        raise bad(f"can't parse entities: {wrong[0]}")
    text, entities = texts.tidied(params[name], entities)
    if texts.units(text) > most:
        raise bad("message is too long" if name == "text" else "message caption is too long")
    return {name: text} | ({marks: entities} if entities else {})


def _editable(asked: Asked, chat: Chat) -> Kept:
    kept = asked.world.find_message(chat, asked.params.get("message_id"))
    if kept is None:
        raise bad("message to edit not found")
    if not kept.is_by_bot:
        raise bad("message can't be edited")
    if "text" not in kept.message:
        raise bad("there is no text in the message to edit")
    return kept


def _replied(asked: Asked, chat: Chat) -> Kept | None:
    wanted = asked.params.get("reply_parameters") or {"message_id": asked.params.get("reply_to_message_id")}
    if wanted["message_id"] is None:
        return None
    kept = asked.world.find_message(chat, wanted["message_id"])
    if kept is None and not wanted.get("allow_sending_without_reply"):
        raise bad("message to be replied not found")
    return kept


def _thread(chat: Chat, thread: int | None) -> dict[str, Any]:
    """General has no thread of its own: what is meant for it names none."""
    if thread is None:
        return {}
    if thread not in chat.threads or thread == 1:
        raise bad("message thread not found")
    return {"message_thread_id": thread, "is_topic_message": True}


def _keyboard(asked: Asked) -> dict[str, Any]:
    """Of all that can be under a message, only buttons in it are shown again."""
    markup = asked.params.get("reply_markup") or {}
    return {"reply_markup": markup} if "inline_keyboard" in markup else {}


def _file(asked: Asked, kind: str) -> File:
    given = asked.params.get(kind)
    if given is None:
        raise bad(f"there is no {kind} in the request")
    if given.startswith("attach://"):
        name = given.removeprefix("attach://")
        if name not in asked.files:
            raise bad(f"file {name} was not attached")
        return asked.files[name]
    return asked.world.files.get(given)


def _without_reply(kept: Kept) -> dict[str, Any]:
    return {name: value for name, value in kept.message.items() if name != "reply_to_message"}


def _name(user: dict[str, Any]) -> dict[str, Any]:
    return {name: user[name] for name in ("id", "is_bot", "first_name", "username") if name in user}


def _scope(asked: Asked) -> str:
    """Which list of commands is meant: by its kind, its chat, its person and its language."""
    scope = asked.params.get("scope") or {"type": "default"}
    parts = [scope["type"], scope.get("chat_id"), scope.get("user_id"), asked.params.get("language_code")]
    return ":".join(str(part) for part in parts if part not in (None, ""))


def _rights(status: str) -> dict[str, Any]:
    until = {"until_date": 0} if status in ("kicked", "restricted") else {}
    return dict.fromkeys(_RIGHTS.get(status, "").split(), False) | until
