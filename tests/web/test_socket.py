"""Programs that stay connected are told what happens, and miss nothing when they come back."""

import asyncio
import itertools
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from open_door import Line, OpenDoor, request
from serving_house import use_obedient_model, write_settings
from waiting import DEADLINE, until
from websockets.exceptions import InvalidStatus

from segue.core.credentials import Level
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.facade.session_db import SessionDB
from segue.sessions.tokens import take_token_back
from segue.testing import Stage
from segue.web import following
from segue.web import socket as socket_module

TALK = {"conversation": "trip", "wait_seconds": DEADLINE}


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDoor]:
    use_obedient_model(monkeypatch)
    opened = OpenDoor(write_settings(tmp_path / "home", gateway={"port": 0}), {"scripted": Stage()})
    yield opened
    opened.close()


def has_said(words: str) -> Any:
    return lambda told: any(one["kind"] == "message" and one["message"]["content"] == words for one in told)


def test_what_is_said_is_told_as_it_happens(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        async with door.socket(token) as line:
            subscribed = await line.ask("chat.subscribe", conversation="trip")
            assert (subscribed["cursor"], subscribed["lane_key"]) == (None, "agent:main:api:laptop:trip")
            await line.ask("chat.send", text="wait 0.2", **TALK)
            told = await line.until(has_said("You said: wait 0.2"))
            assert line.said() == [("user", "wait 0.2"), ("assistant", "You said: wait 0.2")]
            deltas = [one["text"] for one in told if one["kind"] == "delta"]
            assert deltas[0] == "Let me see. "

    door.serve(work)


def test_whoever_comes_back_with_a_cursor_has_missed_nothing(door: OpenDoor) -> None:
    """The connection breaks at any moment, without a farewell, while much is said, also across new conversations."""
    token = door.token()
    expected: list[tuple[str, str]] = []
    heard: list[tuple[str, str]] = []
    breaks = 0
    talking: asyncio.Task[None]

    async def talk() -> None:
        for number in itertools.count():
            if number >= 9 and breaks > 5:
                return
            await door.ask(token, "chat.send", text=f"line {number}", **TALK)
            expected.extend([("user", f"line {number}"), ("assistant", f"You said: line {number}")])
            if number % 3 == 2:
                await door.ask(token, "chat.send", text="/new", **TALK)

    def is_enough(line: Line, wanted: int) -> bool:
        is_all = talking.done() and len(heard) + len(line.said()) >= len(expected)
        return is_all or len(line.said()) >= wanted

    async def work() -> None:
        nonlocal breaks, talking
        await door.ask(token, "chat.send", text="first of all", **TALK)
        cursor = (await door.ask(token, "chat.history", conversation="trip"))["cursor"]
        talking = asyncio.create_task(talk())
        while not talking.done() or len(heard) < len(expected):
            async with door.socket(token) as line:
                await line.ask("chat.subscribe", conversation="trip", cursor=cursor)
                await until(partial(is_enough, line, 1 + breaks % 3))
                heard.extend(line.said())
                for one in line.told:
                    cursor = one.get("cursor") or (one.get("message") or {}).get("cursor") or cursor
                line.connection.transport.abort()  # nobody says goodbye
                breaks += 1
        await talking
        assert heard == expected
        assert breaks > 5

    door.serve(work)


def test_without_its_cursor_the_same_client_would_miss_something(door: OpenDoor) -> None:
    """The control: what is said between two connections is told by the cursor, and by nothing else."""
    token = door.token()

    async def work() -> None:
        await door.ask(token, "chat.send", text="one", **TALK)
        async with door.socket(token) as line:
            await line.ask("chat.subscribe", conversation="trip")
        await door.ask(token, "chat.send", text="two", **TALK)
        async with door.socket(token) as line:
            await line.ask("chat.subscribe", conversation="trip")
            await line.ask("chat.send", text="three", **TALK)
            await line.until(has_said("You said: three"))
            assert line.said() == [("user", "three"), ("assistant", "You said: three")]

    door.serve(work)


class Looks:
    """How often whoever follows something has looked whether there is more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended = 0
        look = following.Subscription._look_and_tell

        async def seen(subscription: Any, *arguments: Any) -> None:
            await look(subscription, *arguments)
            self.ended += 1

        monkeypatch.setattr(following.Subscription, "_look_and_tell", seen)

    async def more(self, times: int = 2) -> None:
        wanted = self.ended + times
        await until(lambda: self.ended >= wanted)


def test_what_another_process_writes_is_told_within_a_second(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next look, of which there are two in a second; one may just have begun."""
    assert following.LOOK_SECONDS <= 0.5
    looks = Looks(monkeypatch)
    token = door.token()

    async def work() -> None:
        other = SessionDB(door.settings.database_path)
        other.create_session("s1", "cli")
        async with door.socket(token) as line:
            await line.ask("chat.subscribe", session_id="s1")
            await asyncio.to_thread(other.append_message, "s1", "user", "from the terminal")
            written = looks.ended
            await line.until(has_said("from the terminal"))
            assert looks.ended <= written + 2
        other.close()

    door.serve(work)


def test_a_token_that_is_taken_back_ends_its_connections(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "CHECK_SECONDS", 0.05)
    token = door.token("phone")
    door.token("laptop")

    async def work() -> None:
        async with door.socket(token) as line:
            assert (await line.ask("health"))["is_well"]
            door.revoke("phone")
            await asyncio.wait_for(line.connection.wait_closed(), DEADLINE)
            assert line.connection.close_code == 1008

    door.serve(work)


def test_nobody_follows_what_is_not_theirs(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    looks = Looks(monkeypatch)
    owner, alice = door.token(), door.token("alice", Level.ADMIN, "telegram:1")

    async def work() -> None:
        sent = await door.ask(owner, "chat.send", text="mine", **TALK)
        async with door.socket(owner) as hers, door.socket(alice) as line:
            await hers.ask("chat.subscribe", conversation="trip")
            for where in (
                {"session_id": sent["session_id"]},
                {"lane_key": sent["lane_key"]},
                {"conversation": "x", "cursor": f"{sent['session_id']}:0"},
                {"lane_key": sent["lane_key"], "cursor": f"{sent['session_id']}:0"},
            ):
                answer = await line.ask("chat.subscribe", **where)
                assert answer.get("code") == -32001, (where, answer)
            await door.ask(owner, "chat.send", text="mine again", **TALK)
            await hers.until(has_said("You said: mine again"))
            await looks.more()
            await line.ask("health")
            assert line.told == []

    door.serve(work)


def test_an_upgrade_without_a_token_or_from_a_page_is_refused(door: OpenDoor) -> None:
    token = door.token()

    async def refused(status: int, shown: str, **headers: str) -> None:
        with pytest.raises(InvalidStatus) as error:
            async with door.socket(shown, **headers):
                pass
        assert error.value.response.status_code == status

    async def work() -> None:
        await refused(401, "nothing")
        await refused(401, token[:-1] + ("0" if token[-1] != "0" else "1"))
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", door.url):
            await refused(403, token, Origin=origin)
        door.url = door.url.replace("127.0.0.1", "evil.example")
        await refused(403, token)

    door.serve(work)


def test_a_message_that_is_no_text_or_too_long_ends_the_connection_and_nothing_else(door: OpenDoor) -> None:
    token = door.token()

    async def closed(line: Line, said: Any) -> int | None:
        await line.connection.send(said)
        await asyncio.wait_for(line.connection.wait_closed(), DEADLINE)
        return line.connection.close_code

    async def work() -> None:
        async with door.socket(token) as line:
            assert await closed(line, b"bytes") == 1003
        async with door.socket(token) as line:
            assert await closed(line, "x" * 1_100_000) == 1009
        async with door.socket(token) as line:
            assert (await line.ask("health"))["is_well"]

    door.serve(work)


def test_many_requests_at_once_are_all_answered(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        async with door.socket(token) as line:
            answers = await asyncio.gather(*(line.ask("sessions.list") for _ in range(60)))
            assert all(answer == {"sessions": [], "has_more": False} for answer in answers)

    door.serve(work)


def test_one_connection_follows_so_many_conversations_and_no_more(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "MOST_SUBSCRIPTIONS", 2)
    token = door.token()

    async def work() -> None:
        async with door.socket(token) as line:
            answers = [await line.ask("chat.subscribe", conversation=name) for name in "abc"]
            assert ["subscription" in one for one in answers] == [True, True, False]

    door.serve(work)


def test_a_conversation_is_followed_into_its_summary(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        for number in range(8):
            await door.ask(token, "chat.send", text=f"line {number} {os.urandom(2).hex()}", **TALK)
        async with door.socket(token) as line:
            subscribed = await line.ask("chat.subscribe", conversation="trip")
            before = subscribed["cursor"].rpartition(":")[0]
            await door.ask(token, "sessions.compact", id=before)
            await line.until(lambda told: any(one["kind"] == "session" for one in told))
            after = next(one["session_id"] for one in line.told if one["kind"] == "session")
            parent = door.store.read(OWNER, lambda tx: tx.sessions.find(after))
            assert parent is not None
            assert parent.parent_session_id == before

    door.serve(work)


def test_nobody_is_told_of_words_in_a_lane_that_is_not_theirs_whatever_cursor_they_have(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    alice = door.token("alice", Level.WRITE, "telegram:111")
    bob = door.token("bob", Level.WRITE, "telegram:222")

    async def work() -> None:
        hers = await door.ask(alice, "chat.send", text="hers", **TALK)
        await door.ask(bob, "chat.send", text="his", **TALK)
        cursor = (await door.ask(bob, "chat.history", conversation="trip"))["cursor"]
        async with door.socket(bob) as line:
            answer = await line.ask("chat.subscribe", lane_key=hers["lane_key"], cursor=cursor)
            assert answer.get("code") == -32001
            door.revoke("alice")
            again = door.token("alice", Level.WRITE, "telegram:333")
        async with door.socket(again) as line:
            await line.ask("chat.subscribe", conversation="trip")
            door.store.write(OWNER, take_token_back, "alice")
            first = door.token("alice", Level.WRITE, "telegram:111")
            await door.ask(first, "chat.send", text="wait 0.1", **TALK)
            await looks.more()
            await line.ask("health")
            assert line.told == []

    door.serve(work)


def test_a_key_of_one_principal_is_not_that_of_another(door: OpenDoor) -> None:
    first = door.token("bob", Level.WRITE, "telegram:222")

    async def work() -> None:
        said = await door.ask(first, "chat.send", text="a secret", idempotency_key="k", **TALK)
        door.revoke("bob")
        second = door.token("bob", Level.WRITE, "telegram:333")
        again = await door.ask(second, "chat.send", text="hello", idempotency_key="k", **TALK)
        assert again["answer"] == "You said: hello"
        assert again["session_id"] != said["session_id"]

    door.serve(work)


def test_what_is_sent_over_one_connection_is_put_down_in_its_order(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        key = (await door.ask(token, "chat.send", text="first", **TALK))["lane_key"]
        async with door.socket(token) as line:
            sends = [line.ask("chat.send", lane_key=key, text=f"m{number:02}") for number in range(15)]
            await asyncio.gather(*sends)
        await door.quiet()
        history = await door.ask(token, "chat.history", conversation="trip", limit=100)
        said = [one["content"] for one in history["messages"] if one["role"] == "user"]
        words = [word for one in said for word in one.split() if word.startswith("m")]
        assert words == [f"m{number:02}" for number in range(15)]

    door.serve(work)


def test_too_many_requests_at_once_are_refused_and_the_others_are_answered(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(socket_module, "MOST_AT_ONCE", 3)
    token = door.token()
    go = tmp_path / "go"

    async def work() -> None:
        async with door.socket(token) as line:
            wish = {"text": f"wait until {go}", "wait_seconds": DEADLINE}
            waiting = [
                asyncio.create_task(line.ask("chat.send", conversation=f"c{number}", **wish)) for number in range(5)
            ]
            await until(lambda: sum(one.done() for one in waiting) == 2)
            go.touch()
            answers = await asyncio.gather(*waiting)
            assert sorted(answer.get("code", 0) for answer in answers) == [-32002, -32002, 0, 0, 0]
            assert (await line.ask("health"))["is_well"]

    door.serve(work)


def test_whoever_does_not_read_is_left(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "SENDING_SECONDS", 0.2)
    token = door.token()
    ended: list[bool] = []
    run = socket_module.Socket.run

    async def seen(connection: socket_module.Socket) -> None:
        try:
            await run(connection)
        finally:
            ended.append(True)

    monkeypatch.setattr(socket_module.Socket, "run", seen)

    async def work() -> None:
        other = SessionDB(door.settings.database_path)
        other.create_session("s1", "cli")
        other.append_message("s1", "user", "x" * 4_000_000)
        host, port = door.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(
            "GET /rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Authorization: Bearer {token}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        asked = json.dumps(request("chat.history", session_id="s1")).encode()
        for _ in range(10):
            writer.write(b"\x81\xfe" + len(asked).to_bytes(2, "big") + b"\0\0\0\0" + asked)
        assert door.premises is not None
        await until(lambda: ended)
        writer.transport.abort()
        other.close()

    door.serve(work)


def test_a_subscription_is_given_back(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "MOST_SUBSCRIPTIONS", 1)
    token = door.token()

    async def work() -> None:
        async with door.socket(token) as line:
            for _ in range(3):
                name = (await line.ask("chat.subscribe", conversation="trip"))["subscription"]
                assert (await line.ask("chat.unsubscribe", subscription=name)) == {"subscription": name}
            assert (await line.ask("chat.unsubscribe", subscription="s1"))["code"] == -32001

    door.serve(work)
