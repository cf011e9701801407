"""How long a person waits for the chat itself: until the prompt is there, and from Enter to the first word.

    just bench-chat

The model is a server in this process that answers at once, so all that is measured is ours and the network's.
"""

import asyncio
import dataclasses
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from segue import app
from segue.app.chatting import OpenChat
from segue.config import settings_from
from segue.core.commands import Command
from segue.core.events import Event, Text, ToolCall
from segue.core.naming import TITLE_INSTRUCTIONS

STARTS = 9
TURNS = 30
_PROMPT = "●".encode()
_TITLE_SECONDS = 0.5


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = statistics.median(_timed([sys.executable, "-c", "pass"]) for _ in range(STARTS))
        starts = sorted(_until_prompt(folder / f"home{number}") for number in range(STARTS))
        added = sorted(asyncio.run(_first_words(folder / "talk")))
        meanwhile = asyncio.run(_beside_titles(folder / "titles", are_made=True))
        without = asyncio.run(_beside_titles(folder / "none", are_made=False))
    print(f"until the prompt is there: {_ms(statistics.median(starts))} (Python alone {_ms(bare)})")
    print(
        f"from Enter to the first word, more than the server takes: {_ms(statistics.median(added))},"
        f" at most {_ms(added[-1])}, {TURNS} turns"
    )
    print(
        f"the same while a title is being made: {_ms(statistics.median(meanwhile))},"
        f" without titles {_ms(statistics.median(without))}"
    )


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _until_prompt(home: Path) -> float:
    """From the start of the process to the sign that it is one's turn."""
    ours, theirs = pty.openpty()
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "segue"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=keyless | {"SEGUE_HOME": str(home), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    while _PROMPT not in seen:
        ready, _, _ = select.select([ours], [], [], 20)
        assert ready, seen
        seen += os.read(ours, 65536)
    spent = time.perf_counter() - began
    process.kill()
    process.wait()
    os.close(ours)
    return spent


class Server:
    """Speaks as much of the wire format of OpenAI as an answer needs."""

    def __init__(self) -> None:
        self.took: list[float] = []

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            length = next(
                int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            if TITLE_INSTRUCTIONS.splitlines()[0].encode() in body:
                await asyncio.sleep(_TITLE_SECONDS)
            began = time.perf_counter()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for chunk in (_chunk({"role": "assistant", "content": "Yes"}), _chunk({}, "stop"), b"data: [DONE]\n\n"):
                writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
            self.took.append(time.perf_counter() - began)
            writer.write(b"0\r\n\r\n")
            await writer.drain()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.CancelledError):
        return b""


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def _first_words(home: Path) -> list[float]:
    server = Server()
    provider = {"kind": "openai", "base_url": await server.start()}
    settings = settings_from({"model": "here/m", "providers": {"here": provider}}, home, os.environ)
    with app.open_store(chosen=settings) as store:
        opened = OpenChat(settings, store, home, _nobody, print)
        await opened.begin()
        spent = [await _turn(opened, server) for _ in range(TURNS + 1)][1:]  # the first one loads what is needed
        await opened.close()
    return spent


async def _beside_titles(home: Path, *, are_made: bool) -> list[float]:
    """The second turn of conversations whose title is asked for after the first."""
    server = Server()
    provider = {"kind": "openai", "base_url": await server.start()}
    settings = settings_from({"model": "here/m", "providers": {"here": provider}}, home, os.environ)
    with app.open_store(chosen=settings) as store:
        opened = OpenChat(settings, store, home, _nobody, print)
        kit = opened.chat._kit  # noqa: SLF001 - what nobody can switch off but a benchmark
        opened.chat._kit = dataclasses.replace(kit, namer=kit.namer if are_made else None)  # noqa: SLF001
        await opened.begin()
        spent = []
        for _ in range(TURNS):
            await _turn(opened, server)
            spent.append(await _turn(opened, server))
            await opened.chat.command(Command("new"))
            await asyncio.sleep(_TITLE_SECONDS if are_made else 0)
        await opened.close()
    return spent


async def _turn(opened: OpenChat, server: Server) -> float:
    heard: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, Text):
            heard.append(time.perf_counter())

    began = time.perf_counter()
    await opened.chat.say("Are you there?", hear)
    return heard[0] - began - server.took[-1]


async def _nobody(_call: ToolCall, _risk: str) -> bool:
    return False


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    main()
