"""The adapter of Matrix and a real homeserver."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from matrix_house import MatrixHouse, post, until
from matrix_person import Person
from matrix_private_person import PrivatePerson
from synapse_server import Synapse

from segue.testing.ledger import Ledger


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 100))


@pytest.fixture
def house(synapse: Synapse, tmp_path: Path) -> MatrixHouse:
    return MatrixHouse(tmp_path, synapse.url, synapse.register("segue"))


@pytest.mark.parametrize("version", ["11", "12"])
def test_what_is_said_in_a_plain_room_is_heard_and_answered(house: MatrixHouse, synapse: Synapse, version: str) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with Person(synapse.url, synapse.register("ann")) as ann, house.at_work(ledger) as adapter:
            room = await ann.create_room(house.user.user_id, is_direct=True, version=version)
            await ann.wait_for_member(room, house.user.user_id)
            said = await ann.say(room, "hello")
            await until(lambda: ledger.accepted)
            (heard,) = ledger.accepted
            assert (heard.text, heard.message_id, heard.is_mention) == ("hello", said, True)
            assert (heard.source.chat_type, heard.source.chat_id) == ("dm", room)
            assert heard.source.user_id == ann.user_id
            sent = await adapter.send(post(room, "*well*", "k1", reply_to=said))
            assert await adapter.send(post(room, "*well*", "k1", reply_to=said)) == sent
            (answer,) = await ann.wait_for(room, len)
            assert (answer.event_id, answer.body, answer.reply_to) == (sent.message_id, "*well*", said)
            assert answer.formatted_body == "<p><em>well</em></p>"

    run(work())


def test_in_an_encrypted_room_both_read_each_other(house: MatrixHouse, synapse: Synapse, tmp_path: Path) -> None:
    async def work() -> None:
        ledger = Ledger()
        ann = PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann")
        async with ann, house.at_work(ledger) as adapter:
            room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True)
            await ann.wait_for_member(room, house.user.user_id)
            said = await ann.say(room, "a secret")
            await until(lambda: ledger.accepted)
            assert ledger.texts == ["a secret"]
            sent = await adapter.send(post(room, "another", "k1", reply_to=said))
            (answer,) = await ann.wait_for(room, len)
            assert (answer.body, answer.reply_to) == ("another", said)
            assert sent.message_id
            await adapter.edit(post(room, "yet another"), sent.message_id)
            (answer,) = await ann.wait_for(room, lambda heard: heard[0].edits)
            assert answer.body == "yet another"
            assert all(event["type"] != "m.room.message" for event in await ann.sealed_events(room))

    run(work())
