"""Somebody who uses Matrix as people do, over a client of their own: plain requests, and no library of ours.

`async with Person(synapse.url, synapse.register("ann")) as ann:` is logged in on a device of its own.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NotRequired, Self, TypedDict, Unpack
from urllib.parse import quote

import httpx2
from matrix_messages import Event, Message, messages
from synapse_server import User
from waiting import DEADLINE

_CLIENT = "/_matrix/client/v3"
_ENCRYPTED = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}


class Manner(TypedDict):
    """How something is said."""

    thread: NotRequired[str]
    """The event that the thread begins with."""
    reply_to: NotRequired[str]
    mentions: NotRequired[Sequence[str]]
    transaction: NotRequired[str]
    """Whoever says the same in one transaction twice has said it once."""


class Refused(Exception):
    """The server would not."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{status} {error.get('errcode')}: {error.get('error')}")
        self.status = status
        self.error = error


class Person:
    def __init__(self, url: str, user: User, device_id: str | None = None) -> None:
        """On a new device, or on one that they have."""
        self.user_id = user.user_id
        self._device = {} if device_id is None else {"device_id": device_id}
        self._password = user.password
        self._url = url
        self._numbers = itertools.count(1)
        self._transactions = (f"by-hand-{number}" for number in self._numbers)
        self._since: str | None = None

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(base_url=self._url, timeout=DEADLINE, trust_env=False, verify=False)
        identifier = {"type": "m.id.user", "user": self.user_id}
        body = {"type": "m.login.password", "identifier": identifier, "password": self._password}
        body |= self._device
        found = await self._ask("POST", "/login", body)
        self.device_id: str = found["device_id"]
        self.token: str = found["access_token"]
        self._http.headers["Authorization"] = f"Bearer {self.token}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def create_room(
        self,
        *invited: str,
        version: str = "12",
        is_direct: bool = False,
        is_encrypted: bool = False,
        is_public: bool = False,
        name: str | None = None,
    ) -> str:
        """Its id; rooms of version 12 have ids without the name of a server."""
        body: dict[str, Any] = {
            "preset": "public_chat" if is_public else "trusted_private_chat",
            "room_version": version,
            "invite": list(invited),
            "is_direct": is_direct,
            "initial_state": [_ENCRYPTED] if is_encrypted else [],
        }
        made = await self._ask("POST", "/createRoom", body if name is None else {**body, "name": name})
        return str(made["room_id"])

    async def join(self, room: str) -> None:
        await self._ask("POST", f"/join/{_quoted(room)}", {})

    async def invite(self, room: str, user_id: str) -> None:
        await self._ask("POST", f"/rooms/{_quoted(room)}/invite", {"user_id": user_id})

    async def kick(self, room: str, user_id: str) -> None:
        await self._ask("POST", f"/rooms/{_quoted(room)}/kick", {"user_id": user_id})

    async def leave(self, room: str) -> None:
        await self._ask("POST", f"/rooms/{_quoted(room)}/leave", {})

    async def members(self, room: str) -> set[str]:
        """Who has joined."""
        return set((await self._ask("GET", f"/rooms/{_quoted(room)}/joined_members"))["joined"])

    async def name_room(self, room: str, name: str) -> None:
        await self._ask("PUT", f"/rooms/{_quoted(room)}/state/m.room.name", {"name": name})

    async def say(
        self, room: str, body: str, html: str | None = None, msgtype: str = "m.text", **manner: Unpack[Manner]
    ) -> str:
        """The event id of it."""
        content: Event = {"msgtype": msgtype, "body": body}
        if html is not None:
            content |= {"format": "org.matrix.custom.html", "formatted_body": html}
        return await self._send(room, "m.room.message", content, manner)

    async def say_many(self, room: str, bodies: Sequence[str]) -> None:
        """One after another, without looking up in between."""
        await self.send_many(room, [{"msgtype": "m.text", "body": body} for body in bodies])

    async def send_many(self, room: str, contents: Sequence[Event]) -> None:
        """Whatever it is; what the server does not take, it does not get."""
        for content in contents:
            with suppress(Refused):
                await self._put(room, "m.room.message", content, None)

    async def share(
        self, room: str, name: str, data: bytes, mimetype: str, caption: str | None = None, **manner: Unpack[Manner]
    ) -> str:
        """A file, or an image; its event id."""
        content: Event = {
            "msgtype": "m.image" if mimetype.startswith("image/") else "m.file",
            "body": caption or name,
            "filename": name,
            "info": {"mimetype": mimetype, "size": len(data)},
            **await self._attachment(room, data, mimetype),
        }
        return await self._send(room, "m.room.message", content, manner)

    async def edit(self, room: str, event_id: str, body: str, html: str | None = None) -> str:
        new: Event = {"msgtype": "m.text", "body": body}
        if html is not None:
            new |= {"format": "org.matrix.custom.html", "formatted_body": html}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {body}", "m.new_content": new, "m.relates_to": relation}
        return await self._send(room, "m.room.message", content, {})

    async def react(self, room: str, event_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        return await self._put(room, "m.reaction", {"m.relates_to": relation}, None)

    async def redact(self, room: str, event_id: str) -> None:
        path = f"/rooms/{_quoted(room)}/redact/{_quoted(event_id)}/{next(self._transactions)}"
        await self._ask("PUT", path, {})

    async def events(self, room: str) -> list[Event]:
        """Every event of the room in order, each of them once for each time that it is there."""
        found: list[Event] = []
        place = f"/rooms/{_quoted(room)}/messages?dir=f&limit=500"
        page = await self._ask("GET", place)
        while page["chunk"]:
            found += page["chunk"]
            if "end" not in page:
                break
            page = await self._ask("GET", f"{place}&from={_quoted(page['end'])}")
        return found

    async def messages(self, room: str) -> list[Message]:
        """Everybody's, as they stand."""
        return messages(await self.events(room))

    async def heard(self, room: str) -> list[Message]:
        """Those of others."""
        return [message for message in await self.messages(room) if message.sender != self.user_id]

    async def wait_for(self, room: str, holds: Callable[[list[Message]], object]) -> list[Message]:
        """What was heard, as soon as this holds of it."""
        end = asyncio.get_running_loop().time() + DEADLINE
        while not holds(heard := await self.heard(room)):
            left = end - asyncio.get_running_loop().time()
            assert left > 0, f"it never came to this: {heard}"
            await self._news(min(left, 1.0))
        return heard

    async def wait_for_member(self, room: str, user_id: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while user_id not in await self.members(room):
                await self._news(1.0)

    async def show_typing(self, room: str, is_typing: bool) -> None:
        path = f"/rooms/{_quoted(room)}/typing/{_quoted(self.user_id)}"
        await self._ask("PUT", path, {"typing": True, "timeout": 120_000} if is_typing else {"typing": False})

    async def typing(self, room: str) -> list[str]:
        """Who is seen typing."""
        found = await self._ask("GET", f"/sync?timeout={next(self._numbers)}")  # the same twice is answered the same
        ephemeral = found.get("rooms", {}).get("join", {}).get(room, {}).get("ephemeral", {}).get("events", [])
        return [user for event in ephemeral if event["type"] == "m.typing" for user in event["content"]["user_ids"]]

    async def fetch(self, message: Message) -> bytes:
        """The file that a message shares."""
        return await self._download(message.content["url"])

    async def _news(self, seconds: float) -> None:
        """Wait until something happens, or for so long."""
        since = f"&since={self._since}" if self._since else ""
        self._since = (await self._ask("GET", f"/sync?timeout={int(seconds * 1000)}{since}"))["next_batch"]

    async def _send(self, room: str, kind: str, content: Event, manner: Manner) -> str:
        return await self._put(room, kind, content | relations(manner), manner.get("transaction"))

    async def _put(self, room: str, kind: str, content: Event, transaction: str | None) -> str:
        """Once, as it is."""
        path = f"/rooms/{_quoted(room)}/send/{kind}/{_quoted(transaction or next(self._transactions))}"
        return str((await self._ask("PUT", path, content))["event_id"])

    async def _attachment(self, room: str, data: bytes, mimetype: str) -> Event:
        """What a message says of a file, which is on the server now."""
        return {"url": await self._upload(data, mimetype)}

    async def _upload(self, data: bytes, mimetype: str) -> str:
        answer = await self._http.post("/_matrix/media/v3/upload", content=data, headers={"Content-Type": mimetype})
        return str(_read(answer)["content_uri"])

    async def _download(self, uri: str) -> bytes:
        answer = await self._http.get(f"/_matrix/client/v1/media/download/{uri.removeprefix('mxc://')}")
        if answer.is_error:
            raise Refused(answer.status_code, answer.json())
        return bytes(answer.content)

    async def _ask(self, method: str, path: str, body: Event | None = None) -> Event:
        said = None if body is None else json.dumps(body)  # which can also say half a character
        headers = {"Content-Type": "application/json"}
        return _read(await self._http.request(method, _CLIENT + path, content=said, headers=headers))


def relations(manner: Manner) -> Event:
    """As people's clients write them: in a thread, those who know no threads see a reply."""
    found: Event = {}
    if "mentions" in manner:
        found["m.mentions"] = {"user_ids": list(manner["mentions"])}
    reply = manner.get("reply_to")
    if "thread" in manner:
        aimed = {"m.in_reply_to": {"event_id": reply or manner["thread"]}, "is_falling_back": reply is None}
        found["m.relates_to"] = {"rel_type": "m.thread", "event_id": manner["thread"], **aimed}
    elif reply is not None:
        found["m.relates_to"] = {"m.in_reply_to": {"event_id": reply}}
    return found


def _quoted(part: str) -> str:
    return quote(part, safe="")


def _read(answer: httpx2.Response) -> Event:
    is_json = answer.headers.get("Content-Type", "").startswith("application/json")
    found: Event = answer.json() if is_json else {}
    if answer.is_error:
        raise Refused(answer.status_code, found)
    return found
