"""Tools of MCP servers: real servers, started and asked over HTTP, good ones and bad ones."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.shared import jsonrpc_dispatcher
from mcp_use import SERVER, WebServer, begun, is_running, program, refused, run, timed_out, tool
from raw_model_server import Play, RawModelServer
from waiting import DEADLINE, until, wait_until

from segue.tools import mcp_program
from segue.tools.environment import environment_for
from segue.tools.mcp_places import Program, Website
from segue.tools.mcp_tool import McpTool, Offer, named

pytestmark = pytest.mark.on_file


@pytest.fixture
def website() -> Iterator[Website]:
    server = WebServer()
    try:
        yield server.at
    finally:
        server.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not end, or does not listen, when it should is not given much time."""
    monkeypatch.setattr(mcp_program, "_PATIENCE", 0.2)
    monkeypatch.setattr(jsonrpc_dispatcher, "_ABANDON_WRITE_TIMEOUT", 0.2)


def test_the_tools_of_a_program_can_be_used(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("stdio", MINE="given")}, told) as servers:
            assert [one.spec.name for one in servers.tools()] == [
                f"my_{name}"
                for name in (
                    "add",
                    "child",
                    "die",
                    "environment",
                    "fail",
                    "grow",
                    "hang",
                    "long_text",
                    "picture",
                    "pid",
                )
            ]
            add = tool(servers, "my_add")
            assert add.spec.description == "Add two numbers. (MCP server my)"
            assert sorted(add.spec.parameters["properties"]) == ["a", "b"]
            assert await add.run({"a": 1, "b": 2}, "s") == "3"
            assert await tool(servers, "my_environment").run({"name": "MINE"}, "s") == "given"
            assert (
                await tool(servers, "my_picture").run({}, "s") == "[An image, image/png, which cannot be shown here.]"
            )
            long = await tool(servers, "my_long_text").run({"size": 70_000}, "s")
            assert long == "x" * 50_000 + "\n[20,000 characters more are not shown.]"
            assert "no luck" in await refused(servers, "my_fail")
            assert "valid" in await refused(servers, "my_add", a="x")
            assert "half a character" in await refused(servers, "my_environment", name="\ud800")
            assert [add.risk({}), add.is_idempotent({})] == [None, True]
            reading = tool(servers, "my_environment")
            assert [reading.risk({"name": "A\n\x1b"}), reading.is_idempotent({})] == [
                'my: environment {"name": "A\\n\\u001b"}',
                True,
            ]
            assert not tool(servers, "my_fail").is_idempotent({})
        assert told == []

    run(work())


def test_the_tools_of_a_website_can_be_used(website: Website) -> None:
    async def work() -> None:
        async with begun({"web": website, "my": program("plain")}) as servers:
            names = [one.spec.name for one in servers.tools()]
            assert names == sorted(names)
            assert await tool(servers, "web_add").run({"a": 20, "b": 22}, "s") == "42"
            assert "no luck" in await refused(servers, "web_fail")
            await refused(servers, "web_die")
            await refused(servers, "web_add", a=1, b=2)

    run(work())


def test_a_server_that_is_not_there_is_told_in_a_line_and_the_others_are() -> None:
    async def work() -> None:
        told: list[str] = []
        servers: dict[str, Program | Website] = {
            "good": program("plain"),
            "missing": Program(["no-such-program-anywhere"], Path("/"), {"PATH": "/bin"}),
            "broken": Program(["sh", "-c", "echo oh no >&2; exit 3"], Path("/"), {"PATH": "/bin:/usr/bin"}),
            "nowhere": Website("http://127.0.0.1:9/mcp", {"Authorization": "secret"}),
        }
        async with begun(servers, told) as there:
            assert await tool(there, "good_add").run({"a": 1, "b": 1}, "s") == "2"
            assert len(told) == 3
            lines = " | ".join(told)
            assert "missing cannot be used, and its tools are not there: there is no program no-such" in lines
            assert (
                "broken cannot be used, and its tools are not there: it ended with exit code 3. It said: oh no" in lines
            )
            assert "secret" not in lines

    run(work())


@pytest.mark.process
@pytest.mark.usefixtures("hasty")
def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    async def work() -> None:
        for seconds in (2, 16, 64):
            told: list[str] = []
            async with begun({"deaf": program("deaf", FOLDER=str(tmp_path))}, told, connecting=seconds) as servers:
                assert servers.tools() == []
            assert len(told) == 1
            if (tmp_path / "pid").exists():
                break  # otherwise this machine was too busy to begin in time
        assert not is_running(int((tmp_path / "pid").read_text()))

    run(work())


@pytest.mark.process
@pytest.mark.parametrize(("how", "seconds"), [("flood", DEADLINE), ("chatter", 1.0)])
@pytest.mark.usefixtures("hasty")
def test_a_server_that_floods_has_no_tools_and_ends(how: str, seconds: float) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"loud": program(how)}, told, connecting=seconds) as servers:
            await until(lambda: servers._servers[0]._is_settled.is_set())
            await servers.ready()
            assert servers.tools() == []
            assert any("cannot be used" in line for line in told)

    run(work())


may_end = threading.Event()
"""Whoever hangs does so until then."""


class BadWebsite(BaseHTTPRequestHandler):
    """Answers every question in the way that its path says."""

    def do_POST(self) -> None:
        match self.path:
            case "/refuses":
                self.send_error(401)
            case "/hangs":
                may_end.wait(DEADLINE)
            case "/packs":
                self._begin("application/json", ("Content-Encoding", "gzip"))
            case _:
                self._begin("application/json" if self.path == "/floods" else "text/event-stream")
                with suppress(OSError):
                    self.wfile.write(b"data: ")
                    while True:
                        self.wfile.write(b"x" * 65_536)

    def _begin(self, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("Content-Type", kind), *headers):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


@pytest.mark.parametrize(
    ("path", "reason", "seconds"),
    [
        ("refuses", "it answered with the status 401; look at its headers in the settings.", DEADLINE),
        ("hangs", "it did not answer within 0.5 seconds.", 0.5),
        ("packs", "it packs its answers, though it was asked not to.", DEADLINE),
        ("floods", "it said more than 16,777,216 bytes at once.", DEADLINE),
        ("floods-events", "16777216 byte limit", DEADLINE),
    ],
)
def test_a_website_that_behaves_badly_has_no_tools(path: str, reason: str, seconds: float) -> None:
    async def work() -> None:
        told: list[str] = []
        bad = Website(f"http://127.0.0.1:{listening.server_address[1]}/{path}", {"Authorization": "Bearer secret"})
        async with begun({"bad": bad}, told, connecting=seconds) as servers:
            await until(servers._servers[0]._is_settled.is_set)
            await servers.ready()
            assert servers.tools() == []
        assert reason in told[-1]
        assert "secret" not in " ".join(told)

    may_end.clear()
    listening = ThreadingHTTPServer(("127.0.0.1", 0), BadWebsite)
    listening.daemon_threads = True
    listening.handle_error = lambda *_: None  # type: ignore[method-assign]
    serving = threading.Thread(target=listening.serve_forever, daemon=True)
    serving.start()
    try:
        run(work())
    finally:
        may_end.set()
        listening.shutdown()
        listening.server_close()


@pytest.mark.process
@pytest.mark.usefixtures("hasty")
def test_a_server_that_stops_listening_blocks_nobody() -> None:
    async def work() -> None:
        async with begun({"liar": program("liar", "--deaf")}, calling=0.5) as servers:
            assert "within 0.5 seconds" in await refused(servers, "liar_promise", text="x" * 1_000_000)

    run(work())


def test_a_call_that_takes_too_long_or_is_cancelled_ends(tmp_path: Path) -> None:
    async def work() -> None:
        async with begun({"my": program("stdio")}) as servers:
            await timed_out(servers, tmp_path)
            await until((tmp_path / "cancelled").exists)
            for name in ("hanging", "cancelled"):
                (tmp_path / name).unlink()
            calling = asyncio.create_task(tool(servers, "my_hang").run({"folder": str(tmp_path)}, "s"))
            await until((tmp_path / "hanging").exists)
            calling.cancel()
            await asyncio.wait({calling})
            assert calling.cancelled()
            await until((tmp_path / "cancelled").exists)
            assert await tool(servers, "my_add").run({"a": 1, "b": 1}, "s") == "2"

    run(work())


def test_a_server_that_lies_is_believed_where_it_does_no_harm() -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"liar": program("liar")}, told) as servers:
            names = [one.spec.name for one in servers.tools()]
            assert names[0] == "liar_a_b"
            assert names[1].startswith("liar_a_b_")
            assert names[2] == "liar_promise"
            assert len(names[3]) == 64
            assert len(names) == 4
            first = servers.tools()[0].spec.description
            assert "\x1b" not in first
            assert len(first) < 2_100
            assert told == ["The MCP server liar has 1 tool that no model can use: huge"]
            assert "cannot be used" in await refused(servers, "liar_promise")

    run(work())


@pytest.mark.parametrize("schema", ['{"type": "string"}', '{"type": "object", "properties": []}', "3", "{}"])
def test_a_schema_that_is_none_harms_nobody(schema: str) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"liar": program("liar", schema), "my": program("plain")}, told) as servers:
            assert "liar_bad" not in [one.spec.name for one in servers.tools()]
            assert await tool(servers, "my_add").run({"a": 1, "b": 1}, "s") == "2"
        assert len(told) == 1
        assert "liar cannot be used, and its tools are not there: what it says has not the form of MCP" in told[0]

    run(work())


@pytest.mark.usefixtures("hasty")
def test_nothing_is_left_of_a_server_when_the_chat_ends() -> None:
    async def work() -> None:
        async with begun({"my": program("plain")}) as servers:
            pids = [int(await tool(servers, f"my_{name}").run({}, "s")) for name in ("pid", "child")]
            assert all(map(is_running, pids))
        assert not any(map(is_running, pids))

    run(work())


@pytest.mark.process
def test_nothing_is_left_of_a_server_when_the_program_is_killed(tmp_path: Path) -> None:
    script = (
        f"import asyncio, sys\nfrom pathlib import Path\nsys.path[:0] = [{str(Path(__file__).parents[2])!r}]\n"
        "from segue.tools.mcp_servers import McpServers\nfrom segue.tools.mcp_places import Program\n"
        "async def main():\n"
        f"    servers = McpServers({{'my': Program([sys.executable, {SERVER!r}, 'plain'], Path('/'), {{}})}}, print)\n"
        "    servers.begin(())\n    await servers.ready()\n"
        "    tools = {tool.spec.name: tool for tool in servers.tools()}\n"
        "    print(await tools['my_pid'].run({}, 's'), await tools['my_child'].run({}, 's'), flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, pids)))


def test_names_are_safe_short_and_apart_from_those_that_are_taken() -> None:
    names = named("read", ["file", "file.x", "file x", "é" * 80], {"read_file"})
    assert len(set(names.values()) | {"read_file"}) == 5
    assert all(len(name) <= 64 and name.isascii() for name in names.values())
    assert names == named("read", ["file", "file.x", "file x", "é" * 80], {"read_file"})


def test_without_a_description_a_tool_still_has_one() -> None:
    async def call(_: str, __: dict[str, Any]) -> str:
        return ""

    assert McpTool("a", Offer("b", "", {}), "a_b", call).spec.description == "No description. (MCP server a)"


def streamed(**delta: Any) -> Play:
    """One answer of a model on the wire of OpenAI."""
    reason = "tool_calls" if "tool_calls" in delta else "stop"
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]
    last = [{"index": 0, "delta": {}, "finish_reason": reason}]
    lines = [json.dumps(chunk | {"choices": one}) for one in (choices, last)]
    return Play([f"data: {line}\n\n".encode() for line in [*lines, "[DONE]"]], is_chunked=True)


PATIENT_CHAT = f"""
from segue.cli import main
from segue.tools.mcp_servers import McpServers
McpServers.__init__.__kwdefaults__["connecting"] = {DEADLINE}
main()
"""


@pytest.mark.process
def test_a_chat_uses_the_servers_of_its_settings(tmp_path: Path) -> None:
    function = {"name": "my_add", "arguments": '{"a": 20, "b": 22}'}
    calling = streamed(tool_calls=[{"index": 0, "id": "1", "type": "function", "function": function}])
    model = RawModelServer(calling, streamed(content="It is done."))
    servers = {"my": {"command": [sys.executable, SERVER, "stdio"]}, "none": {"command": ["no-such-program-anywhere"]}}
    provider = {"kind": "openai", "base_url": f"{model.url}/v1", "api_key": "k"}
    said = {"mcp": {"servers": servers}, "providers": {"mine": provider}, "model": "mine/m"}
    (tmp_path / "config.yaml").write_text(json.dumps(said))
    environment = environment_for(os.environ) | {
        "SEGUE_HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", PATIENT_CHAT, "-q", "add them"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
    finally:
        model.close()
    assert (done.returncode, done.stdout.strip()) == (0, "It is done.")
    assert "The MCP server none cannot be used" in done.stderr
    first, second = (json.loads(body) for body in model.asked[:2])
    assert [one["function"]["name"] for one in first["tools"]][:9][-2:] == ["web_fetch", "my_add"]
    assert json.dumps(first["tools"]) == json.dumps(second["tools"])
    assert "42" in json.dumps(second["messages"][-1])
