"""A stage in one process and its platform in another, so that the stage goes on when the gateway is killed."""

import asyncio
import json
from pathlib import Path
from typing import Any, Self

from segue.core.sources import SessionSource
from segue.ports.platform import Intake, Post, SendLater, SendUnknown, Sent, Traits
from segue.testing.platform import NAME, TRAITS, inbound_from
from segue.testing.stage import Busy, Stage

_POLL_SECONDS = 1.0
_LINE = 16 * 1024 * 1024


class Backstage:
    """Lets a stage be reached at a socket."""

    def __init__(self, stage: Stage, path: Path, latency: float = 0.0) -> None:
        self._stage = stage
        self._path = path
        self._latency = latency
        """Seconds that every question, and every answer, is on its way."""
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._welcome, self._path, limit=_LINE)
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        if self._talks:
            await asyncio.wait(self._talks)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                await asyncio.sleep(self._latency)
                answer = await _answer(self._stage, json.loads(line))
                await asyncio.sleep(self._latency)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # whoever asked is gone in the middle of a line
        finally:
            writer.close()


async def _answer(stage: Stage, asked: dict[str, Any]) -> dict[str, Any]:
    match asked["act"]:
        case "wait":
            await stage.arrival(asked["seconds"])
            return {"updates": stage.waiting()}
        case "confirm":
            stage.confirm(asked["number"])
        case "post":
            try:
                return {"message_id": stage.post(asked["route"], asked["text"], asked["key"])}
            except Busy as error:
                return {"busy": error.seconds}
        case "edit":
            stage.edit(asked["message_id"], asked["text"])
    return {}


class _Line:
    """One connection, one question at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._free = asyncio.Lock()

    async def ask(self, act: str, **what: Any) -> dict[str, Any]:
        async with self._free:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(self._path, limit=_LINE)
            reader, writer = self._streams
            try:
                writer.write(json.dumps({"act": act, **what}).encode() + b"\n")
                await writer.drain()
                answer: dict[str, Any] = json.loads(await reader.readline())
            except asyncio.CancelledError:  # its answer is still to come, and is nobody else's
                writer.close()
                self._streams = None
                raise
            except (ConnectionError, ValueError):
                self._streams = None
                raise ConnectionResetError("The stage has gone away.") from None
        return answer


class RemotePlatform:
    """The adapter of a stage in another process."""

    def __init__(self, path: Path, traits: Traits = TRAITS, name: str = NAME) -> None:
        self.name = name
        self.account = ""
        self.traits = traits
        self._reading = _Line(path)
        self._sending = _Line(path)

    async def run(self, intake: Intake) -> None:
        seconds = 0.0  # whoever has just come is told at once that they are connected
        while True:
            updates = (await self._reading.ask("wait", seconds=seconds))["updates"]
            intake.connected()
            seconds = _POLL_SECONDS
            for number, update in updates:
                await intake.receive(inbound_from(update))
                await self._reading.ask("confirm", number=number)

    async def send(self, post: Post) -> Sent:
        try:
            answer = await self._sending.ask("post", route=post.route.to_dict(), text=post.text, key=post.key)
        except ConnectionError as error:
            raise SendUnknown(str(error)) from None
        if "busy" in answer:
            raise SendLater("The stage is busy.", answer["busy"])
        return Sent(answer["message_id"])

    async def edit(self, post: Post, message_id: str) -> None:
        try:
            await self._sending.ask("edit", message_id=message_id, text=post.text)
        except ConnectionError as error:
            raise SendUnknown(str(error)) from None

    async def typing(self, route: SessionSource) -> None: ...
