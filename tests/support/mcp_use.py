"""Real MCP servers as a test uses them: started, asked, and killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

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
    there = McpServers(servers, ([] if told is None else told).append, **seconds)
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


async def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is looked at
        return False


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(bounded())


class WebServer:
    """A server that is asked over HTTP, and can be killed and started again where it was."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self.at = Website(f"http://127.0.0.1:{self._port}/mcp", {"Authorization": "Bearer secret"})
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, SERVER, "http", str(self._port)], stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
