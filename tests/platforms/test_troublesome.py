"""What stands before a server passes everything on, and makes exactly the trouble that it is told to make."""

import asyncio
from typing import Any

import httpx2
import pytest
from matrix_house import run
from matrix_person import Person, Refused
from synapse_server import Synapse
from troublesome import Troublesome
from waiting import until


def bodies(found: list[Any]) -> list[str]:
    return [message.body for message in found]


def test_errors_come_so_often_as_told_and_the_server_hears_nothing_of_them(
    synapse: Synapse, trouble: Troublesome
) -> None:
    async def work() -> None:
        async with Person(trouble.url, synapse.register()) as ann:
            room = await ann.create_room()
            limit = trouble.limit("^PUT .*/send/m.room.message/", 250, times=2)
            for _ in range(2):
                with pytest.raises(Refused, match="429 M_LIMIT_EXCEEDED") as refused:
                    await ann.say(room, "refused")
                assert refused.value.error["retry_after_ms"] == 250
            await ann.say(room, "taken")
            trouble.answer("/send/", 502, "<h1>Bad Gateway</h1>")
            for _ in range(3):
                with pytest.raises(Refused, match="502"):
                    await ann.say(room, "refused")
            trouble.calm()
            await ann.say(room, "taken")
            assert (limit.met, bodies(await ann.messages(room))) == (2, ["taken", "taken"])
            sends = [asked.status for asked in trouble.asked if "/send/" in asked.line]
            assert sends == [429, 429, 200, 502, 502, 502, 200]

    run(work())


def test_a_request_that_hangs_never_arrives(synapse: Synapse, trouble: Troublesome) -> None:
    async def work() -> None:
        async with Person(trouble.url, synapse.register()) as ann:
            room = await ann.create_room()
            trouble.hang("/send/", 0.05, times=1)
            with pytest.raises(httpx2.TransportError):
                await ann.say(room, "lost")
            assert await ann.messages(room) == []
            assert [asked.status for asked in trouble.asked if "/send/" in asked.line] == [None]

    run(work())


def test_a_lost_answer_is_made_good_by_the_same_transaction(synapse: Synapse, trouble: Troublesome) -> None:
    async def work() -> None:
        async with Person(trouble.url, synapse.register()) as ann:
            room = await ann.create_room()
            trouble.lose_answers("/send/", times=1)
            with pytest.raises(httpx2.TransportError):
                await ann.say(room, "hello", transaction="t1")
            assert bodies(await ann.messages(room)) == ["hello"]
            await ann.say(room, "hello", transaction="t1")
            assert bodies(await ann.messages(room)) == ["hello"]

    run(work())


def test_a_door_that_is_down_comes_up_where_it_was(synapse: Synapse, trouble: Troublesome) -> None:
    async def work() -> None:
        async with Person(trouble.url, synapse.register()) as ann:
            room = await ann.create_room()
            listening = asyncio.create_task(ann.wait_for(room, len))
            await until(lambda: any("/sync" in line for line in trouble.begun))
            trouble.go_down()
            with pytest.raises(httpx2.TransportError):
                await listening
            with pytest.raises(httpx2.ConnectError):
                await ann.say(room, "nobody is there")
            trouble.come_up()
            await ann.say(room, "there again")
            assert bodies(await ann.messages(room)) == ["there again"]

    run(work())


CHUNKS = b"5\r\nhello\r\n6;x=y\r\n there\r\n0\r\nA: b\r\n\r\n"
ANSWERS = {
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "until the end of the connection": b"HTTP/1.1 200 OK\r\n\r\nhello there",
    "of a length": b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello there",
    "of none": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.mark.parametrize("how", ANSWERS)
def test_answers_pass_however_they_are_framed(how: str) -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.readuntil(b"\r\n0\r\n\r\n"))
            writer.write(ANSWERS[how])
        finally:
            writer.close()

    async def pieces() -> Any:
        yield b"one"
        yield b"two"

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        proxy = Troublesome(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            async with httpx2.AsyncClient(trust_env=False) as client:
                answers = [await client.post(proxy.url, content=pieces()) for _ in range(2)]
            assert [found.text for found in answers] == ["" if how == "of none" else "hello there"] * 2
            assert all(said.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n") for said in heard)
        finally:
            proxy.close()
            server.close()

    run(work())


def test_a_connection_that_becomes_another_is_passed_on_both_ways() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n")
            while said := await reader.read(100):
                writer.write(said.upper())
        finally:
            writer.close()

    async def work() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        proxy = Troublesome(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.1\r\nUpgrade: echo\r\n\r\n")
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            for word in (b"one", b"two"):
                writer.write(word)
                assert await reader.readexactly(3) == word.upper()
            writer.close()
        finally:
            proxy.close()
            server.close()

    run(work())
