"""A bot made with aiogram, run by the Python of the counterparts: hears, answers, edits, and prints what it saw."""

import asyncio
import json
import sys
from importlib import import_module
from typing import Any


async def main(url: str, token: str) -> dict[str, Any]:
    aiogram = import_module("aiogram")
    server = import_module("aiogram.client.telegram").TelegramAPIServer.from_base(url)
    session = import_module("aiogram.client.session.aiohttp").AiohttpSession(api=server)
    bad_request = import_module("aiogram.exceptions").TelegramBadRequest
    async with aiogram.Bot(token, session=session) as bot:
        me = await bot.get_me()
        updates = await bot.get_updates(timeout=0, allowed_updates=["message"])
        heard = updates[0].message
        bold = aiogram.types.MessageEntity(type="bold", offset=0, length=5)
        sent = await bot.send_message(heard.chat.id, "Think", entities=[bold], reply_to_message_id=heard.message_id)
        edited = await sent.edit_text("Thought", entities=[])
        try:
            await sent.edit_text("Thought", entities=[])
        except bad_request as error:
            refusal = error.message
        photo = aiogram.types.BufferedInputFile(b"not really a photo", "photo.jpg")
        shown = await bot.send_photo(heard.chat.id, photo, caption="Look")
        fetched = await bot.download(shown.photo[-1].file_id)
        left = await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0)
        return {
            "username": me.username,
            "heard": heard.text,
            "reply_to": sent.reply_to_message.message_id,
            "bold": [one.type for one in sent.entities],
            "edited": edited.text,
            "refusal": refusal,
            "fetched": fetched.read().decode(),
            "left": len(left),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2]))))
