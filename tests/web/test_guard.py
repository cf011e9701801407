"""Who is let in at the gateway's door."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import httpx2
import pytest
from held_port import HeldPort
from open_door import OpenDoor, probe_for_as_long_as_it_takes, request
from serving_house import use_obedient_model, write_settings
from starlette.types import Receive, Scope, Send
from waiting import DEADLINE, until

from segue.core.credentials import Level
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.listening import calls, connections, server
from segue.ports.store import Transaction
from segue.web import listening
from segue.web.listening import listen
from segue.web.premises import Premises

HEALTH = request("health")
GOOD = b'{"jsonrpc": "2.0", "method": "health", "params": {}, "id": 1}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_settings(tmp_path / "home", gateway={"port": 0, "hosts": ["segue.example.org"]})


@pytest.fixture
def door(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDoor]:
    use_obedient_model(monkeypatch)
    probe_for_as_long_as_it_takes(monkeypatch)
    opened = OpenDoor(home)
    yield opened
    opened.close()


def test_nothing_listens_before_there_is_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    looks: list[bool] = []
    has_token = listening._has_token

    def seen(tx: Transaction, now: float) -> bool:
        looks.append(has_token(tx, now))
        return looks[-1]

    monkeypatch.setattr(listening, "_has_token", seen)
    monkeypatch.setattr(listening, "LOOK_SECONDS", 0.02)
    port = HeldPort()
    door = OpenDoor(write_settings(tmp_path / "home", gateway={"port": port.number}))

    async def answers() -> bool:
        try:
            async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
                await client.get(f"http://127.0.0.1:{port.number}/health")
        except httpx2.TransportError:
            return False
        return True

    async def work() -> None:
        assert door._serving is not None
        premises = Premises(door.settings, door.store, door._serving)
        living = asyncio.create_task(listen(premises))
        await until(lambda: len(looks) >= 3)
        assert not await answers()
        door.token()
        await until(answers)
        living.cancel()
        await asyncio.wait({living})
        premises.close()

    door.run(work)
    door.close()
    port.close()


def test_whoever_shows_no_good_token_is_told_so_and_nothing_else(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        for shown in ("", "Bearer", "Bearer x", "Basic {}", "Bearer {}x", "{}", "Bearer {} {}"):
            answer = await door.post(HEALTH, None, Authorization=shown.format(token, token))
            assert answer.status_code == 401, shown
            assert answer.headers["www-authenticate"] == "Bearer", shown
            assert "result" not in answer.json(), shown

    door.serve(work)


@pytest.mark.parametrize("cut", [1, 40, 64])
def test_a_token_that_is_not_whole_or_not_right_is_none(door: OpenDoor, cut: int) -> None:
    token = door.token()

    async def work() -> None:
        for wrong in (token[:-cut], token[:-1] + ("0" if token[-1] != "0" else "1")):
            assert (await door.post(HEALTH, wrong)).status_code == 401
        header = f"Bearer {token[:-1]}".encode() + "é".encode()
        raw = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + header
        raw += b"\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD
        assert b" 401 " in (await _raw(door, raw)).partition(b"\r\n")[0]

    door.serve(work)


async def _raw(door: OpenDoor, said: bytes) -> bytes:
    host, port = door.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(said)
    answer = await asyncio.wait_for(reader.read(4096), DEADLINE)
    writer.close()
    return answer


def test_a_token_in_the_address_or_in_a_cookie_lets_nobody_in(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        assert (await door.post(HEALTH, None, Cookie=f"token={token}")).status_code == 401
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
            for name in ("token", "access_token", "api_key"):
                assert (await client.post(f"{door.url}/rpc?{name}={token}", json=HEALTH)).status_code == 401

    door.serve(work)


def test_a_token_is_good_until_it_is_taken_back_or_over(door: OpenDoor) -> None:
    first, over = door.token("first"), door.token("over", expires_at=1.0)

    async def work() -> None:
        assert (await door.post(HEALTH, over)).status_code == 401
        assert (await door.post(HEALTH, first)).status_code == 200
        door.revoke("first")
        assert (await door.post(HEALTH, first)).status_code == 401

    door.serve(work)


CALLED = [
    ({"Host": "localhost"}, 200),
    ({"Host": "SEGUE.example.org"}, 200),
    ({"Host": "segue.example.org:8766"}, 200),
    ({"Host": "evil.example"}, 403),
    ({"Host": "127.0.0.1.evil.example"}, 403),
    ({"Host": "localhost.evil.example:80"}, 403),
    ({"Host": "0.0.0.0"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://127.0.0.1:9"}, 403),
    ({"Origin": "http://localhost:8766"}, 403),
]


def test_nobody_is_led_here_by_another_name_or_by_a_page(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
            for headers, status in CALLED:
                assert (await door.post(HEALTH, token, **headers)).status_code == status, headers
                assert (await client.get(f"{door.url}/health", headers=headers)).status_code == status, headers
                shown = headers | {"Authorization": f"Bearer {token}"}
                document = await client.get(f"{door.url}/openapi.json", headers=shown)
                assert document.status_code == status, headers

    door.serve(work)


def test_who_guesses_waits_and_whoever_has_a_token_does_not(door: OpenDoor) -> None:
    """The owner calls from the same address as whoever guesses, and is let in all the same."""
    token = door.token()

    async def work() -> None:
        statuses = [401]
        while statuses[-1] == 401:  # they are counted for a minute, in which a slow machine has time for few
            statuses.append((await door.post(HEALTH, "segue_guess")).status_code)
        assert len(statuses) > 2
        assert statuses[-1] == 429
        assert (await door.post(HEALTH, "segue_guess")).headers["retry-after"].isdigit()
        assert (await door.post(HEALTH, token)).status_code == 200

    door.serve(work)


def test_a_body_that_is_too_long_or_too_slow_is_not_waited_for(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    token = door.token()
    head = f"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n".encode()

    async def work() -> None:
        assert (await door.post(b'"' + b"x" * 1_100_000 + b'"', token)).status_code == 413
        with monkeypatch.context() as brief:
            brief.setattr(calls, "READING_SECONDS", 0.1)
            assert b" 408 " in await _raw(door, head + b"Content-Length: 100\r\n\r\n{")
        assert (await door.post(HEALTH, token)).status_code == 200

    door.serve(work)


def test_whoever_is_not_let_in_has_nothing_read(door: OpenDoor) -> None:
    """A stranger's body is not even waited for."""
    door.token()

    async def work() -> None:
        said = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        assert b" 401 " in await _raw(door, said)

    door.serve(work)


def test_no_token_is_written_down_anywhere(door: OpenDoor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = door.token()
    secret = token.rpartition("_")[2]

    async def work() -> None:
        await door.post(HEALTH, token)
        await door.post(request("nope"), token)
        await door.post(HEALTH, token[:-1])
        await door.ask(token, "chat.send", conversation="x", text=f"my token is {token}", wait_seconds=DEADLINE)
        exported = await door.ask(
            token, "sessions.export", id=(await door.ask(token, "sessions.list"))["sessions"][0]["id"]
        )
        assert secret not in str(exported)

    door.serve(work)
    assert secret not in caplog.text
    kept = door.store.read(OWNER, lambda tx: tx.tokens.listed())
    assert secret not in str(kept)


def test_methods_that_are_not_there_are_told_so(door: OpenDoor) -> None:
    token = door.token("reader", Level.READ)

    async def work() -> None:
        async with httpx2.AsyncClient(
            timeout=DEADLINE, verify=False, headers={"Authorization": f"Bearer {token}"}
        ) as client:
            assert (await client.get(f"{door.url}/rpc")).status_code == 405
            assert (await client.get(f"{door.url}/nothing")).status_code == 404
            answer = await client.get(f"{door.url}/../../etc/passwd")
            assert answer.status_code == 404
            assert "root" not in answer.text

    door.serve(work)


def test_whether_it_is_ready_is_told_to_everybody_and_why_not_to_those_with_a_token(door: OpenDoor) -> None:
    token = door.token("reader", Level.READ)

    async def work() -> None:
        shown = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:

            async def is_ready() -> bool:
                ready = await client.get(f"{door.url}/ready", headers=shown)
                return ready.status_code == 200 and ready.json().get("notes") == []  # then everything is connected

            await until(is_ready)
            assert (await client.get(f"{door.url}/ready")).json() == {"status": "ready"}
            known = (await client.get(f"{door.url}/ready", headers=shown)).json()
            assert known == {"status": "ready", "reasons": [], "notes": []}
            assert door._serving is not None
            door._serving.gateway.desk.is_open = False
            refused = await client.get(f"{door.url}/ready", headers=shown)
            assert refused.status_code == 503
            assert "about to end" in refused.json()["reasons"][0]
            assert (await client.get(f"{door.url}/ready")).json() == {"status": "not ready"}

    door.serve(work)


def test_figures_are_for_those_with_a_token(door: OpenDoor) -> None:
    token = door.token("reader", Level.READ)

    async def work() -> None:
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
            assert (await client.get(f"{door.url}/metrics")).status_code == 401
            figures = await client.get(f"{door.url}/metrics", headers={"Authorization": f"Bearer {token}"})
            assert figures.status_code == 200
            assert figures.headers["content-type"].startswith("text/plain")
            assert "segue_" in figures.text

    door.serve(work)


def test_whoever_waits_for_an_answer_gets_none_when_the_token_is_taken_back_meanwhile(
    door: OpenDoor, tmp_path: Path
) -> None:
    token = door.token("phone")
    go = tmp_path / "go"

    async def work() -> None:
        wish = {"conversation": "x", "text": f"wait until {go}", "wait_seconds": DEADLINE}
        waiting = asyncio.create_task(door.post(request("chat.send", **wish), token))
        await until(lambda: door.store.read(OWNER, lambda tx: tx.inbox.listed(("running",))))
        door.revoke("phone")
        go.touch()
        answer = await waiting
        assert answer.status_code == 401
        assert "You said" not in answer.text

    door.serve(work)


def test_a_person_reads_no_figures_about_everybody(door: OpenDoor) -> None:
    token = door.token("alice", Level.ADMIN, "telegram:1")

    async def work() -> None:
        shown = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False, headers=shown) as client:
            assert (await client.get(f"{door.url}/metrics")).status_code == 403

            async def is_ready() -> bool:
                return (await client.get(f"{door.url}/ready")).status_code == 200

            await until(is_ready)
            assert (await client.get(f"{door.url}/ready")).json() == {"status": "ready"}

    door.serve(work)


def test_a_connection_whose_request_does_not_come_is_closed(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """At first, after another request, and behind the body of one that was refused; a WebSocket may be silent."""
    token = door.token()
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    refused = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"

    async def is_closed_after(first: bytes, more: bytes) -> bool:
        host, port = door.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        if first:
            writer.write(first)
            try:
                await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE)
            except (asyncio.IncompleteReadError, ConnectionError):  # the machine was too slow even for that
                writer.close()
                return False
        try:
            while not reader.at_eof():
                writer.write(more)
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()
        return True

    async def work() -> None:
        async with door.socket(token) as line:
            monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.1)
            for first, more in ((b"", b""), (b"", b"x"), (whole, b"x"), (refused, b"x")):
                await until(lambda first=first, more=more: is_closed_after(first, more))  # type: ignore[misc]
            assert (await line.ask("health"))["is_well"]

    door.serve(work)


def test_a_server_that_ends_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that the library has overlooked, as it does when somebody connects in the moment of the end."""

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None: ...

    async def overlook(ending: server._Server, sockets: list[socket.socket] | None = None) -> None:
        for listening_server in ending.servers:
            listening_server.close()

    monkeypatch.setattr(server._Server, "shutdown", overlook)
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 10 * DEADLINE)

    async def work() -> None:
        with server.bound("127.0.0.1", 0, "tests", "none") as door:
            serving = asyncio.create_task(server.serve(app, door))
            reader, writer = await asyncio.open_connection(*door.getsockname())
            serving.cancel()
            await asyncio.wait({serving})
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
            writer.close()

    asyncio.run(work())


def test_a_read_waits_for_no_note_that_a_token_is_in_use(door: OpenDoor) -> None:
    """The answer comes while nobody can write, for as long as whoever wants to write would try."""
    door.store._patience = 10 * DEADLINE
    token = door.token()

    async def work() -> None:
        other = apsw.Connection(str(door.settings.database_path))
        other.set_busy_timeout(int(DEADLINE * 1000))  # the gateway may be writing at the moment
        other.execute("BEGIN IMMEDIATE")
        try:
            answer = await asyncio.wait_for(door.post(HEALTH, token), DEADLINE)
            assert answer.status_code == 200
        finally:
            other.execute("ROLLBACK")
            other.close()

    door.serve(work)
