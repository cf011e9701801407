"""A program that speaks MCP over its input and output, as a transport of the SDK.

It is like a command of the terminal: in a session of its own that a keeper knows before the program runs, so that it
ends with this program whatever happens, with all that it has started. A line that has no end is not waited for.
"""

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from errno import ENOENT

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from segue.core.text import one_line
from segue.tools.head_and_tail import HeadAndTail
from segue.tools.keepers import shared_keeper
from segue.tools.mcp_places import Program
from segue.tools.shell import Shell
from segue.tools.threads import in_thread

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

LONGEST_LINE = 16 * 1024 * 1024
_PATIENCE = 2.0  # seconds for a program whose input has ended, and again for one that was asked to end
_MOMENT = 0.2
_LAST_WORDS = 1_000  # characters of what it says to people
_WAITING = 'read -r go || exit 125; exec "$@"'
"""Becomes the program when it is told that a keeper knows of it. A shell reads no further than that line."""


class Talk:
    """What is known of a program while it runs, and afterwards."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.is_left = False
        """Whether it is over because we ended it."""
        self.fault = ""
        self._words = HeadAndTail(0, _LAST_WORDS)
        self._process: Process | None = None

    @property
    def why(self) -> str:
        """Why it is over, in a sentence."""
        code = self._process.returncode if self._process else None
        ended = self.fault or ("it ended." if code is None else f"it ended with exit code {code}.")
        words = one_line(self._words.text().rpartition(" left out …")[2])
        return f"{ended} It said: {words}" if words else ended

    @asynccontextmanager
    async def begun(self, program: Program) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
        """The program, running: what it says and what it is told."""
        keeper = await in_thread(shared_keeper)
        self._process = process = await _started(program)
        shell = Shell(process, keeper)
        heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            keeper.watch(process.pid)
            async with incoming, outgoing, anyio.create_task_group() as group:
                group.start_soon(self._hear, process, heard)
                group.start_soon(self._say, process, said)
                group.start_soon(self._overhear, process)
                group.start_soon(self._outlive, process)
                try:
                    yield incoming, outgoing
                finally:
                    self.is_left = not self.is_over.is_set()
                    with anyio.CancelScope(shield=True):
                        await _end(process, shell)
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _closed(process, shell)

    async def _hear(self, process: Process, heard: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout is not None
        try:
            async with heard:
                while line := await process.stdout.readline():
                    await heard.send(_understood(line))
        except ValueError:
            self.fault = f"it said more than {LONGEST_LINE:,} bytes in one line."
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # nobody listens any more
        finally:
            self.is_over.set()

    async def _say(self, process: Process, said: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(b"go\n")
            async with said:
                async for message in said:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
        except ConnectionError:
            self.is_over.set()  # it does not listen, though it may still run

    async def _outlive(self, process: Process) -> None:
        """See it end, also when something that it has started keeps its output open."""
        while process.returncode is None:
            await anyio.sleep(_MOMENT)
        await anyio.sleep(_MOMENT)  # for what it said last
        self.is_over.set()

    async def _overhear(self, process: Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(65_536):
            self._words.add(data)


def _understood(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _started(program: Program) -> Process:
    name = program.command[0]
    if shutil.which(name, path=program.environment.get("PATH")) is None and os.sep not in name:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _WAITING, "sh", *program.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=program.cwd,
            env=program.environment,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):  # it did not start, and nobody wants it any more
            process = await starting
            await _closed(process, Shell(process, shared_keeper()))
        raise


async def _end(process: Process, shell: Shell) -> None:
    """The end that the protocol wants: the input ends, then the program is asked to end, then it is killed."""
    assert process.stdin is not None
    process.stdin.close()
    await shell.ended(_PATIENCE)
    await shell.stop(_PATIENCE)


async def _closed(process: Process, shell: Shell) -> None:
    """End what is left of it. The pipes are closed also when this is cancelled, which no scope can prevent."""
    try:
        await shell.close()
    finally:
        _let_go(process)


def _let_go(process: Process) -> None:
    """Close the pipes. Where more came than was read, their end is never seen, and nothing else would close them."""
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way to it
