"""MCP servers in the settings: either a program or an address, and no secret is ever shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from segue.config import load
from segue.config.documenting import shown
from segue.core.errors import InvalidSettings


def settings(folder: Path, servers: Any, **environment: str) -> Any:
    (folder / "config.yaml").write_text(json.dumps({"mcp": {"servers": servers}}))
    return load(folder, environment)


def test_servers_are_read_and_their_secrets_are_not_shown(tmp_path: Path) -> None:
    said = {
        "files": {"command": ["my-server", "--port=1"], "env": {"KEY": "${MINE}"}},
        "wiki": {"url": "https://wiki.example.org/mcp", "headers": {"Authorization": "Bearer ${MINE}"}},
    }
    read = settings(tmp_path, said, MINE="hunter2")
    assert read.mcp.servers["files"].command == ("my-server", "--port=1")
    assert read.mcp.servers["files"].env == {"KEY": "hunter2"}
    assert read.mcp.servers["wiki"].headers == {"Authorization": "Bearer hunter2"}
    told = shown(read)["mcp"]["servers"]
    assert told["files"]["env"] == {"KEY": "***"}
    assert told["wiki"]["headers"] == {"Authorization": "***"}
    assert "hunter2" not in json.dumps(told)


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ({}, "mcp.servers.a must have either a command or a url"),
        ({"command": ["x"], "url": "https://x"}, "mcp.servers.a must have either a command or a url"),
        ({"command": [""]}, "must begin with a program"),
        ({"command": ["x"], "headers": {"A": "hunter2"}}, "has env, not headers"),
        ({"url": "https://x", "env": {"A": "hunter2"}}, "headers, not env"),
        ({"url": "ftp://x"}, "begins with http"),
        ({"url": "https://x", "headers": {"A": "hunter2\r\nB: c"}}, "printable ASCII"),
        ({"url": "https://x", "headers": {"A:": "hunter2"}}, "the name of a header"),
        ({"command": ["x"], "env": {"A=B": "hunter2"}}, "the name of a variable"),
        ({"command": "x"}, "a list"),
    ],
)
def test_what_cannot_be_a_server_is_refused_without_its_secrets(tmp_path: Path, server: Any, says: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        settings(tmp_path, {"a": server})
    assert says in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["my_server", "", "a b", "é", "x" * 33])
def test_the_name_of_a_server_can_begin_the_name_of_a_tool(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSettings, match="letters, digits and hyphens"):
        settings(tmp_path, {name: {"command": ["x"]}})
