"""Clients that keep no rules exhaust no gateway: it is a process of its own, with little memory and few files."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_there import There, gateway_at
from memory_use import MemoryUse
from raw_client import CONTINUATION, PING, TEXT, RawClient, frame
from waiting import DEADLINE

from segue.facade.session_db import SessionDB
from segue.listening.connections import MAX_FRAGMENTS

LIMITS = "ulimit -n 256\nulimit -v 4000000"
MAX_GROWTH = 64.0  # MB
FLOOD = 300_000_000
UNGUARDED = (sys.executable, str(Path(__file__).parent.parent / "support" / "unguarded_launcher.py"))
HEALTH = json.dumps({"jsonrpc": "2.0", "method": "health", "params": {}, "id": 1}).encode()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    with gateway_at(tmp_path / "home", limits=LIMITS) as there:
        yield there


@contextmanager
def without(guard: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """A gateway that lacks one guard."""
    monkeypatch.setenv("UNGUARDED", guard)
    with gateway_at(home, command=UNGUARDED, limits="ulimit -n 256") as there:
        yield there


def asks_health(there: There, seconds: float = DEADLINE) -> float:
    """Ask on a new connection whether the gateway is alive; in how many seconds it says so."""
    began = time.monotonic()
    with RawClient(there.url, seconds=seconds) as client:
        client.request("GET", "/health")
        status, body = client.read_answer()
    assert (status, json.loads(body)["status"]) == (200, "alive")
    return time.monotonic() - began


def asks_with_a_token(there: There, *requests: Any) -> Any:
    body = json.dumps(requests).encode() if requests else HEALTH
    with RawClient(there.url) as client:
        client.request("POST", "/rpc", body, Authorization=f"Bearer {there.token}")
        status, said = client.read_answer()
    assert status == 200, said
    return json.loads(said)


def opened(there: There) -> RawClient:
    client = RawClient(there.url)
    head = client.upgrade(there.token)
    assert head.startswith("HTTP/1.1 101"), head
    assert "permessage-deflate" not in head
    return client


def flood_with_requests(client: RawClient) -> int:
    """Those whose answers are longer than they are."""
    wrong = {"jsonrpc": "2.0", "method": "x", "params": {}, "id": 1}
    return client.flood(frame(TEXT, json.dumps([wrong] * 50).encode()) * 20, FLOOD)


def flood_with_long_requests(client: RawClient) -> int:
    search = {"jsonrpc": "2.0", "method": "chat.history", "params": {"conversation": "x" * 900_000}, "id": 1}
    return client.flood(frame(TEXT, json.dumps(search).encode()), FLOOD)


def flood_with_pings(client: RawClient) -> int:
    return client.flood(frame(PING, b"x" * 125) * 200, FLOOD)


@pytest.mark.parametrize("flood", [flood_with_requests, flood_with_pings])
def test_a_client_that_sends_without_reading_is_not_read_from(there: There, flood: Callable[[RawClient], int]) -> None:
    asks_health(there)
    memory = MemoryUse(there.process.pid)
    with opened(there) as client:
        sent = flood(client)
        asks_health(there)
        asks_with_a_token(there)
    assert sent < FLOOD
    assert memory.growth < MAX_GROWTH


def test_long_requests_do_not_pile_up(there: There) -> None:
    asks_health(there)
    memory = MemoryUse(there.process.pid)
    with opened(there) as client:
        flood_with_long_requests(client)
        asks_health(there)
    assert memory.growth < MAX_GROWTH


@pytest.mark.parametrize(
    ("guard", "flood"), [("back-pressure", flood_with_requests), ("pings", flood_with_pings)], ids=["requests", "pings"]
)
def test_without_back_pressure_it_would_take_all_the_memory(
    guard: str, flood: Callable[[RawClient], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without(guard, tmp_path / "home", monkeypatch) as there:
        memory = MemoryUse(there.process.pid)
        deadline = time.monotonic() + DEADLINE
        with opened(there) as client:
            while memory.growth < 1.25 * MAX_GROWTH:
                assert time.monotonic() < deadline, memory.growth
                flood(client)


def test_a_message_in_endless_fragments_ends_the_connection(there: There) -> None:
    memory = MemoryUse(there.process.pid)
    with opened(there) as client:
        client.send(frame(TEXT, b"{", is_last=False) + frame(CONTINUATION, is_last=False) * (MAX_FRAGMENTS - 1))
        assert not client.is_closed(0.2)
        client.flood(frame(CONTINUATION, is_last=False) * 1000, FLOOD)
        assert client.is_closed()
    asks_health(there)
    assert memory.growth < MAX_GROWTH


def half_sent(there: There, count: int, seconds: float = DEADLINE) -> list[RawClient]:
    """Connections that were answered once, and then begin a request that never ends."""
    clients = []
    for _ in range(count):
        client = RawClient(there.url, seconds=seconds)
        try:
            client.request("GET", "/health")
            client.read_answer()
            client.send(b"GET /health HTTP/1.1\r\nHost: local")
        except OSError:
            client.close()
            break  # nobody is let in any more
        clients.append(client)
    return clients


def test_half_sent_requests_shut_nobody_out(there: There) -> None:
    memory = MemoryUse(there.process.pid)
    clients = half_sent(there, 600)
    for _ in range(5):
        asks_health(there)
        asks_with_a_token(there)
    assert memory.growth < MAX_GROWTH
    for client in clients:
        client.close()


def test_without_room_for_others_they_would_shut_everybody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with without("room", tmp_path / "home", monkeypatch) as there:
        clients = half_sent(there, 300, seconds=2)
        assert len(clients) < 300
        with pytest.raises((OSError, TimeoutError)):
            asks_health(there, seconds=2)
        for client in clients:
            client.close()


def long_conversation(home: Path, megabytes: int) -> str:
    """A session with so many megabytes of text."""
    home.mkdir(mode=0o700, parents=True)
    db = SessionDB(home / "state.db")
    session_id = str(db.create_session())
    for number in range(megabytes * 10):
        db.append_message(session_id, "user", f"{number} " + "lorem ipsum " * 8_700)
    db.close()
    return session_id


def export(session_id: str, number: int, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "sessions.export", "params": {"id": session_id} | more, "id": number}


def test_a_batch_of_long_answers_has_one_budget(tmp_path: Path) -> None:
    session_id = long_conversation(tmp_path / "home", 5)
    with gateway_at(tmp_path / "home", limits=LIMITS) as there:
        asks_health(there)
        memory = MemoryUse(there.process.pid)
        answers = asks_with_a_token(there, *(export(session_id, number) for number in range(50)))
        assert memory.growth < MAX_GROWTH
    assert len(answers) == 50
    assert "result" in answers[0]
    assert [one["error"]["code"] for one in answers[1:]] == [-32002] * 49


def test_without_that_budget_they_would_take_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = long_conversation(tmp_path / "home", 5)
    with without("answers", tmp_path / "home", monkeypatch) as there:
        memory = MemoryUse(there.process.pid)
        answers = asks_with_a_token(there, *(export(session_id, number) for number in range(20)))
        assert memory.growth > 2 * MAX_GROWTH
    assert all("result" in one for one in answers)


def test_a_session_that_is_longer_than_an_answer_comes_in_pages(tmp_path: Path) -> None:
    session_id = long_conversation(tmp_path / "home", 10)
    with gateway_at(tmp_path / "home", limits=LIMITS) as there:
        asks_health(there)
        memory = MemoryUse(there.process.pid)
        (refused,) = asks_with_a_token(there, export(session_id, 1))
        assert "in pages" in refused["error"]["message"]
        seqs: list[int] = []
        after: int | None = -1
        while after is not None:
            (page,) = asks_with_a_token(there, export(session_id, 1, after=after))
            seqs += [one["seq"] for one in page["result"]["session"]["messages"]]
            after = page["result"]["next"]
        assert memory.growth < MAX_GROWTH
    assert seqs == list(range(1, 101))
