"""The tool `send_message`: a text to a home channel or to another chat."""

from collections.abc import Awaitable, Callable
from typing import Any

from segue.core.errors import Invalid
from segue.core.routes import Route, parse_route
from segue.core.text import shorten
from segue.ports.tool import ToolFailed, ToolSpec
from segue.tools.arguments import checked
from segue.tools.visible import on_one_line

MAX_LENGTH = 20_000
_MAX_SHOWN = 1_000

Send = Callable[[str, Route, str], Awaitable[str]]
"""Queues a text of a session for a chat; returns what the model is told."""


class SendMessage:
    """Queues a message; the gateway that is connected with the platform delivers it."""

    spec = ToolSpec(
        "send_message",
        "Send a message to a chat other than this one, such as a home channel. What you answer here needs no tool.",
        {
            "type": "object",
            "properties": {
                "target": {
                    "type": "string",
                    "description": (
                        "A platform for its home channel, as in telegram, or a platform and the id of a chat, as in"
                        " telegram:123456789 or telegram:group:-100123."
                    ),
                    "minLength": 1,
                    "maxLength": 600,
                },
                "text": {
                    "type": "string",
                    "description": "The message, in Markdown.",
                    "minLength": 1,
                    "maxLength": MAX_LENGTH,
                },
            },
            "required": ["target", "text"],
            "additionalProperties": False,
        },
    )

    def __init__(self, send: Send) -> None:
        self._send = send

    def is_idempotent(self, _arguments: dict[str, Any]) -> bool:
        return True  # one turn sends the same text to the same chat once, however often it asks to

    def risk(self, arguments: dict[str, Any]) -> str | None:
        """Home channels are the owner's own choice; every other chat needs consent."""
        try:
            given = checked(self.spec, arguments)
            route = _route(given["target"])
        except ToolFailed:
            return None  # and nothing will be sent
        return f"send to {route}: {shorten(on_one_line(given['text']), _MAX_SHOWN)}" if route.chat_id else None

    async def run(self, arguments: dict[str, Any], session_id: str) -> str:
        given = checked(self.spec, arguments)
        if not given["text"].strip():
            raise ToolFailed("The text is empty, so nothing was sent.")
        try:
            return await self._send(session_id, _route(given["target"]), given["text"])
        except Invalid as error:
            raise ToolFailed(str(error)) from None


def _route(target: str) -> Route:
    try:
        return parse_route(target.strip())
    except Invalid as error:
        raise ToolFailed(str(error)) from None
