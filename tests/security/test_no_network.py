"""Tests talk to this machine alone, and so does every program that they start."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest
from waiting import DEADLINE

ELSEWHERE = ["192.0.2.1", "8.8.8.8", "2001:db8::1", "10.0.0.1", "169.254.169.254"]
CONNECTING = """
import socket, sys
host = sys.argv[1]
with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
    one.settimeout(0.1)
    one.connect((host, 9))
"""


def connect(host: str, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as one:
        one.settimeout(0.1)
        one.connect((host, 9))


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_nobody_elsewhere_is_reached(host: str, kind: int) -> None:
    with pytest.raises(RuntimeError, match="tests talk to this machine alone"):
        connect(host, kind)


def test_nothing_is_sent_without_a_connection_either() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, pytest.raises(RuntimeError, match="this machine"):
        one.sendto(b"x", ("192.0.2.1", 9))


def test_an_event_loop_reaches_nobody_elsewhere() -> None:
    with pytest.raises(RuntimeError, match="tests talk to this machine alone"):
        asyncio.run(asyncio.open_connection("192.0.2.1", 9))


@pytest.mark.parametrize("name", ["example.org", "nowhere.invalid", "metadata.google.internal."])
def test_nobody_elsewhere_is_asked_for_a_name(name: str) -> None:
    with pytest.raises(OSError, match="names of this machine alone"):
        socket.getaddrinfo(name, 80)


def test_a_program_that_a_test_starts_reaches_nobody_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONNECTING, "192.0.2.1"],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert "LeftTheMachine" in done.stderr


def test_this_machine_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as one:
        one.connect(("localhost", server.getsockname()[1]))
    assert socket.getaddrinfo("localhost", 80)
