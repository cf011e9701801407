"""MCP servers whose tools change while a chat goes on: real ones, of the newer and of the older protocol."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_use import WebServer, begun, gone, names, program, refused, run, sent, three, tool
from waiting import until

from segue.tools.mcp_servers import McpServers

pytestmark = [pytest.mark.on_file, pytest.mark.process]


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Has something in it as soon as a server was asked to say what changes."""
    asked: list[bool] = []
    listen = Client.listen

    @asynccontextmanager
    async def noted(*arguments: Any, **named: Any) -> AsyncGenerator[Any]:
        async with listen(*arguments, **named) as changes:
            asked.append(True)
            yield changes

    monkeypatch.setattr(Client, "listen", noted)
    return asked


async def settled_change(servers: McpServers) -> None:
    """Until the server's word that its tools changed has come; the turn goes on meanwhile."""
    connection: Any = servers._servers[0]._connection
    await until(lambda: bool(connection._list.is_changed))


@pytest.mark.parametrize("how", ["program", "website"])
def test_tools_that_change_are_told_from_the_next_turn_on(web: WebServer, how: str, listening: list[bool]) -> None:
    async def work() -> None:
        told: list[str] = []
        async with begun({"my": program("stdio") if how == "program" else web.at}, told) as servers:
            await until(lambda: listening)
            before, tools, all_names = sent(servers), servers.tools(), names(servers)
            assert await tool(servers, "my_grow").run({"name": "better"}, "s") == "grown"
            await settled_change(servers)
            assert sent(servers) == before
            assert await three(servers) == "3"
            assert sent(servers) == before
            await servers.ready()
            assert names(servers) == sorted([*all_names, "better"])
            assert [one for one in servers.tools() if one.spec.name != "my_better"] == tools
            assert await tool(servers, "my_better").run({}, "s") == "new"
            after = servers.tools()
            await servers.ready()
            assert servers.tools() == after
        assert told == []

    run(work())


def test_a_server_that_comes_back_with_other_tools_has_them_from_the_next_turn_on(listening: list[bool]) -> None:
    async def work() -> None:
        async with begun({"my": program("stdio")}) as servers:
            first = sent(servers)
            await until(lambda: listening)
            await tool(servers, "my_grow").run({"name": "better"}, "s")
            await settled_change(servers)
            await servers.ready()
            before = sent(servers)
            assert before != first
            os.kill(int(await tool(servers, "my_pid").run({}, "s")), signal.SIGKILL)
            await gone(servers)
            assert await three(servers) == "3"
            assert sent(servers) == before
            assert "better" in await refused(servers, "my_better")
            await servers.ready()
            assert sent(servers) == first

    run(work())


def described(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def reordered(offer: dict[str, Any]) -> dict[str, Any]:
    return {key: reordered(offer[key]) if isinstance(offer[key], dict) else offer[key] for key in reversed(offer)}


def test_an_older_server_says_unasked_that_its_tools_are_others() -> None:
    async def work() -> None:
        first = [described("b", x={"type": "string"}, y={"type": "integer"}), described("a")]
        again = [reordered(offer) for offer in reversed(first)]
        other = [described("b", x={"type": "number"}), described("c")]
        lists = [json.dumps(one) for one in (first, again, other)]
        assert json.dumps(first[0]) not in lists[1]
        told: list[str] = []
        async with begun({"my": program("older", *lists)}, told) as servers:

            async def next_turn() -> bytes:
                before = sent(servers)
                await servers.tools()[0].run({}, "s")
                await settled_change(servers)
                assert sent(servers) == before
                await servers.ready()
                return sent(servers)

            assert names(servers) == ["a", "b"]
            before = sent(servers)
            assert await next_turn() == before  # the same in another order is no change
            after = await next_turn()
            assert names(servers) == ["b", "c"]
            assert told == []
            connection: Any = servers._servers[0]._connection
            connection._seconds = 0.5
            assert await next_turn() == after
            assert len(told) == 1
            assert told[0] == (
                "The MCP server my has other tools now and does not say which, so those from before stay: "
                "it did not answer within 0.5 seconds."
            )

    run(work())
