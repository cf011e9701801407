"""MCP servers that go and come back: real ones, killed between calls and in the middle of them."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp_use import WebServer, begun, gone, is_running, names, program, refused, run, sent, three, timed_out, tool
from waiting import DEADLINE, until

from segue.tools import mcp_program, mcp_server
from segue.tools.mcp_places import Website
from segue.tools.mcp_servers import McpServers

pytestmark = [pytest.mark.on_file, pytest.mark.process]

UNKNOWN = "The MCP server ended before it answered; what it did is unknown."
NOTHING_DONE = "The MCP server my is gone, and nothing was done; go on without it."


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    try:
        yield server
    finally:
        server.close()


async def killed(servers: McpServers) -> int:
    """Kill the program, some time before anybody needs it."""
    pid = int(await tool(servers, "my_pid").run({}, "s"))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_running(pid))
    await gone(servers)
    return pid


def test_a_program_that_was_killed_is_started_again_by_the_next_call() -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("plain")}, told) as servers:
            before = sent(servers)
            for _ in range(5):  # one that is of use each time is started as often as it takes
                pid = await killed(servers)
                assert list(await asyncio.gather(three(servers), three(servers))) == ["3", "3"]
                assert await tool(servers, "my_pid").run({}, "s") != str(pid)
            assert told == ["The MCP server my was gone and is back: it ended with exit code -9."] * 5
            await servers.ready()
            assert len(told) == 5
            assert sent(servers) == before

    run(work())


def test_a_program_that_was_killed_is_started_again_before_the_next_turn() -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("stdio")}, told) as servers:
            before, tools = sent(servers), servers.tools()
            await killed(servers)
            assert sent(servers) == before
            await servers.ready()
            assert told == ["The MCP server my was gone and is back: it ended with exit code -9."]
            assert servers.tools() == tools
            assert await three(servers) == "3"

    run(work())


def test_a_program_whose_children_keep_its_output_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_program, "_PATIENCE", 0.2)

    async def work() -> None:
        plain = program("plain", FOLDER=str(tmp_path))
        leaving = 'sleep 1000 & echo $! >> "$FOLDER/children"; exec "$0" "$@"'
        at = plain._replace(command=["sh", "-c", leaving, *plain.command])
        told: list[str] = []
        async with begun({"my": at}, told) as servers:
            await killed(servers)
            assert await three(servers) == "3"
            assert told == ["The MCP server my was gone and is back: it ended with exit code -9."]
            old, new = map(int, (tmp_path / "children").read_text().split())
            assert not is_running(old)
            assert is_running(new)
        assert not is_running(new)

    run(work())


def test_a_call_in_which_the_program_was_killed_is_not_made_again(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[str] = []
        hanging = tmp_path / "hanging"
        async with begun({"my": program("plain")}, told) as servers:
            pid = int(await tool(servers, "my_pid").run({}, "s"))
            calling = asyncio.create_task(refused(servers, "my_hang", folder=str(tmp_path)))
            await until(hanging.exists)
            hanging.unlink()
            os.kill(pid, signal.SIGKILL)
            assert await calling == UNKNOWN
            assert told == ["The MCP server my is gone, and its tools are not there: it ended with exit code -9."]
            assert await three(servers) == "3"
            assert told[1:] == ["The MCP server my is back, with its tools."]
            assert not hanging.exists()
            await timed_out(servers, tmp_path)

    run(work())


def test_a_program_that_ends_in_a_call_tells_why() -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("plain")}, told) as servers:
            assert await refused(servers, "my_die") == UNKNOWN
            assert told == [
                "The MCP server my is gone, and its tools are not there: it ended with exit code 7. It said: I am dying"
            ]
            await servers.ready()
            assert told[1:] == ["The MCP server my is back, with its tools."]
            assert "add" in names(servers)

    run(work())


@pytest.mark.parametrize("is_needed_by", ["calls", "turns"])
def test_a_program_that_ends_at_once_is_started_a_few_times_and_told_once(tmp_path: Path, is_needed_by: str) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("brief", str(tmp_path))}, told, pause=0.1) as servers:
            add = tool(servers, "my_add")
            await killed(servers)
            for _ in range(3):
                if is_needed_by == "turns":
                    await servers.ready()
                    assert servers.tools() == []
                else:
                    assert await refused(servers, "my_add", a=1, b=2) == NOTHING_DONE
                    assert add in servers.tools()
            assert (tmp_path / "starts").read_text() == "x" * (1 + 3)
            assert told == [
                "The MCP server my is gone, and its tools are not there: it ended with exit code 1. It said: I am brief"
            ]

    run(work())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment by which servers are tried again; it stands still unless a test moves it."""
    now = [1_000.0]
    monkeypatch.setattr(mcp_server, "_now", lambda: now[0])
    return now


def test_a_program_that_rested_is_started_again(tmp_path: Path, clock: list[float]) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("brief", str(tmp_path))}, told, pause=0, rest=60) as servers:
            await killed(servers)
            await servers.ready()
            assert servers.tools() == []
            (tmp_path / "starts").unlink()
            await servers.ready()
            assert servers.tools() == []
            clock[0] += 59
            await servers.ready()
            assert servers.tools() == []
            clock[0] += 1
            await servers.ready()
            assert await three(servers) == "3"
            assert len(told) == 2
            assert told[1] == "The MCP server my is back, with its tools."

    run(work())


@pytest.mark.usefixtures("clock")
def test_a_program_that_only_comes_to_go_again_is_given_up(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("brief", str(tmp_path), "each")}, told, pause=0.1) as servers:
            for _ in range(8):
                await gone(servers)
                await servers.ready()
            assert (tmp_path / "starts").read_text() == "x" * (1 + 3)
            assert servers.tools() == []
            assert told[-1].startswith(
                "The MCP server my is gone, and its tools are not there: it ended with exit code"
            )
            assert len([line for line in told if "gone" in line]) <= 1 + 3

    run(work())


def test_a_website_that_comes_back_is_used_again(web: WebServer, clock: list[float]) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": web.at}, told, pause=0.1, rest=60) as servers:
            before = sent(servers)
            await asyncio.to_thread(web.kill)
            assert await refused(servers, "my_add", a=1, b=2) == NOTHING_DONE
            assert len(told) == 1
            assert told[0].startswith("The MCP server my is gone, and its tools are not there: ")
            await asyncio.to_thread(web.start)
            clock[0] += 60
            assert await three(servers) == "3"
            assert told[1:] == ["The MCP server my is back, with its tools."]
            await servers.ready()
            assert sent(servers) == before
            await asyncio.to_thread(web.kill)
            await asyncio.to_thread(web.start)
            assert await three(servers) == "3"

    run(work())


def test_a_website_that_was_not_there_at_first_is_used_when_it_is(web: WebServer, clock: list[float]) -> None:
    async def work() -> None:
        told: list[str] = []
        await asyncio.to_thread(web.kill)
        async with begun({"my": web.at}, told, rest=60) as servers:
            assert servers.tools() == []
            await asyncio.to_thread(web.start)
            clock[0] += 60
            await servers.ready()
            assert await three(servers) == "3"
            assert told[0].startswith("The MCP server my cannot be used, and its tools are not there: ")
            assert told[1:] == ["The MCP server my can be used now."]

    run(work())


def test_a_call_in_which_the_website_was_killed_is_not_made_again(web: WebServer, tmp_path: Path) -> None:
    async def work() -> None:
        hanging = tmp_path / "hanging"
        async with begun({"my": web.at}, pause=0.1) as servers:
            calling = asyncio.create_task(refused(servers, "my_hang", folder=str(tmp_path)))
            await until(hanging.exists)
            hanging.unlink()
            await asyncio.to_thread(web.kill)
            assert await calling == UNKNOWN
            await asyncio.to_thread(web.start)
            assert await three(servers) == "3"
            assert not hanging.exists()

    run(work())


class Forgetful(BaseHTTPRequestHandler):
    """Speaks the protocol of before, and forgets each chat when it is told to."""

    known = 0
    calls = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = asked["method"]
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "forgetful", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "counted"}]},
        }
        if method not in results and "id" in asked:
            self._say(200, {"id": asked["id"], "error": {"code": -32601, "message": "Method not found"}})
        elif method != "initialize" and self.headers["mcp-session-id"] != str(Forgetful.known):
            self._say(404, {"id": None, "error": {"code": -32600, "message": "Session not found"}})
        elif "id" not in asked:
            self._say(202, {})
        else:
            Forgetful.calls += method == "tools/call"
            self._say(200, {"id": asked["id"], "result": results[method]})

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def _say(self, status: int, said: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **said}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("mcp-session-id", str(Forgetful.known))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


def test_a_website_that_forgot_the_chat_is_reached_again_and_called_once() -> None:
    async def work() -> None:
        told: list[str] = []
        at = Website(f"http://127.0.0.1:{listening.server_address[1]}/mcp", {})
        async with begun({"my": at}, told) as servers:
            for number in (1, 2, 3):
                Forgetful.known += 1
                assert await tool(servers, "my_count").run({}, "s") == "counted"
                assert Forgetful.calls == number
        assert told == ["The MCP server my was gone and is back: it does not know this chat any more."] * 3

    Forgetful.known = Forgetful.calls = 0
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        run(work())
    finally:
        listening.shutdown()
        listening.server_close()


def test_a_chat_ends_at_once_while_a_server_is_started_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with begun({"my": program("brief", str(tmp_path))}, pause=100 * DEADLINE) as servers:
            await killed(servers)
            servers._servers[0]._connecting = 0.5
            assert await refused(servers, "my_add", a=1, b=2) == NOTHING_DONE

    run(work())
