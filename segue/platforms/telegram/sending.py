"""What is said goes to Telegram: texts with their entities, and files as what they are."""

from collections.abc import Awaitable, Callable
from typing import IO, Any

from telegram import InputFile, LinkPreviewOptions, Message, MessageEntity, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, TelegramError

from segue.core.attachments import Attachment
from segue.core.chunks import utf16_units
from segue.core.errors import NotFound
from segue.platforms.telegram import failing
from segue.platforms.telegram.outbound import LONGEST_CAPTION, Rendered, number_of, rendered, target_of, way_of
from segue.platforms.telegram.wire import Line
from segue.ports.files import Files
from segue.ports.platform import Post, SendFailed, SendRefused, SendUnknown, Sent

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_NO_PHOTO = ("PHOTO_", "IMAGE_PROCESS_FAILED")
"""How Telegram says that a picture is none that it can show."""


async def send(line: Line, files: Files, post: Post) -> Sent:
    """Send something, and tell what Telegram calls it."""
    if post.file is None:
        return await _send_text(line, post)
    said = rendered(post.text, LONGEST_CAPTION)
    has_caption = utf16_units(said.text) <= LONGEST_CAPTION
    sent = await _send_file(line, files, post, post.file, said if has_caption else Rendered("", []))
    if not has_caption:
        await _send_rest(line, post._replace(file=None))
    return sent


async def edit(line: Line, post: Post, message_id: str) -> None:
    """Let a message say something else."""
    number = number_of(message_id)
    if number is None:
        raise SendRefused(f"{message_id!r} is no message on Telegram.")
    said = rendered(post.text)
    try:
        await line.edit_message_text(
            said.text,
            target_of(post.route).chat_id,
            number,
            entities=_entities(said),
            link_preview_options=_NO_PREVIEW,
        )
    except BadRequest as error:
        if not failing.is_about(error, failing.NOT_MODIFIED):
            raise


async def _send_text(line: Line, post: Post) -> Sent:
    said = rendered(post.text)

    async def sending(chat_id: int | str) -> Message:
        return await line.send_message(
            chat_id, said.text, entities=_entities(said), link_preview_options=_NO_PREVIEW, **_place(post)
        )

    return await _sent(sending, post)


async def _send_rest(line: Line, post: Post) -> None:
    """What is too long to stand below a file follows it. The file is there by now, and must not be sent as if not."""
    try:
        await _send_text(line, post._replace(reply_to=None))
    except (TelegramError, SendFailed) as error:
        raise SendUnknown(f"The file was sent, and not what was said of it: {error}") from None


async def _send_file(line: Line, files: Files, post: Post, file: Attachment, caption: Rendered) -> Sent:
    way = way_of(file)
    try:
        return await _send_as(way, line, files, post, file, caption)
    except BadRequest as error:
        if way != "photo" or not any(failing.is_about(error, sign) for sign in _NO_PHOTO):
            raise
    return await _send_as("document", line, files, post, file, caption)


async def _send_as(way: str, line: Line, files: Files, post: Post, file: Attachment, caption: Rendered) -> Sent:
    send_it: Callable[..., Awaitable[Message]] = getattr(line, f"send_{way}")

    async def sending(chat_id: int | str) -> Message:
        with _opened(files, file) as content:
            given = InputFile(content, file.name, read_file_handle=False)
            said = {"caption": caption.text or None, "caption_entities": _entities(caption)}
            return await send_it(chat_id, given, **said, **_place(post))

    return await _sent(sending, post)


async def _sent(sending: Callable[[int | str], Awaitable[Message]], post: Post) -> Sent:
    """Send; to a group that has become another one, there."""
    chat_id = target_of(post.route).chat_id
    try:
        message = await sending(chat_id)
    except ChatMigrated as moved:
        message = await sending(moved.new_chat_id)
    return Sent(str(message.message_id))


def _place(post: Post) -> dict[str, Any]:
    """Where in a chat something stands."""
    reply_to = number_of(post.reply_to)
    reply = None if reply_to is None else ReplyParameters(reply_to, allow_sending_without_reply=True)
    return {"message_thread_id": target_of(post.route).thread_id, "reply_parameters": reply}


def _entities(said: Rendered) -> list[MessageEntity] | None:
    return [MessageEntity(**entity) for entity in said.entities] or None


def _opened(files: Files, file: Attachment) -> IO[bytes]:
    try:
        return files.path_of(file).open("rb")
    except (NotFound, OSError) as error:
        raise SendRefused(f"The file “{file.name}” cannot be read any more: {error}") from None
