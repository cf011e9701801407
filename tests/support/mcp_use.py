"""Real MCP servers as a test uses them: started, asked, and killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from held_port import HeldPort
from waiting import DEADLINE, until, wait_until

from segue.ports.tool import Tool, ToolFailed
from segue.tools.environment import environment_for
from segue.tools.mcp_places import Program, Website
from segue.tools.mcp_servers import McpServers

SERVER = str(Path(__file__).with_name("mcp_server.py"))


def program(*arguments: str, **environment: str) -> Program:
    return Program([sys.executable, SERVER, *arguments], Path("/"), environment_for(os.environ) | environment)


@asynccontextmanager
async def begun(
    servers: dict[str, Program | Website], told: list[str] | None = None, **seconds: float
) -> AsyncGenerator[McpServers]:
    """Servers for which there is time, except where a test says how much; a rest lasts longer than any test."""
    times = {"connecting": DEADLINE, "calling": DEADLINE, "rest": 100 * DEADLINE} | seconds
    there = McpServers(servers, ([] if told is None else told).append, **times)
    there.begin(())
    try:
        await there.ready()
        yield there
    finally:
        await there.close()


def tool(servers: McpServers, name: str) -> Tool:
    return {one.spec.name: one for one in servers.tools()}[name]


def sent(servers: McpServers) -> bytes:
    """What a model is told of the tools."""
    return json.dumps([one.spec for one in servers.tools()]).encode()


def names(servers: McpServers) -> list[str]:
    return [one.spec.name.removeprefix("my_") for one in servers.tools()]


async def three(servers: McpServers) -> str:
    return await tool(servers, "my_add").run({"a": 1, "b": 2}, "s")


async def refused(servers: McpServers, name: str, /, **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as failed:
        await tool(servers, name).run(arguments, "s")
    return str(failed.value)


async def timed_out(servers: McpServers, folder: Path) -> str:
    """A call that has begun and is not answered in time is refused, in these words; how much time there was is last."""
    server = servers._servers[0]
    calling = server._calling
    for seconds in (0.5, 8.0, 64.0):
        server._calling = seconds
        told = await refused(servers, "my_hang", folder=str(folder))
        assert f"within {seconds:g} seconds; what it did is unknown" in told
        if (folder / "hanging").exists():
            break  # otherwise this machine was too busy to begin in time
    server._calling = calling
    assert (folder / "hanging").exists()
    return told


async def gone(servers: McpServers) -> None:
    """Wait until it is known that the first of the servers is not there any more."""

    def is_gone() -> bool:
        connection = servers._servers[0]._connection
        return connection is None or not connection.is_open

    await until(is_gone)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is looked at
        return False


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(4 * DEADLINE):
            await work

    asyncio.run(bounded())


class WebServer:
    """A server that is asked over HTTP, and can be killed and started again where it was."""

    def __init__(self) -> None:
        self._held = HeldPort()
        self._port = self._held.number
        self.at = Website(f"http://127.0.0.1:{self._port}/mcp", {"Authorization": "Bearer secret"})
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, SERVER, "http", str(self._port)], stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_until(self._is_there)

    def close(self) -> None:
        self.kill()
        self._held.close()

    def _is_there(self) -> bool:
        assert self._process.poll() is None
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
