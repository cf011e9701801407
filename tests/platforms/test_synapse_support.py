"""The homeserver of the tests is a real one that reaches nobody, and its people hear what is said, as it stands."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from matrix_house import run
from matrix_messages import UNREADABLE
from matrix_person import Person, Refused
from matrix_private_person import PrivatePerson
from synapse_server import OwnSynapse, Synapse


@pytest.fixture
def own_synapse() -> Iterator[OwnSynapse]:
    """Nobody else uses this one."""
    server = OwnSynapse()
    yield server
    server.close()


def test_what_one_says_the_other_hears(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register("ann")) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room(bob.user_id, is_direct=True)
            await bob.join(room)
            await ann.wait_for_member(room, bob.user_id)
            first = await ann.say(room, "Hello Bob", "Hello <b>Bob</b>", mentions=[bob.user_id])
            await bob.say(room, "Beep", msgtype="m.notice", reply_to=first)
            (heard,) = await bob.wait_for(room, len)
            assert (heard.event_id, heard.sender, heard.msgtype) == (first, ann.user_id, "m.text")
            assert (heard.body, heard.formatted_body) == ("Hello Bob", "Hello <b>Bob</b>")
            assert heard.mentions == (bob.user_id,)
            (answer,) = await ann.heard(room)
            assert (answer.body, answer.msgtype, answer.reply_to) == ("Beep", "m.notice", first)

    run(work())


def test_a_message_is_read_in_its_thread_with_its_edits_or_without_its_words(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room(bob.user_id)
            await bob.join(room)
            root = await ann.say(room, "A question")
            told = await ann.say(room, "one", thread=root)
            edits = (await ann.edit(room, told, "two"), await ann.edit(room, told, "three"))
            aimed = await ann.say(room, "to that", thread=root, reply_to=told)
            gone = await ann.say(room, "a secret")
            await ann.redact(room, gone)
            heard = await bob.heard(room)
            assert [message.event_id for message in heard] == [root, told, aimed, gone]
            assert [(message.thread, message.reply_to) for message in heard] == [
                (None, None),
                (root, None),
                (root, told),
                (None, None),
            ]
            assert (heard[1].body, heard[1].versions, heard[1].edits) == ("three", ("one", "two", "three"), edits)
            assert [message.is_redacted for message in heard] == [False, False, False, True]
            assert heard[3].body == ""

    run(work())


@pytest.mark.parametrize(("version", "has_server"), [("11", True), ("12", False)])
def test_rooms_of_old_and_new_versions_have_their_ids(synapse: Synapse, version: str, has_server: bool) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room(bob.user_id, version=version)
            assert room.endswith(":matrix.test") is has_server
            await bob.join(room)
            await ann.say(room, "hello")
            assert [message.body for message in await bob.heard(room)] == ["hello"]
            await bob.leave(room)
            assert await ann.members(room) == {ann.user_id}

    run(work())


def test_in_an_encrypted_room_only_its_people_read(synapse: Synapse, tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann") as ann,
            PrivatePerson(synapse.url, synapse.register("bob"), tmp_path / "bob") as bob,
        ):
            room = await ann.create_room(bob.user_id, is_direct=True, is_encrypted=True)
            await bob.join(room)
            root = await ann.say(room, "A secret")
            told = await ann.say(room, "more", thread=root)
            await ann.edit(room, told, "more of it")
            await ann.share(room, "notes.txt", b"what nobody knows", "text/plain")
            heard = await bob.wait_for(room, lambda found: len(found) == 3)
            assert [message.body for message in heard] == ["A secret", "more of it", "notes.txt"]
            assert (heard[1].thread, heard[1].versions) == (root, ("more", "more of it"))
            assert await bob.fetch(heard[2]) == b"what nobody knows"
            kept = [event for event in await bob.sealed_events(room) if event["type"].startswith("m.room.enc")]
            assert [event["type"] for event in kept] == ["m.room.encryption", *["m.room.encrypted"] * 4]
            assert not any("body" in event["content"] for event in kept)

    run(work())


def test_what_was_said_before_somebody_came_is_unreadable_to_them(synapse: Synapse, tmp_path: Path) -> None:
    async def work() -> None:
        async with PrivatePerson(synapse.url, synapse.register(), tmp_path / "ann") as ann:
            room = await ann.create_room(is_encrypted=True)
            await ann.say(room, "among us")
            async with PrivatePerson(synapse.url, synapse.register(), tmp_path / "bob") as bob:
                await ann.invite(room, bob.user_id)
                await bob.join(room)
                await ann.say(room, "welcome")
                heard = await bob.wait_for(room, lambda found: len(found) == 2)
                assert [(message.msgtype, message.body) for message in heard] == [
                    (UNREADABLE, ""),
                    ("m.text", "welcome"),
                ]

    run(work())


def test_a_file_comes_as_it_was_sent(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room(bob.user_id)
            await bob.join(room)
            await ann.share(room, "cat.png", b"\x89PNG and more", "image/png", caption="my cat")
            (heard,) = await bob.heard(room)
            assert (heard.msgtype, heard.body, heard.content["filename"]) == ("m.image", "my cat", "cat.png")
            assert await bob.fetch(heard) == b"\x89PNG and more"

    run(work())


def test_whoever_types_is_seen_until_they_stop(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room(bob.user_id)
            await bob.join(room)
            seen = []
            for is_typing in (True, False):
                await bob.show_typing(room, is_typing)
                seen.append(await ann.typing(room))
            assert seen == [[bob.user_id], []]

    run(work())


def test_what_is_said_twice_in_one_transaction_is_said_once(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann:
            room = await ann.create_room()
            first = await ann.say(room, "once", transaction="the/same one")
            assert await ann.say(room, "once", transaction="the/same one") == first
            assert await ann.say(room, "once", transaction="another") != first
            said = await ann.messages(room)
            assert [message.transaction_id for message in said] == ["the/same one", "another"]

    run(work())


def test_a_server_that_comes_back_has_kept_everything(own_synapse: OwnSynapse) -> None:
    async def work() -> None:
        async with Person(own_synapse.url, own_synapse.register()) as ann:
            for end in (own_synapse.stop, own_synapse.kill):
                room = await ann.create_room()
                sent = await ann.say(room, "before", transaction=f"t in {room}")
                end()
                with pytest.raises(httpx2.ConnectError):
                    await ann.say(room, "nobody is there")
                own_synapse.start()
                assert await ann.say(room, "before", transaction=f"t in {room}") == sent
                await ann.say(room, "after")
                assert [message.body for message in await ann.messages(room)] == ["before", "after"]

    run(work())


def test_a_person_is_told_why_a_server_would_not(synapse: Synapse) -> None:
    async def work() -> None:
        async with Person(synapse.url, synapse.register()) as ann, Person(synapse.url, synapse.register()) as bob:
            room = await ann.create_room()
            with pytest.raises(Refused, match="403 M_FORBIDDEN"):
                await bob.say(room, "let me in")

    run(work())


def test_the_homeserver_reaches_nobody(synapse: Synapse) -> None:
    """It is under the watch that ends every connection to elsewhere, and has never been caught."""
    environment = Path(f"/proc/{synapse.pid}/environ").read_text().split("\0")
    assert any(name.startswith("PYTHONPATH=") and name.endswith("without_network") for name in environment)
    assert "LeftTheMachine" not in synapse.log
