"""The Bot API of one world over HTTP, on a port of its own."""

import asyncio
import inspect
import json
import re
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any

from aiohttp import web

from bot_api import methods, models, receiving
from bot_api.files import File
from bot_api.records import Call, Untaken
from bot_api.refusals import Refused, bad, too_many
from bot_api.troubles import Trouble
from bot_api.world import World

_MOST = 50 * 2**20
_TOKEN = re.compile(r"\d{5,}:[A-Za-z0-9_-]{30,}")
_PAGE = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body>\r\n</html>\r\n"
_GARBAGE = b'\x00\xff{"ok": tru'
_FILES = ("photo", "document", "audio", "video", "voice")
_DOWNLOAD = "download"
_METHODS: dict[str, Callable[[methods.Asked], Any]] = {
    "getMe": methods.get_me,
    "getUpdates": receiving.get_updates,
    "setWebhook": receiving.set_webhook,
    "deleteWebhook": receiving.delete_webhook,
    "getWebhookInfo": receiving.get_webhook_info,
    "sendMessage": methods.send_message,
    "editMessageText": methods.edit_message_text,
    "deleteMessage": methods.delete_message,
    "sendChatAction": methods.send_chat_action,
    "setMyCommands": methods.set_my_commands,
    "getMyCommands": methods.get_my_commands,
    "deleteMyCommands": methods.delete_my_commands,
    "getFile": methods.get_file,
    "getChat": methods.get_chat,
    "getChatMember": methods.get_chat_member,
    "answerCallbackQuery": methods.answer_callback_query,
    "leaveChat": methods.leave_chat,
    **{f"send{kind.capitalize()}": methods.sending(kind) for kind in _FILES},
}


class Serving:
    def __init__(self, world: World) -> None:
        self.world = world
        self._site: web.SockSite | None = None
        self._held = _bound(0)
        """Keeps the port ours while nobody listens there."""
        self.port: int = self._held.getsockname()[1]
        app = web.Application(client_max_size=_MOST)
        app.router.add_route("*", r"/bot{token:[^/]+}/{method:[^/]+}", self._answer_call)
        app.router.add_get(r"/file/bot{token:[^/]+}/{path:.+}", self._answer_download)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        await self.up()

    async def up(self) -> None:
        """Listen, on the same port as before."""
        if self._site is None:
            self._site = web.SockSite(self._runner, _bound(self.port))
            await self._site.start()

    async def down(self) -> None:
        """Break all connections and refuse new ones; the port stays ours."""
        site, self._site = self._site, None
        if site is not None:
            await site.stop()
            for connection in self._runner.server.connections if self._runner.server else []:
                if connection.transport is not None:
                    connection.transport.abort()

    async def close(self) -> None:
        await self.down()
        self._held.close()
        await receiving.end_webhook(self.world)
        await self._runner.cleanup()

    async def _answer_call(self, request: web.Request) -> web.StreamResponse:
        at = time.monotonic()
        try:
            self._check(request.match_info["token"])
            given, files = await self._given(request)
        except Refused as refused:
            return _said(refused.code, json.dumps(refused.answer()))
        method = request.match_info["method"]
        trouble = self.world.troubles.of(method)
        if trouble is not None and not trouble.is_taken:
            self.world.untaken.append(Untaken(method, given, at))
            return await self._suffer(request, trouble)
        call = self._begun(method, given, files, at)
        text = await self._carried_out(call, given, files)
        if trouble is not None:
            return await self._suffer(request, trouble, text.encode())
        return _said(call.status or 500, text)

    async def _answer_download(self, request: web.Request) -> web.StreamResponse:
        file = self.world.files.at(request.match_info["path"])
        if request.match_info["token"] != self.world.token or file is None:
            return _said(404, json.dumps(Refused(404, "Not Found").answer()))
        self._begun(_DOWNLOAD, {"path": file.path}, {}, time.monotonic()).status = 200
        if (trouble := self.world.troubles.of(_DOWNLOAD)) is not None:
            return await self._suffer(request, trouble, file.content)
        return web.Response(body=file.content, content_type="application/octet-stream")

    def _check(self, token: str) -> None:
        if token == self.world.token:
            return
        if _TOKEN.fullmatch(token):
            raise Refused(401, "Unauthorized")
        raise Refused(404, "Not Found")

    async def _given(self, request: web.Request) -> tuple[dict[str, Any], dict[str, File]]:
        """The parameters and files of a call, however they are packed."""
        given: dict[str, Any] = dict(request.query)
        files: dict[str, File] = {}
        try:
            if request.content_type == "application/json":
                given |= await request.json()
            else:
                for name, value in (await request.post()).items():
                    if isinstance(value, web.FileField):
                        files[name] = self.world.files.add(value.file.read(), value.filename, value.content_type)
                    else:
                        given[name] = value
            json.dumps(given, ensure_ascii=False).encode()
        except web.HTTPRequestEntityTooLarge as error:
            raise Refused(413, "Request Entity Too Large") from error
        except (ValueError, TypeError) as error:
            self.world.complaints.append(f"{request.path.rpartition('/')[2]}: {error}")
            is_text = isinstance(error, UnicodeError)
            raise bad("strings must be encoded in UTF-8" if is_text else "can't parse request JSON object") from error
        return given, files

    def _begun(self, method: str, given: dict[str, Any], files: dict[str, File], at: float) -> Call:
        uploads = {name: file.upload for name, file in files.items()}
        call = Call(len(self.world.calls) + 1, method, given, uploads, at)
        self.world.calls.append(call)
        return call

    async def _carried_out(self, call: Call, given: dict[str, Any], files: dict[str, File]) -> str:
        """The text of the answer. What went wrong on our side is a complaint, too."""
        try:
            attached = {name: f"attach://{name}" for name in files if name in _FILES}
            result = await self._result(call, attached | given, files)
        except Refused as refused:
            call.status, call.answer = refused.code, refused.answer()
            return json.dumps(call.answer)
        except Exception:  # noqa: BLE001
            self.world.complaints.append(f"{call.method} failed in the server: {traceback.format_exc()}")
            call.status = 500
            return json.dumps(Refused(500, "Internal Server Error").answer())
        finally:
            call.ended_at = time.monotonic()
        call.status, call.answer = 200, receiving.read_written(result)
        written = result if isinstance(result, receiving.Written) else json.dumps(result)
        return f'{{"ok":true,"result":{written}}}'

    async def _result(self, call: Call, given: dict[str, Any], files: dict[str, File]) -> Any:
        reading = models.read(call.method, given)
        if reading is None:
            self.world.complaints.append(f"there is no method {call.method}")
            raise Refused(404, "Not Found: method not found")
        self.world.complaints += reading.complaints
        call.method, call.params = reading.method, reading.params
        if not reading.is_valid:
            raise bad(reading.complaints[0])
        if reading.method not in _METHODS:
            self.world.complaints.append(f"{reading.method} is not played here")
            raise Refused(501, f"Not Implemented: {reading.method}")
        result = _METHODS[reading.method](methods.Asked(self.world, reading.params, files))
        if inspect.isawaitable(result):
            result = await result
        elif fault := models.faults_of_answer(reading.method, result):
            self.world.complaints.append(f"the answer to {reading.method} is wrong: {fault}")
        return result

    async def _suffer(self, request: web.Request, trouble: Trouble, answer: bytes = b"") -> web.StreamResponse:
        match trouble.kind:
            case "flood":
                return _said(429, json.dumps(too_many(trouble.retry_after).answer()))
            case "html":
                return web.Response(status=502, text=_PAGE, content_type="text/html")
            case "error":
                return _said(trouble.status, json.dumps(Refused(trouble.status, trouble.description).answer()))
            case "garbage":
                return web.Response(body=_GARBAGE, content_type="application/json")
            case "cut":
                return await _cut(request, answer or _GARBAGE)
            case "hang" | "drop":
                await asyncio.sleep(trouble.seconds if trouble.kind == "hang" else 0)
                return _broken(request)


async def _cut(request: web.Request, body: bytes) -> web.StreamResponse:
    """Half of an answer, and then the end."""
    response = web.StreamResponse(headers={"Content-Length": str(len(body)), "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # beside the one that holds the port
    bound.bind(("127.0.0.1", port))
    return bound


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _said(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="application/json")
