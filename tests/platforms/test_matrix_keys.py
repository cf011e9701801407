"""The keys of our device: none is lost, whatever others, the network or a crash do."""

from pathlib import Path
from typing import Any

import pytest
from matrix_house import MatrixHouse, post, run
from matrix_person import Person
from matrix_private_person import PrivatePerson
from nio import AsyncClient  # type: ignore[import-untyped]
from synapse_server import Synapse
from troublesome import Troublesome
from waiting import until

from segue.core.inbound import Cursor
from segue.platforms.matrix.client import Client
from segue.platforms.matrix.inbound import UNREADABLE
from segue.platforms.matrix.platform import MatrixPlatform
from segue.ports.platform import SendLater
from segue.testing.ledger import Ledger

NONSENSE: tuple[Any, ...] = (
    {"type": 0, "body": "no base64!"},
    {"type": 1, "body": "AAAA"},
    {"type": 9, "body": ""},
    {},
    7,
)


@pytest.fixture
def house(synapse: Synapse, trouble: Troublesome, tmp_path: Path) -> MatrixHouse:
    return MatrixHouse(tmp_path, trouble.url, synapse.register("segue"))


@pytest.fixture
def ann(synapse: Synapse, tmp_path: Path) -> PrivatePerson:
    return PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann")


async def meet(ann: PrivatePerson, house: MatrixHouse) -> str:
    room = await ann.create_room(house.user.user_id, is_direct=True, is_encrypted=True)
    await ann.wait_for_member(room, house.user.user_id)
    return room


def device_of(adapter: MatrixPlatform) -> Any:
    assert adapter._link is not None
    return adapter._link.client


def test_words_whose_key_comes_late_are_heard_late_also_after_a_restart(house: MatrixHouse, ann: PrivatePerson) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with ann:
            async with house.at_work(ledger) as adapter:
                room = await meet(ann, house)
                await ann._is_encrypted(room)
                await ann._nio.joined_members(room)
                if ann._nio.should_query_keys:
                    await ann._nio.keys_query()
                ours = ann._nio.device_store[house.user.user_id][device_of(adapter).device_id]
                ann._nio.blacklist_device(ours)
                ann._nio.olm.create_outbound_group_session(room)
                made = ann._nio.olm.outbound_group_sessions[room]
                key = {"room_id": room, "session_id": made.id, "session_key": made.session_key}
                said = await ann.say(room, "can you read this?")
                await until(lambda: ledger.accepted)
                assert [(one.text, one.edit) for one in ledger.accepted] == [(UNREADABLE, "")]
            async with house.at_work(ledger):
                ann._nio.unblacklist_device(ours)
                await _give_key(ann, ours, key)
                await until(lambda: len(ledger.accepted) == 2)
                late = ledger.accepted[1]
                assert (late.text, late.message_id, late.edit) == ("can you read this?", said, f"decrypted:{said}")

    run(work())


async def _give_key(ann: PrivatePerson, ours: Any, key: dict[str, str]) -> None:
    """As a client does it that hears that its key was missed."""
    olm = ann._nio.olm
    await ann._nio.keys_claim({ours.user_id: [ours.id]})
    content = {"algorithm": "m.megolm.v1.aes-sha2", **key}
    sealed = olm._olm_encrypt(olm.session_store.get(ours.curve25519), ours, "m.room_key", content)
    body = {"messages": {ours.user_id: {ours.id: sealed}}}
    await ann._ask("PUT", f"/sendToDevice/m.room.encrypted/{next(ann._transactions)}", body)


def test_nonsense_that_somebody_tells_our_device_stops_nothing(
    house: MatrixHouse, ann: PrivatePerson, synapse: Synapse
) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with ann, Person(synapse.url, synapse.register("eve")) as eve, house.at_work(ledger) as adapter:
            room = await meet(ann, house)
            client = device_of(adapter)
            ours = client.olm.account.identity_keys["curve25519"]
            bad: list[dict[str, Any]] = [
                {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": {ours: one}}
                for one in (
                    {"type": 0, "body": "no base64!"},
                    {"type": 1, "body": "AAAA"},
                    {"type": 9, "body": ""},
                    {},
                    7,
                )
            ]
            for number, content in enumerate([*bad, {}, {"algorithm": 7}]):
                body = {"messages": {house.user.user_id: {client.device_id: content}}}
                await eve._ask("PUT", f"/sendToDevice/m.room.encrypted/{number}", body)
            sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s"}
            for odd in (sealed, {**sealed, "sender_key": "k", "device_id": "d"}, {**sealed, "sender_key": 7}):
                await ann._put(room, "m.room.encrypted", odd, None)
            await ann.say(room, "still there?")
            await until(lambda: "still there?" in ledger.texts)
            assert ledger.texts == [UNREADABLE] * 3 + ["still there?"]
            assert ledger.is_connected

    run(work())


def test_when_others_have_used_up_our_keys_there_are_new_ones(
    house: MatrixHouse, ann: PrivatePerson, synapse: Synapse
) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with ann, Person(synapse.url, synapse.register("eve")) as eve:
            async with house.at_work(ledger) as adapter:
                device = device_of(adapter).device_id
            wanted = {"one_time_keys": {house.user.user_id: {device: "signed_curve25519"}}}
            for _ in range(100):
                if not (await eve._ask("POST", "/keys/claim", wanted))["one_time_keys"].get(house.user.user_id):
                    break
            else:
                raise AssertionError("they are endless")
            async with house.at_work(ledger) as adapter:
                await until(lambda: device_of(adapter).olm.uploaded_key_count)
                room = await meet(ann, house)
                await ann.say(room, "with a new key")
                await until(lambda: ledger.texts == ["with a new key"])

    run(work())


@pytest.mark.parametrize("status", [429, 502])
def test_what_not_everybody_could_read_is_not_sent_yet(
    house: MatrixHouse, ann: PrivatePerson, trouble: Troublesome, status: int
) -> None:
    """A key that did not reach its devices is given again before anything is encrypted with it."""

    async def work() -> None:
        ledger = Ledger()
        async with ann, house.at_work(ledger) as adapter:
            room = await meet(ann, house)
            await ann.say(room, "hello")
            await until(lambda: ledger.texts == ["hello"])
            error = {"errcode": "M_LIMIT_EXCEEDED", "error": "later", "retry_after_ms": 100} if status == 429 else {}
            trouble.answer("PUT .*/sendToDevice/m.room.encrypted", status, error, times=1)
            with pytest.raises(SendLater):
                await adapter.send(post(room, "well", "k"))
            assert await ann.heard(room) == []
            await adapter.send(post(room, "well", "k"))
            (heard,) = await ann.wait_for(room, len)
            assert heard.body == "well"

    run(work())


@pytest.mark.parametrize("path", ["keys/claim", "joined_members"])
def test_a_room_is_not_locked_by_trouble_about_its_keys(
    house: MatrixHouse, ann: PrivatePerson, trouble: Troublesome, path: str
) -> None:
    async def work() -> None:
        async with ann, house.at_work(Ledger()) as adapter:
            room = await meet(ann, house)
            await until(lambda: room in device_of(adapter).rooms)
            failing = trouble.answer(f".*/{path}", 500)
            for _ in range(2):
                with pytest.raises(SendLater):
                    await adapter.send(post(room, "well", "k"))
            assert failing.met
            trouble.calm()
            await adapter.send(post(room, "well", "k"))
            (heard,) = await ann.wait_for(room, len)
            assert heard.body == "well"

    run(work())


def test_keys_are_taken_before_the_messages_that_need_them_however_many_there_are(
    house: MatrixHouse, ann: PrivatePerson, synapse: Synapse
) -> None:
    async def work() -> None:
        ledger = Ledger()
        async with ann, Person(synapse.url, synapse.register("eve")) as eve:
            async with house.at_work(ledger) as adapter:
                room = await meet(ann, house)
                await ann.say(room, "first")
                await until(lambda: ledger.texts == ["first"])
                device = device_of(adapter).device_id
            for number in range(230):
                body = {"messages": {house.user.user_id: {device: {"number": number}}}}
                await eve._ask("PUT", f"/sendToDevice/org.example.noise/{number}", body)
            ann._nio.olm.rotate_outbound_group_session(room)
            await ann.say(room, "second")
            async with house.at_work(ledger):
                await until(lambda: len(ledger.accepted) == 2)
            assert ledger.texts == ["first", "second"]

    run(work())


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "without the guard"])
def test_a_key_and_what_was_read_to_get_it_are_stored_together(
    house: MatrixHouse, ann: PrivatePerson, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """Whoever dies in between finds everything as it was before."""

    class Died(BaseException):
        """As when the machine stops."""

    def die(*_: object) -> None:
        raise Died

    async def work() -> None:
        ledger = Ledger()
        async with ann:
            async with house.at_work(ledger):
                room = await meet(ann, house)
                await ann.say(room, "first")
                await until(lambda: ledger.texts == ["first"])
            ann._nio.olm.rotate_outbound_group_session(room)
            await ann.say(room, "second")
            with monkeypatch.context() as patch:
                patch.setattr("nio.crypto.olm_machine.Olm.create_group_session", die)
                if not is_guarded:
                    patch.setattr(Client, "_handle_to_device", AsyncClient._handle_to_device)
                with pytest.raises(Died):
                    await house.adapter().run(ledger)
            async with house.at_work(ledger):
                await until(lambda: len(ledger.accepted) == 2)
            assert ledger.texts == ["first", "second" if is_guarded else UNREADABLE]

    run(work())


def test_keys_that_others_can_use_are_on_the_disk_before(house: MatrixHouse, trouble: Troublesome) -> None:
    """Nobody hears that they were taken; the next process offers the same."""

    async def work() -> None:
        lost = trouble.lose_answers("POST .*/keys/upload", times=1)
        ledger = Ledger()
        await ledger.advance(Cursor("unused", ""))
        with pytest.raises(Exception, match="connection"):
            async with house.at_work(ledger):
                pass
        assert lost.met == 1
        async with house.at_work(ledger):
            uploads = [one for one in trouble.asked if "keys/upload" in one.line]
            assert [one.status for one in uploads] == [None, 200]

    run(work())
