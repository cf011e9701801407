"""Real MCP servers for tests: `mcp_server.py stdio`, `http PORT`, `plain`, and some that behave badly.

Those of the first two are made with the official SDK, which takes a while to load; the others do without.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def sdk_server() -> Any:
    import anyio
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    globals()["Context"], globals()["Image"] = Context, Image  # annotations of tools are looked up there
    server: MCPServer[Any] = MCPServer("test", log_level="CRITICAL")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> str:
        """Add two\x07 numbers."""
        return str(a + b)

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def environment(name: str) -> str:
        """A variable."""
        return os.environ.get(name, "(nothing)")

    @server.tool(structured_output=False)
    def picture() -> Image:
        """An image."""
        return Image(data=b"png", format="png")

    @server.tool()
    def fail() -> str:
        """Never works."""
        raise ToolError("no luck")

    @server.tool()
    def die() -> str:
        """Ends the server in the middle of a call."""
        print("I am dying", file=sys.stderr, flush=True)
        os._exit(7)

    @server.tool()
    async def hang(folder: str) -> str:
        """Never answers, and says when it is told to stop."""
        Path(folder, "hanging").touch()
        try:
            await anyio.sleep(1_000)
        finally:
            Path(folder, "cancelled").touch()
        return ""

    @server.tool()
    async def grow(name: str, context: Context) -> str:
        """Has one tool more from now on."""
        server.add_tool(lambda: "new", name=name, description="A new one.")
        await context.notify_tools_changed()
        return "grown"

    @server.tool(name="long text")
    def long_text(size: int) -> str:
        """A text of any length."""
        return "x" * size

    @server.tool()
    def child() -> str:
        """Starts a process, and says which."""
        return str(subprocess.Popen(["sleep", "1000"]).pid)

    @server.tool()
    def pid() -> str:
        """Of the server."""
        return str(os.getpid())

    return server


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            sdk_server().run("stdio")
        case ["http", port]:
            sdk_server().run("streamable-http", host="127.0.0.1", port=int(port))
        case ["plain"]:
            Plain().serve()
        case ["brief", folder, *lasting]:  # works the first time, or is only there for a moment, and notes each start
            with Path(folder, "starts").open("a") as starts:
                starts.write("x")
            if not lasting and Path(folder, "starts").stat().st_size > 1:
                sys.exit("I am brief")
            if not lasting:
                Plain().serve()
            for line in sys.stdin:
                lie(json.loads(line), [])
                if "tools/list" in line:
                    sys.exit("I was brief")
        case ["older", *lists]:  # speaks the protocol of before, and after each use has the next of its lists
            Older([json.loads(one) for one in lists]).serve()
        case ["deaf"]:  # neither answers nor ends by itself
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path(os.environ["FOLDER"], "pid").write_text(str(os.getpid()))
            time.sleep(1_000)
        case ["flood"]:
            while True:
                os.write(1, b"x" * 65_536)
        case ["chatter"]:  # says much that nobody asked for, and nothing else
            while True:
                os.write(1, b"what is that?\n" * 1_000)
        case ["liar", "--deaf"]:  # as soon as it has said what it can do
            for line in sys.stdin:
                lie(json.loads(line), [])
                if "tools/list" in line:
                    time.sleep(1_000)
        case ["liar", *bad]:
            for line in sys.stdin:
                lie(json.loads(line), bad)


class Plain:
    """Speaks the protocol of before, with some of the same tools."""

    def serve(self) -> None:
        for line in sys.stdin:
            asked = json.loads(line)
            match asked["method"]:
                case "tools/list":
                    names = ("add", "child", "die", "hang", "pid")
                    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
                    self._say(asked, {"tools": tools})
                case "tools/call":
                    said = self._use(asked["params"]["name"], asked["params"].get("arguments") or {})
                    if said is not None:
                        self._say(asked, {"content": [{"type": "text", "text": said}]})
                case _:
                    lie(asked, [])

    def _use(self, name: str, given: dict[str, Any]) -> str | None:
        match name:
            case "add":
                return str(given["a"] + given["b"])
            case "pid":
                return str(os.getpid())
            case "child":
                return str(subprocess.Popen(["sleep", "1000"]).pid)
            case "die":
                print("I am dying", file=sys.stderr, flush=True)
                os._exit(7)
            case "hang":
                Path(given["folder"], "hanging").touch()
        return None

    def _say(self, asked: dict[str, Any], result: dict[str, Any]) -> None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


class Older:
    """Says unasked that its tools are others now. When it has no list left, it does not say which."""

    def __init__(self, lists: list[Any]) -> None:
        self._lists = lists

    def serve(self) -> None:
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["method"] == "tools/call":
                del self._lists[0]
                said = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                print(json.dumps(said), flush=True)
            if asked["method"] != "tools/list":
                lie(asked, [])
            elif self._lists:
                print(
                    json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": self._lists[0]}}), flush=True
                )


def lie(asked: dict[str, Any], bad: list[str]) -> None:
    """Answers in the right form with what is not so."""
    described: list[dict[str, Any]] = [
        *({"name": "bad", "inputSchema": json.loads(schema)} for schema in bad),
        {"name": "huge", "inputSchema": {"type": "object", "description": "x" * 100_000}},
        {"name": "a.b", "inputSchema": {"type": "object"}, "description": "\u001b[2Jhello " + "y" * 5_000},
        {"name": "a/b", "inputSchema": {"type": "object"}},
        {"name": "a/b", "inputSchema": {"type": "object"}, "description": "again"},
        {"name": "z" * 100, "inputSchema": {"type": "object"}},
        {"name": "promise", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    ]
    answers: dict[str, dict[str, Any]] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "liar", "version": "1"},
        },
        "tools/list": {"tools": described},
        "tools/call": {"content": [{"type": "text", "text": "no promise kept"}]},
    }
    if "id" in asked:
        found = answers.get(asked["method"])
        said = {"result": found} if found else {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
