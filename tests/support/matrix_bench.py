"""The reading side of Matrix on a bench: a homeserver of which every answer is told, and no network."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from segue.platforms.matrix.asking import SECONDS, Line, place
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.failing import refusal
from segue.platforms.matrix.inbound import Me, Room
from segue.platforms.matrix.inviting import Porter
from segue.platforms.matrix.keyring import Device, Keyring
from segue.platforms.matrix.reading import Reader
from segue.platforms.matrix.taking import Taker
from segue.platforms.matrix.waiting import Waiting
from segue.storage.attachments import AttachmentFolder
from segue.testing.ledger import Ledger

ME, ANN, EVE = "@segue:example.org", "@ann:example.org", "@eve:example.org"
ROOM = "!room:example.org"
SEALED = {"algorithm": "m.megolm.v1.aes-sha2", "sender_key": "k", "device_id": "D", "ciphertext": "zz"}

Answer = Callable[[tuple[str, ...], Mapping[str, str]], dict[str, Any]]


class PlayedLine(Line):
    """Whatever is asked is answered by `answer`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("http://127.0.0.1:1", "token")
        self.asked: list[tuple[str, ...]] = []
        self._answer = answer

    async def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = SECONDS,
    ) -> dict[str, Any]:
        place(*path, query=query)
        self.asked.append((method, *path))
        return self._answer((method, *path), query or {})


class Bench(NamedTuple):
    line: PlayedLine
    client: Client
    ledger: Ledger
    keyring: Keyring
    porter: Porter
    taker: Taker
    reader: Reader

    async def take(self, *events: dict[str, Any], members: int = 2) -> None:
        """What happens in a room with so many people."""
        for event in events:
            await self.taker.take(event, Room(ROOM, members=members))


def unknown(_path: tuple[str, ...], _query: Mapping[str, str]) -> dict[str, Any]:
    """The answer of a homeserver that knows nothing."""
    raise refusal(404, {"errcode": "M_NOT_FOUND"})


@asynccontextmanager
async def benched(folder: Path, ledger: Ledger | None = None, answer: Answer = unknown) -> AsyncIterator[Bench]:
    ledger, line, keyring = ledger or Ledger(), PlayedLine(answer), Keyring(folder / "platforms" / "matrix")
    keyring.open()
    client = Client(line, Device(ME, "DEVICE", "token"), keyring, encryption=True)
    me = Me(ME)
    porter = Porter(line, ledger, me)
    taker = Taker(line, client, ledger, AttachmentFolder(folder / "attachments"), me, Waiting(keyring))
    reader = Reader(line, client, ledger, me, porter, taker)
    try:
        yield Bench(line, client, ledger, keyring, porter, taker, reader)
    finally:
        client.shut()
        await line.close()


def said(
    content: dict[str, Any], name: str = "$odd", sender: str = ANN, kind: str = "m.room.message"
) -> dict[str, Any]:
    """Something that somebody says in a room."""
    return {"type": kind, "event_id": name, "sender": sender, "origin_server_ts": 1, "content": content}


def text(body: str, name: str = "$text", sender: str = ANN) -> dict[str, Any]:
    return said({"msgtype": "m.text", "body": body}, name, sender)
