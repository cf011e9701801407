"""The side of the tests: starts the server, makes worlds in it, and looks at what a bot did there."""

import base64
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any

from counterparts import counterparts_python
from waiting import DEADLINE, until, wait_until

from bot_api.records import Call, Delivery, Entities, Kept, State, Untaken, Upload, Version
from bot_api.troubles import Kind

_SUPPORT = Path(__file__).parents[1]


class BotApi:
    """A running server, on which there is room for many worlds."""

    def __init__(self, port: int) -> None:
        self._port = port

    def world(self, **bot: Any) -> "World":
        """A bot that nobody has talked to, with these details in its getMe."""
        return World(self, self.do(None, "open", **bot))

    def do(self, world: str | None, doing: str, /, **told: Any) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE)
        try:
            asked = json.dumps({"world": world, "do": doing, "with": told})
            connection.request("POST", "/", asked, {"Content-Type": "application/json"})
            answer = json.load(connection.getresponse())
        finally:
            connection.close()
        assert "error" not in answer, answer["error"]
        return answer["result"]


class BotApiServer:
    """The process."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(_SUPPORT), str(_SUPPORT / "without_network")])
        self._process = subprocess.Popen(
            [counterparts_python(), "-P", "-m", "bot_api.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said, "The Bot API server did not start."
        self.address: dict[str, Any] = json.loads(said)
        """What a `BotApi` is made of."""

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=DEADLINE)


class World:
    """A bot and everybody around it."""

    def __init__(self, api: BotApi, opened: dict[str, Any]) -> None:
        self._api = api
        self.token: str = opened["token"]
        self.bot: dict[str, Any] = opened["bot"]
        self.url = f"http://127.0.0.1:{opened['port']}"
        self.base_url = f"{self.url}/bot"
        """As python-telegram-bot wants it: the token follows."""
        self.base_file_url = f"{self.url}/file/bot"

    def close(self) -> None:
        self._api.do(None, "close", token=self.token)

    # People

    def chat(self, chat: int, **details: Any) -> None:
        """A chat: type, title, username, is_forum, threads (a list), members (status by user)."""
        self._do("chat", chat_id=chat, **details)

    def user(self, user: int, **details: Any) -> dict[str, Any]:
        """A person, or another bot: first_name, last_name, username, language_code, is_bot."""
        return self._dict("user", user_id=user, **details)

    def say(
        self,
        chat: int,
        user: int | None = None,
        text: str | None = None,
        *,
        entities: Entities | None = None,
        thread: int | None = None,
        is_topic: bool | None = None,
        reply_to: int | None = None,
        sender_chat: int | None = None,
        media: str | None = None,
        content: bytes = b"",
        file_name: str = "",
        mime_type: str = "",
        size: int | None = None,
        held: bool = False,
        checked: bool = True,
        **extra: Any,
    ) -> dict[str, Any]:
        """The update that this becomes.

        Without a user it is the chat itself that speaks: the person of a private chat, a channel, an anonymous admin.
        With media the text is a caption, and the file's size may be a lie. What is held is not delivered before it is
        released. Anything else is put into the message as it is; what aiogram cannot read needs checked=False.
        """
        file = {
            "content": base64.b64encode(content).decode(),
            "file_name": file_name,
            "mime_type": mime_type,
            "size": size,
        }
        told: dict[str, Any] = {"entities": entities, "thread": thread, "is_topic": is_topic, "reply_to": reply_to}
        told |= {"sender_chat": sender_chat, "media": media, "file": file, "held": held, "checked": checked}
        return self._dict("say", chat=chat, user=user, text=text, extra=extra, **told)

    def edit(self, chat: int, message_id: int, text: str, **how: Any) -> dict[str, Any]:
        """People change what they said: entities, edit_date, held, checked."""
        return self._dict("edit", chat=chat, message_id=message_id, text=text, **how)

    def press(self, chat: int, user: int, message_id: int, data: str) -> dict[str, Any]:
        return self._dict("press", chat=chat, user=user, message_id=message_id, data=data)

    def update(self, update: dict[str, Any] | str, update_id: int | None = None) -> int:
        """Any update at all, unread; a text is sent as it is and should itself name the id."""
        return int(self._do("update", update=update, update_id=update_id))

    def redeliver(self, update_id: int, *, as_new: bool = False) -> dict[str, Any]:
        """The same update once more, whatever was confirmed, or the same message in a new one."""
        return self._dict("redeliver", update_id=update_id, as_new=as_new)

    def release(self, *update_ids: int) -> None:
        self._do("release", update_ids=list(update_ids))

    def migrate(self, chat: int, to: int) -> dict[str, Any]:
        return self._dict("migrate", chat=chat, to=to)

    def block(self, chat: int, code: int = 403, description: str = "Forbidden: bot was blocked by the user") -> None:
        """From now on, this is answered to whatever is sent there."""
        self._do("refuse", chat=chat, code=code, description=description)

    def unblock(self, chat: int) -> None:
        self._do("refuse", chat=chat, code=0, description=None)

    # Trouble

    def trouble(
        self,
        kind: Kind,
        *methods: str,
        times: int | None = 1,
        taken: bool = False,
        seconds: float = 60,
        status: int = 500,
        retry_after: int = 1,
        description: str = "Internal Server Error",
    ) -> None:
        """What the next calls meet, of these methods or of all; without times, until it is calm.

        To fetch a file is a method, too: `download`. A call that is taken is carried out, and only its answer is lost;
        any other leaves no trace but in `untaken`.
        """
        told: dict[str, Any] = {"kind": kind, "methods": methods, "times": times, "is_taken": taken}
        told |= {"status": status, "retry_after": retry_after, "description": description}
        self._do("trouble", **told, seconds=seconds)

    def calm(self) -> None:
        self._do("calm")

    def limit(self, seconds: float) -> None:
        """Refuse a message or an edit that follows another of the same chat within so many seconds."""
        self._do("limit", seconds=seconds)

    def down(self) -> None:
        """Break every connection and refuse new ones."""
        self._do("down")

    def up(self) -> None:
        self._do("up")

    # What happened

    def calls(self, *methods: str, since: int = 0) -> list[Call]:
        """What was taken after the call of this number, the oldest first."""
        calls = [_call(one) for one in self._do("calls", since=since)]
        return [one for one in calls if not methods or one.method in methods]

    def untaken(self, *methods: str) -> list[Untaken]:
        return [one for one in (Untaken(**one) for one in self._do("untaken")) if not methods or one.method in methods]

    def messages(self, chat: int | None = None, *, by_bot: bool = True, deleted: bool = False) -> list[Kept]:
        """The messages of the bot as they stand now, or those of the people."""
        kept = [_kept(one) for one in self._do("messages")]
        return [
            one
            for one in kept
            if one.is_by_bot == by_bot and chat in (None, one.chat_id) and (deleted or one.deleted_at is None)
        ]

    def texts(self, chat: int | None = None) -> list[str]:
        """What the bot's messages say now."""
        return [one.text for one in self.messages(chat)]

    def deliveries(self) -> list[Delivery]:
        """Each time an update was posted to the webhook."""
        return [Delivery(**one) for one in self._do("deliveries")]

    @property
    def state(self) -> State:
        return State(**self._do("state"))

    def forgive(self) -> list[str]:
        """The complaints, which are forgotten by this. A test that provokes them does so."""
        complaints = self.state.complaints
        self._do("forgive")
        return complaints

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait in a loop of asyncio, where the bot may be at work."""
        await until(holds)

    def wait(self, holds: Callable[[], bool]) -> None:
        wait_until(holds)

    def _do(self, doing: str, /, **told: Any) -> Any:
        return self._api.do(self.token, doing, **told)

    def _dict(self, doing: str, /, **told: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._do(doing, **told)
        return found


def message_id(update: dict[str, Any]) -> int:
    """Of the message that an update is about."""
    about = next(value for name, value in update.items() if name != "update_id")
    return int(about["message_id"])


def pauses(moments: Sequence[float]) -> list[float]:
    """The seconds between each and the next."""
    return [later - earlier for earlier, later in pairwise(moments)]


def _call(row: dict[str, Any]) -> Call:
    uploads = {name: Upload(**one) for name, one in row.pop("uploads").items()}
    return Call(**row, uploads=uploads)


def _kept(row: dict[str, Any]) -> Kept:
    versions = [Version(**one) for one in row.pop("versions")]
    uploads = [Upload(**one) for one in row.pop("uploads")]
    return Kept(**row, versions=versions, uploads=uploads)
