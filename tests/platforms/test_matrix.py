"""The adapter of Matrix and a real homeserver."""

import asyncio
import dataclasses
import logging
import stat
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from matrix_house import MatrixHouse, post, run
from matrix_person import Person
from matrix_private_person import PrivatePerson
from synapse_server import Synapse
from troublesome import Troublesome
from waiting import DEADLINE, until

from segue.core.errors import SegueError
from segue.core.inbound import Quote
from segue.core.sources import SessionSource
from segue.platforms.matrix import reading
from segue.platforms.matrix.inbound import UNREADABLE
from segue.ports.platform import SendRefused
from segue.testing.ledger import Ledger


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
            await until(lambda: any(one.is_own for one in ledger.brought))

    run(work())


@pytest.mark.parametrize("version", ["11", "12"])
def test_in_an_encrypted_room_both_read_each_other(
    house: MatrixHouse, synapse: Synapse, tmp_path: Path, version: str
) -> None:
    async def work() -> None:
        ledger = Ledger()
        ann = PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann")
        async with ann, house.at_work(ledger) as adapter:
            room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True, version=version)
            await ann.wait_for_member(room, house.user.user_id)
            said = await ann.say(room, "a secret with half a character: \ud83d")
            await until(lambda: ledger.accepted)
            assert ledger.texts == ["a secret with half a character: \ud83d"]
            sent = await adapter.send(post(room, "another", "k1", reply_to=said))
            (answer,) = await ann.wait_for(room, len)
            assert (answer.body, answer.reply_to) == ("another", said)
            assert sent.message_id
            await adapter.edit(post(room, "yet another"), sent.message_id)
            (answer,) = await ann.wait_for(room, lambda heard: heard[0].edits)
            assert answer.body == "yet another"
            assert all(event["type"] != "m.room.message" for event in await ann.sealed_events(room))

    run(work())


def test_threads_replies_edits_and_names_are_heard_in_a_group(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger, url = Ledger(), synapse.url
        ann, bob = (Person(url, synapse.register(name)) for name in ("ann", "bob"))
        async with ann, bob, house.at_work(ledger) as adapter:
            room = await ann.create_room(house.user.user_id, bob.user_id, name="The office")
            await bob.join(room)
            await ann.wait_for_member(room, house.user.user_id)
            root = await ann.say(room, "A question")
            told = await bob.say(room, "in the thread", thread=root)
            await bob.edit(room, told, "in this thread")
            await bob.say(room, "I agree", reply_to=root)
            await until(lambda: len(ledger.accepted) == 4)
            first, second, edit, reply = ledger.accepted
            assert (first.source.chat_type, first.source.chat_name) == ("group", "The office")
            assert not any(one.is_mention for one in ledger.accepted)
            assert (second.source.thread_id, second.quote) == (root, None)
            assert (edit.message_id, edit.text, edit.source.thread_id) == (told, "in this thread", root)
            assert reply.quote == Quote(ann.user_id.removeprefix("@").partition(":")[0], "A question")
            sent = await adapter.send(post(room, "So do I", "k", thread=root, reply_to=told))
            await until(lambda: [one for one in ledger.brought if one.is_own])
            (heard,) = [one for one in await ann.heard(room) if one.sender == house.user.user_id]
            assert (heard.thread, heard.reply_to) == (root, None)
            await bob.say(room, "You?", reply_to=sent.message_id or "")
            await until(lambda: ledger.texts[-1] == "You?")
            assert ledger.accepted[-1].is_mention
            await ann.name_room(room, "The attic")
            await until(lambda: any(one.chat_name == "The attic" for one in ledger.learned))

    run(work())


def test_an_answer_to_us_is_known_as_such_though_the_homeserver_stumbles(
    synapse: Synapse, trouble: Troublesome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.platforms.matrix.taking.AGAIN", 0.01)
    house = MatrixHouse(tmp_path, trouble.url, synapse.register("segue"))

    async def work() -> None:
        ledger, url = Ledger(), synapse.url
        ann, bob = (Person(url, synapse.register(name)) for name in ("ann", "bob"))
        async with ann, bob, house.at_work(ledger) as adapter:
            room = await ann.create_room(house.user.user_id, bob.user_id)
            await ann.wait_for_member(room, house.user.user_id)
            sent = await adapter.send(post(room, "It is late."))
            trouble.answer("GET .*/event/", 502, times=1)
            await ann.say(room, "How late?", reply_to=sent.message_id or "")
            await until(lambda: ledger.texts[-1:] == ["How late?"])
            assert [(one.text, one.is_mention) for one in ledger.accepted if not one.is_own] == [("How late?", True)]

    run(work())


def test_what_is_taken_back_is_withdrawn_and_not_said_after_a_restart(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with Person(synapse.url, synapse.register("ann")) as ann:
            async with house.at_work(ledger):
                room = await ann.create_room(house.user.user_id, is_direct=True)
                await ann.wait_for_member(room, house.user.user_id)
                said = await ann.say(room, "never mind")
                await until(lambda: ledger.accepted)
                await ann.redact(room, said)
                await until(lambda: ledger.withdrawn)
                assert [(one.chat_id, name) for one, name in ledger.withdrawn] == [(room, said)]
            gone = await ann.say(room, "nor this")
            await ann.redact(room, gone)
            await ann.say(room, "but this")
            async with house.at_work(ledger):
                await until(lambda: ledger.texts[-1] == "but this")
            assert ledger.texts == ["never mind", "but this"]

    run(work())


def test_what_is_read_again_is_known(house: MatrixHouse, synapse: Synapse, tmp_path: Path) -> None:
    """Also what was encrypted, and whose key came with it."""

    async def work() -> None:
        ledger = Ledger()
        async with PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann") as ann:
            async with house.at_work(ledger):
                room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True)
                await ann.wait_for_member(room, house.user.user_id)
                await until(lambda: room in str(ledger.learned) or ledger.cursors)
            before = dict(ledger.cursors)
            for text in ("one", "two"):
                await ann.say(room, text)
            for _ in range(2):
                ledger.cursors = dict(before)
                brought = len(ledger.brought)
                async with house.at_work(ledger):
                    await until(lambda seen=brought: len(ledger.brought) >= seen + 2)  # type: ignore[misc]
            assert ledger.texts == ["one", "two"]
            assert UNREADABLE not in [one.text for one in ledger.brought]

    run(work())


def test_of_a_room_only_what_comes_after_the_invitation_is_heard(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with Person(synapse.url, synapse.register("ann")) as ann:
            async with Person(synapse.url, house.user) as we:
                old = await ann.create_room(house.user.user_id)
                await we.join(old)
                await ann.say(old, "before there was an adapter")
            new = await ann.create_room(is_public=True)
            for number in range(3):
                await ann.say(new, f"before the invitation {number}")
            async with house.at_work(ledger):
                await ann.invite(new, house.user.user_id)
                await ann.say(new, "after the invitation")
                await ann.wait_for_member(new, house.user.user_id)
                await ann.say(new, "after joining")
                await until(lambda: len(ledger.accepted) >= 2)
            assert ledger.texts == ["after the invitation", "after joining"]

    run(work())


def test_an_invitation_is_accepted_from_whoever_is_welcome(
    house: MatrixHouse, synapse: Synapse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.platforms.matrix.inviting.LOOK_SECONDS", 0.2)

    async def work() -> None:
        welcome: set[str] = set()
        asked: list[SessionSource] = []

        def judge(source: SessionSource) -> bool:
            asked.append(source)
            return source.user_id in welcome

        ledger, url = Ledger(judge), synapse.url
        async with Person(url, synapse.register("ann")) as ann, Person(url, synapse.register("eve")) as eve:
            welcome.add(ann.user_id)
            theirs = await eve.create_room(house.user.user_id, is_direct=True)
            async with house.at_work(ledger):
                ours = await ann.create_room(house.user.user_id)
                await ann.wait_for_member(ours, house.user.user_id)
                await until(lambda: {one.chat_type for one in asked} == {"dm", "group"})
                assert house.user.user_id not in await eve.members(theirs)
                welcome.add(eve.user_id)
                await eve.wait_for_member(theirs, house.user.user_id)

    run(work())


def test_rooms_that_we_are_thrown_out_of_harm_nobody(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with Person(synapse.url, synapse.register("ann")) as ann, house.at_work(ledger) as adapter:
            room = await ann.create_room()
            await ann.invite(room, house.user.user_id)
            await ann.wait_for_member(room, house.user.user_id)
            await ann.kick(room, house.user.user_id)
            with pytest.raises(SendRefused):
                await adapter.send(post(room, "Is anybody there?"))
            await adapter.typing(post(room, "").route)
            await ann.invite(room, house.user.user_id)
            await ann.wait_for_member(room, house.user.user_id)
            await ann.say(room, "welcome back")
            await until(lambda: ledger.texts == ["welcome back"])

    run(work())


def test_a_room_that_gets_a_third_person_is_a_group(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger, url = Ledger(), synapse.url
        async with Person(url, synapse.register("ann")) as ann, Person(url, synapse.register("bob")) as bob:
            async with house.at_work(ledger):
                room = await ann.create_room(house.user.user_id, is_direct=True)
                await ann.wait_for_member(room, house.user.user_id)
                await ann.say(room, "two of us")
                await until(lambda: ledger.accepted)
                await ann.invite(room, bob.user_id)
                await ann.say(room, "three of us")
                await until(lambda: len(ledger.accepted) == 2)
            await ann.say(room, "after a restart")
            async with house.at_work(ledger):
                await until(lambda: len(ledger.accepted) == 3)
            assert [one.source.chat_type for one in ledger.accepted] == ["dm", "group", "group"]

    run(work())


def test_typing_is_seen(house: MatrixHouse, synapse: Synapse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.platforms.matrix.platform.TYPING_SECONDS", DEADLINE)

    async def work() -> None:
        async with Person(synapse.url, synapse.register("ann")) as ann, house.at_work(Ledger()) as adapter:
            room = await ann.create_room(house.user.user_id, is_direct=True)
            await ann.wait_for_member(room, house.user.user_id)
            await adapter.typing(post(room, "").route)
            assert await ann.typing(room) == [house.user.user_id]

    run(work())


def test_a_long_silence_is_made_up_for_in_every_room(
    house: MatrixHouse, synapse: Synapse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a homeserver brings at once, in two rooms, one of which we only come into meanwhile."""
    monkeypatch.setattr(reading, "PAGE", 20)
    monkeypatch.setitem(reading._NEWS["room"]["timeline"], "limit", 20)

    async def work() -> None:
        ledger, url = Ledger(), synapse.url
        async with Person(url, synapse.register("ann")) as ann:
            async with house.at_work(ledger):
                room = await ann.create_room(house.user.user_id, is_direct=True)
                await ann.wait_for_member(room, house.user.user_id)
                await ann.say(room, "first")
                await until(lambda: ledger.accepted)
            other = await ann.create_room(is_public=True)
            for number in range(25):
                await ann.say(other, f"not for us {number}")
            await ann.invite(other, house.user.user_id)
            for number in range(50):
                await ann.say(other, f"there {number}")
                await ann.say(room, f"here {number}")
            async with Person(url, house.user) as we:
                await we.join(other)
            async with house.at_work(ledger):
                await until(lambda: len(ledger.accepted) >= 101)
            by_room = {
                one: [inbound.text for inbound in ledger.accepted if inbound.source.chat_id == one]
                for one in (room, other)
            }
            assert by_room[room] == ["first", *(f"here {number}" for number in range(50))]
            assert by_room[other] == [f"there {number}" for number in range(50)]

    run(work())


# Logging in


def test_the_device_stays_the_same_and_its_secrets_are_ours_alone(
    house: MatrixHouse, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        devices = []
        for _ in range(2):
            async with house.at_work(Ledger()):
                devices.append((house.keys / "device.json").read_text())
        assert devices[0] == devices[1]
        assert stat.S_IMODE(house.keys.stat().st_mode) == 0o700
        for path in house.keys.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
        token = devices[0].partition('"access_token": "')[2].partition('"')[0]
        assert token
        assert token not in caplog.text
        assert house.user.password not in caplog.text

    with caplog.at_level(logging.DEBUG):
        run(work())


def test_a_wrong_password_is_one_clear_sentence(house: MatrixHouse) -> None:
    settings = dataclasses.replace(house.settings, password="wrong")

    async def work() -> None:
        with pytest.raises(SegueError, match=r"does not let .* in: check platforms\.matrix\.user and") as raised:
            async with house.at_work(Ledger(), settings):
                pass
        assert "wrong" not in str(raised.value)

    run(work())


def log_out(synapse: Synapse, token: str) -> None:
    """From elsewhere, while no adapter is at work that could notice it."""
    asked = Request(f"{synapse.url}/_matrix/client/v3/logout", b"{}", {"Authorization": f"Bearer {token}"})
    with urlopen(asked, timeout=DEADLINE) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("is_soft", [False, True], ids=["removed", "logged out"])
def test_a_token_that_was_revoked_is_replaced_on_the_same_device(
    synapse: Synapse, trouble: Troublesome, tmp_path: Path, is_soft: bool
) -> None:
    house = MatrixHouse(tmp_path, trouble.url, synapse.register("segue"))
    softly = {"errcode": "M_UNKNOWN_TOKEN", "error": "Expired", "soft_logout": True}

    async def work() -> None:
        ledger = Ledger()
        async with PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann") as ann:
            async with house.at_work(ledger) as adapter:
                room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True)
                await ann.wait_for_member(room, house.user.user_id)
                await ann.say(room, "before")
                await until(lambda: ledger.texts == ["before"])
                link = adapter._link
                assert link is not None
                device, token = link.client.device_id, link.client.access_token
            if is_soft:
                trouble.answer("GET .*/sync", 401, softly)  # also to what the last life still had on its way
            else:
                await asyncio.to_thread(log_out, synapse, token)
            with pytest.raises(SegueError, match="we log in again as the same device"):
                async with house.at_work(ledger):
                    pass
            trouble.calm()
            async with house.at_work(ledger) as adapter:
                assert adapter._link is not None
                assert adapter._link.client.device_id == device
                await ann.say(room, "after")
                await until(lambda: ledger.texts == ["before", "after"])
                await adapter.send(post(room, "well"))
                assert (await ann.wait_for(room, len))[0].body == "well"

    run(work())


def test_an_access_token_is_as_good_as_a_password(house: MatrixHouse, synapse: Synapse) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with Person(synapse.url, house.user) as we, Person(synapse.url, synapse.register("ann")) as ann:
            settings = dataclasses.replace(house.settings, password=None, access_token=we.token)
            async with house.at_work(ledger, settings) as adapter:
                assert adapter._link is not None
                assert adapter._link.client.olm is not None
                room = await ann.create_room(house.user.user_id, is_direct=True)
                await ann.wait_for_member(room, house.user.user_id)
                await ann.say(room, "hello")
                await until(lambda: ledger.texts == ["hello"])
            bad = dataclasses.replace(settings, access_token="no-such-token")
            with pytest.raises(SegueError, match=r"does not know platforms\.matrix\.access_token"):
                async with house.at_work(ledger, bad):
                    pass

    run(work())


def test_a_device_whose_keys_are_elsewhere_reads_no_secrets_and_tells_none(
    house: MatrixHouse, synapse: Synapse, tmp_path: Path
) -> None:
    async def work() -> None:
        ledger = Ledger()
        ann = PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann")
        ours = PrivatePerson(synapse.url, house.user, tmp_path / "elsewhere")
        async with ann, ours:
            settings = dataclasses.replace(house.settings, password=None, access_token=ours.token)
            async with house.at_work(ledger, settings) as adapter:
                assert adapter._link is not None
                assert adapter._link.client.olm is None
                room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True)
                await ann.wait_for_member(room, house.user.user_id)
                await ann.say(room, "a secret")
                await until(lambda: ledger.texts == [UNREADABLE])
                with pytest.raises(SendRefused, match="The room is encrypted"):
                    await adapter.send(post(room, "in the open"))
                assert await ann.heard(room) == []

    run(work())


def test_a_device_that_lost_its_keys_becomes_another(house: MatrixHouse) -> None:
    async def work() -> None:
        async with house.at_work(Ledger()):
            pass
        before = (house.keys / "device.json").read_text()
        (house.keys / "keys.db").unlink()
        with pytest.raises(SegueError, match="we log in as a new device"):
            async with house.at_work(Ledger()):
                pass
        async with house.at_work(Ledger()):
            assert (house.keys / "device.json").read_text() != before

    run(work())
