"""What anybody can write into a room stops nobody else from being heard, and costs little."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from matrix_bench import ANN, EVE, ROOM, SEALED, benched, said, text
from matrix_house import run

from segue.core.errors import StoreError
from segue.core.inbound import Inbound
from segue.platforms.matrix.asking import place
from segue.platforms.matrix.failing import Refused, refusal
from segue.platforms.matrix.inbound import UNREADABLE
from segue.platforms.matrix.taking import KEY_REQUESTS
from segue.platforms.matrix.waiting import MOST_EACH
from segue.testing.ledger import Ledger

FILE = {"url": "mxc://a/b", "key": {"k": "A" * 43}, "iv": "AAAAAAAAAAAAAAAAAAAAAA", "hashes": {"sha256": "x"}}


def file(**sealed: Any) -> dict[str, Any]:
    return said({"msgtype": "m.file", "body": "f", "file": {**FILE, **sealed}})


def related(relation: Any) -> dict[str, Any]:
    return said({"msgtype": "m.text", "body": "x", "m.relates_to": relation})


def nested(levels: int) -> Any:
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "odd",
    [
        file(key={"k": 5}),
        file(key=[1]),
        file(key="k"),
        file(iv="/" * 40),
        file(iv=None),
        file(hashes={"sha256": {}}),
        file(url=7),
        file(url="mxc://a/\ud800"),
        file(url="mxc://../config"),
        said({"msgtype": "m.file", "body": "f", "url": "mxc://a/\ud800"}),
        said({"msgtype": "m.file", "body": "f", "url": "mxc://a", "info": nested(300)}),
        related({"m.in_reply_to": {"event_id": "\ud800"}}),
        related({"m.in_reply_to": {"event_id": ".."}}),
        related({"m.in_reply_to": {"event_id": "\x00"}}),
        related({"rel_type": "m.replace", "event_id": "\udfff"}),
        related({"rel_type": "m.thread", "event_id": "\udfff"}),
        related(nested(300)),
        said({"msgtype": "m.text", "body": "x", "m.mentions": {"user_ids": [{}, [], 7]}}),
        said({}, kind="m.room.redaction") | {"redacts": "\ud800"},
        said(dict(SEALED), kind="m.room.encrypted") | {"unsigned": "x"},
        said({**SEALED, "session_id": ["s"], "ciphertext": 7}, kind="m.room.encrypted"),
    ],
)
def test_an_odd_event_does_not_stop_the_next(odd: dict[str, Any], tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(odd, text("and on it goes", "$next"))
            assert bench.ledger.texts[-1] == "and on it goes"

    run(work())


def test_whatever_goes_wrong_in_judging_an_event_only_that_one_is_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(event: Mapping[str, Any], *_: object) -> Inbound:
        if event["event_id"] == "$odd":
            raise AttributeError("the words of somebody")
        return Inbound(None, event["event_id"], "fine")  # type: ignore[arg-type]

    monkeypatch.setattr("segue.platforms.matrix.taking.inbound_from", stumble)

    async def work() -> None:
        ledger = Ledger()
        taken: list[str] = []
        ledger.receive = lambda inbound: _noted(taken, inbound)  # type: ignore[method-assign, assignment, return-value]
        async with benched(tmp_path, ledger) as bench:
            await bench.take(text("x", "$odd"), text("y", "$next"))
        assert taken == ["$next"]
        assert "AttributeError" in caplog.text
        assert "the words of somebody" not in caplog.text

    run(work())


async def _noted(taken: list[str], inbound: Inbound) -> None:
    taken.append(inbound.message_id)


def test_what_cannot_be_put_down_is_not_left_aside(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path) as bench:
            bench.ledger.refusals = 1
            with pytest.raises(StoreError):
                await bench.take(text("x"))

    run(work())


@pytest.mark.parametrize("part", ["", ".", "..", "\ud800", "\x00", "a\nb"])
def test_no_part_of_a_path_leads_elsewhere(part: str) -> None:
    with pytest.raises(Refused, match="Nothing on a homeserver"):
        place("v1", "media", "download", part, "x")


# What is left out


def gap(batch: str = "s9") -> dict[str, Any]:
    timeline = {"limited": True, "prev_batch": "p9", "events": [text("last", "$last")]}
    return {"next_batch": batch, "join": {ROOM: {"timeline": timeline}}}


def test_an_empty_page_is_not_the_end(tmp_path: Path) -> None:
    pages: dict[str, dict[str, Any]] = {
        "s0": {"chunk": [], "end": "p1"},
        "p1": {"chunk": [text("in the gap", "$gap")], "end": "p2"},
        "p2": {"chunk": []},
    }

    def answer(path: tuple[str, ...], query: Mapping[str, str]) -> dict[str, Any]:
        return pages[query["from"]]

    async def work() -> None:
        async with benched(tmp_path, answer=answer) as bench:
            await bench.client.hear({"rooms": gap()})
            await bench.reader._pass_on(gap(), "s0")
            assert bench.ledger.texts == ["in the gap", "last"]

    run(work())


@pytest.mark.parametrize(("status", "stops"), [(403, False), (404, False), (429, True), (502, True)])
def test_a_room_that_is_closed_to_us_keeps_us_from_no_other(status: int, stops: bool, tmp_path: Path) -> None:
    def answer(_path: tuple[str, ...], _query: Mapping[str, str]) -> dict[str, Any]:
        raise refusal(status, {"errcode": "M_FORBIDDEN" if status == 403 else ""})

    async def work() -> None:
        async with benched(tmp_path, answer=answer) as bench:
            await bench.client.hear({"rooms": gap()})
            if stops:
                with pytest.raises(Refused):
                    await bench.reader._pass_on(gap(), "s0")
            else:
                await bench.reader._pass_on(gap(), "s0")
                assert bench.ledger.texts == ["last"]

    run(work())


# Messages without their keys


def sealed(name: str, sender: str) -> dict[str, Any]:
    return said({**SEALED, "session_id": f"session of {name}"}, name, sender, "m.room.encrypted")


def test_nobody_pushes_out_what_others_wait_for(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(sealed("$ann", ANN), *(sealed(f"$e{number}", EVE) for number in range(250)))
            await bench.taker.keep()
            waiting = [one["event"]["event_id"] for one in bench.keyring.waiting()]
            assert waiting == ["$ann", *(f"$e{number}" for number in range(250 - MOST_EACH, 250))]

    run(work())


def test_what_somebody_says_who_is_not_heard_waits_for_no_key(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path, Ledger(lambda source: source.user_id == ANN)) as bench:
            await bench.take(sealed("$eve", EVE), sealed("$ann", ANN))
            await bench.taker.keep()
            assert [one["event"]["event_id"] for one in bench.keyring.waiting()] == ["$ann"]

    run(work())


def test_what_waits_is_written_once_for_all_and_keys_are_asked_for_in_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    asked: list[str] = []

    async def ask_for_key(_client: object, _room: str, event: Mapping[str, Any]) -> None:
        asked.append(event["event_id"])

    monkeypatch.setattr("segue.platforms.matrix.client.Client.ask_for_key", ask_for_key)
    monkeypatch.setattr(
        "segue.platforms.matrix.keyring.Keyring.keep_waiting", lambda _, messages: written.append(len(messages))
    )

    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(*(sealed(f"$e{number}", EVE) for number in range(50)))
            assert written == []
            for _ in range(2):
                await bench.taker.keep()
        assert written == [MOST_EACH]
        assert asked == [f"$e{number}" for number in range(KEY_REQUESTS)]

    run(work())


@pytest.mark.parametrize("is_told", [True, False])
def test_words_that_come_late_are_a_version_of_what_was_told(
    is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the chat of two has become a group meanwhile."""
    monkeypatch.setattr("segue.platforms.matrix.client.Client.is_keyed", lambda *_: True)

    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(sealed("$late", ANN), members=2 if is_told else 3)
            assert bench.ledger.texts == ([UNREADABLE] if is_told else [])
            opened = text("the words", "$late")
            monkeypatch.setattr("segue.platforms.matrix.client.Client.opened", lambda *_: opened)
            await bench.taker.take_late()
            late = bench.ledger.accepted[-1]
            assert (late.text, late.edit) == ("the words", "decrypted:$late" if is_told else "")
            await bench.taker.take_late()
            assert len(bench.ledger.brought) == len(bench.ledger.accepted)

    run(work())


# What a message points at

EDIT = {
    "msgtype": "m.text",
    "body": "* no",
    "m.new_content": {"msgtype": "m.text", "body": "no"},
    "m.relates_to": {"rel_type": "m.replace", "event_id": "$anns"},
}


def test_a_version_of_what_is_not_to_be_had_is_a_message_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(said(EDIT, "$edit", EVE))
            (found,) = bench.ledger.accepted
            assert (found.message_id, found.edit, found.text) == ("$edit", "", "no")

    run(work())


@pytest.mark.parametrize("status", [429, 502])
def test_while_nobody_can_say_what_is_changed_nothing_is(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same is read again, and then it is known."""
    monkeypatch.setattr("segue.platforms.matrix.taking.AGAIN", 0.01)
    stumbles = [status] * 3

    def answer(_path: tuple[str, ...], _query: Mapping[str, str]) -> dict[str, Any]:
        if stumbles:
            raise refusal(stumbles.pop(), {})
        return text("yes", "$anns")

    async def work() -> None:
        async with benched(tmp_path, answer=answer) as bench:
            with pytest.raises(Refused):
                await bench.take(said(EDIT, "$edit"))
            assert bench.ledger.brought == []
            await bench.take(said(EDIT, "$edit"))
            (found,) = bench.ledger.accepted
            assert (found.message_id, found.edit, found.text) == ("$anns", "$edit", "no")

    run(work())


def test_an_event_that_is_gone_when_asked_for_again_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.platforms.matrix.taking.AGAIN", 0.01)
    answers = [404, 502]

    def answer(_path: tuple[str, ...], _query: Mapping[str, str]) -> dict[str, Any]:
        raise refusal(answers.pop(), {})

    async def work() -> None:
        async with benched(tmp_path, answer=answer) as bench:
            await bench.take(related({"m.in_reply_to": {"event_id": "$gone"}}))
            assert bench.ledger.texts == ["x"]

    run(work())


def test_a_slow_file_keeps_nobody_waiting_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.platforms.matrix.media.DEADLINE", 0.2)

    async def drip(*_: object) -> AsyncGenerator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    monkeypatch.setattr("segue.platforms.matrix.media._pieces", drip)

    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.take(file(), text("/stop", "$stop"))
            assert bench.ledger.texts[-1] == "/stop"
            (kept,) = bench.ledger.accepted[0].files
            assert (kept.sha256, kept.reason) == (None, "it could not be fetched in time")
            assert not list((tmp_path / "attachments").glob("*.part"))

    run(work())


# Who is inside


def room_told(summary: dict[str, int], *state: dict[str, Any]) -> dict[str, Any]:
    return {"rooms": {"join": {ROOM: {"summary": summary, "state": {"events": list(state)}}}}}


def state(kind: str, content: dict[str, Any], key: str = "") -> dict[str, Any]:
    return {**said(content, f"${kind}{key}", ANN, kind), "state_key": key}


JOINED = [state("m.room.member", {"membership": "join"}, who) for who in (ANN, "@segue:example.org")]
TWO = {"m.joined_member_count": 2, "m.invited_member_count": 0}


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (room_told(TWO), "dm"),
        (room_told(TWO, state("m.room.join_rules", {"join_rule": "invite"})), "dm"),
        (room_told(TWO, state("m.room.join_rules", {"join_rule": "public"})), "group"),
        (room_told(TWO, state("m.room.join_rules", {"join_rule": "knock"})), "group"),
        (room_told({**TWO, "m.invited_member_count": 1}), "group"),
        (room_told({**TWO, "m.joined_member_count": 40}, *JOINED), "group"),
        (room_told({}, *JOINED), "group"),
    ],
)
def test_how_many_are_inside_is_what_the_homeserver_counts(told: dict[str, Any], kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path) as bench:
            await bench.client.hear(told)
            assert bench.client.room(ROOM).chat_type == kind

    run(work())
