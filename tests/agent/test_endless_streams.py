"""Servers of models that do not stop: an answer has an end, whatever they send, and leaves nothing behind."""

import asyncio
import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from raw_model_server import STREAM, Play, RawModelServer
from streamed_answers import KINDS, ask, call_delta, delta, sse
from waiting import DEADLINE

from segue.agent.choosing import Endpoint, Kind
from segue.agent.providers import bounds, converting, pieces
from segue.agent.providers.model import ProviderModel, warm_up
from segue.core.errors import StreamBroken
from segue.ports.model import Request


class EndlessServer:
    """Sends the same piece for as long as somebody reads, and counts what was taken."""

    def __init__(self, piece: bytes, head: str = STREAM) -> None:
        self._piece = piece
        self._head = head
        self.sent = 0
        self.left: list[float] = []
        """When each client had gone."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(DEADLINE)
            connection.recv(1_000_000)
            connection.sendall(f"{self._head}Connection: close\r\n\r\n".encode())
            while True:
                connection.sendall(self._piece)
                self.sent += len(self._piece)
        self.left.append(time.monotonic())


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    for kind in KINDS:
        warm_up(kind)


@pytest.fixture
def endless() -> Iterator[Callable[..., EndlessServer]]:
    servers: list[EndlessServer] = []

    def begin(piece: bytes, head: str = STREAM) -> EndlessServer:
        servers.append(EndlessServer(piece, head))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def model_at(url: str, kind: Kind) -> ProviderModel:
    base_url = url + ("/v1" if kind == "openai" else "")
    return ProviderModel(Endpoint(kind, kind, base_url, "sk-x", "SOME_API_KEY"), "some-model", silence=DEADLINE)


def failure_of(server: EndlessServer, kind: Kind) -> str:
    async def talk() -> str:
        model = model_at(server.url, kind)
        try:
            with pytest.raises(StreamBroken) as caught:
                async for _ in model.stream(Request("", [{"role": "user", "content": "hello"}])):
                    pass
        finally:
            await model.aclose()
        return str(caught.value)

    return asyncio.run(asyncio.wait_for(talk(), 2 * DEADLINE))


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_without_an_end_is_cut_off(endless: Callable[..., EndlessServer], kind: Kind) -> None:
    server = endless(b"x" * 65_536)
    assert "without a line end" in failure_of(server, kind)
    assert server.sent < 4 * bounds.MAX_EVENT_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_events_without_an_end_are_cut_off(
    endless: Callable[..., EndlessServer], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_STREAM_BYTES", 2_000_000)
    server = endless(b": nothing\n\n" * 1000)
    assert "for one answer" in failure_of(server, kind)


def test_text_without_an_end_is_cut_off(endless: Callable[..., EndlessServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MAX_ANSWER_CHARS", 50_000)
    assert "50,000 characters" in failure_of(endless(sse(delta(content="la " * 100))), "openai")


def test_arguments_without_an_end_are_cut_off(
    endless: Callable[..., EndlessServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "MAX_ANSWER_CHARS", 50_000)
    assert "50,000 characters" in failure_of(endless(sse(call_delta(0, "look", "la " * 100, id="call_1"))), "openai")


def test_a_packed_answer_is_refused(endless: Callable[..., EndlessServer]) -> None:
    server = endless(gzip.compress(b"x" * 10_000_000), STREAM + "Content-Encoding: gzip\r\n")
    assert "packed" in failure_of(server, "openai")


def test_a_fast_server_is_read_from_slowly(
    endless: Callable[..., EndlessServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bytes that are read until the end of an answer, and the time that is slept for them."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float, *rest: Any) -> None:
        slept.append(seconds)
        await sleep(0, *rest)

    monkeypatch.setattr(bounds, "BYTES_PER_SECOND", 1000)
    monkeypatch.setattr(bounds, "MAX_STREAM_BYTES", 3_000_000)
    monkeypatch.setattr(bounds.asyncio, "sleep", noted)  # type: ignore[attr-defined]
    failure_of(endless(b": nothing\n\n" * 1000), "openai")
    assert sum(slept) > 1000


@pytest.mark.parametrize("kind", KINDS)
def test_who_stops_an_answer_closes_its_stream(endless: Callable[..., EndlessServer], kind: Kind) -> None:
    server = endless(b": nothing\n\n")
    stopped_at = 0.0

    async def talk() -> None:
        nonlocal stopped_at
        model = model_at(server.url, kind)

        async def listen() -> None:
            async for _ in model.stream(Request("", [{"role": "user", "content": "hello"}])):
                pass

        listening = asyncio.create_task(listen())
        while not server.sent:
            await asyncio.sleep(0.01)
        stopped_at = time.monotonic()
        listening.cancel()
        await asyncio.wait({listening})
        while not server.left:  # the loop goes on, as it does in a gateway
            assert time.monotonic() < stopped_at + DEADLINE
            await asyncio.sleep(0.01)
        await model.aclose()

    asyncio.run(talk())
    assert server.left[0] >= stopped_at


def test_too_many_tools_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "MAX_REQUESTED_CALLS", 3)
    server = RawModelServer(Play([b""]))
    calls = [sse(call_delta(number, "look", "{}", id=f"call_{number}")) for number in range(4)]
    _, reply, error = ask(server, "openai", Play([*calls, sse(delta("tool_calls")), sse("[DONE]")], is_chunked=True))
    server.close()
    assert reply is None
    assert str(error) == "The model wants more than 3 tools at once."
