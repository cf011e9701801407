"""What programs ask the gateway, over HTTP on this machine."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lane_house import dm
from open_door import OpenDoor, request
from serving_house import use_obedient_model, write_settings
from waiting import DEADLINE, until

from segue.core.credentials import Level
from segue.core.inbound import Inbound
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.sessions.lane_chat import MAX_SPEECH
from segue.sessions.starting import create_session
from segue.testing import Stage
from segue.web.rpc.catalogue import METHODS

TALK = {"conversation": "trip", "wait_seconds": DEADLINE}


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDoor]:
    use_obedient_model(monkeypatch)
    opened = OpenDoor(write_settings(tmp_path / "home", gateway={"port": 0}), {"scripted": Stage()})
    yield opened
    opened.close()


def test_what_a_program_says_is_answered_and_can_be_read_listed_found_and_exported(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = door.token()

    async def work() -> None:
        sent = await door.ask(token, "chat.send", text="a hotel in Lisbon", **TALK)
        assert (sent["state"], sent["answer"]) == ("done", "You said: a hotel in Lisbon")
        assert sent["lane_key"] == "agent:main:api:laptop:trip"
        session_id = sent["session_id"]
        listed = await door.ask(token, "sessions.list")
        assert [row["id"] for row in listed["sessions"]] == [session_id]
        row = listed["sessions"][0]
        assert row["total_tokens"] == row["input_tokens"] + row["output_tokens"]
        assert row["context_tokens"] is None or row["context_tokens"] > 0
        history = await door.ask(token, "chat.history", session_id=session_id)
        assert [one["role"] for one in history["messages"]] == ["user", "assistant"]
        hits = await door.ask(token, "sessions.search", query="lisbon")
        assert ({hit["session_id"] for hit in hits["hits"]}, hits["incomplete"]) == ({session_id}, False)
        with monkeypatch.context() as patch:
            patch.setattr("segue.facade.searching.TIME", 0.0)
            cut_off = await door.ask(token, "sessions.search", query="lisbon")
        assert (cut_off["hits"], cut_off["incomplete"]) == ([], True)
        exported = await door.ask(token, "sessions.export", id=session_id)
        assert next(one["content"] for one in exported["session"]["messages"]) == "a hotel in Lisbon"
        preview = await door.ask(token, "sessions.preview", id=session_id)
        assert [line["voice"] for line in preview["lines"]] == ["user", "assistant"]

    door.serve(work)


def test_rows_carry_the_tokens_that_are_stored(door: OpenDoor) -> None:
    """They are not counted from what was said, and what nobody knows is null."""
    token = door.token()
    door.store.write(OWNER, create_session, Session("s1", "cli", input_tokens=7, output_tokens=5, context_tokens=9))
    door.store.write(OWNER, create_session, Session("s2", "cli", started_at=1.0))

    async def work() -> None:
        rows = {row["id"]: row for row in (await door.ask(token, "sessions.list"))["sessions"]}
        counted = ("input_tokens", "output_tokens", "total_tokens", "context_tokens", "context_window")
        assert [rows["s1"][name] for name in counted] == [7, 5, 12, 9, None]
        assert [rows["s2"][name] for name in counted] == [0, 0, 0, None, None]

    door.serve(work)


def test_a_conversation_is_named_marked_and_removed(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        session_id = (await door.ask(token, "chat.send", text="hello", **TALK))["session_id"]
        patched = await door.ask(
            token, "sessions.patch", id=session_id, title="My trip", pinned=True, add_tags=["a", "b"], remove_tags=["a"]
        )
        assert (patched["title"], patched["pinned"], patched["tags"]) == ("My trip", True, ["b"])
        assert (await door.ask(token, "sessions.resolve", name="My trip"))["id"] == session_id
        got = await door.ask(token, "sessions.get", id=session_id)
        assert (got["tip"], got["parts"]) == (session_id, [session_id])
        gone = await door.ask(token, "sessions.delete", id=session_id)
        assert gone == {"sessions": [session_id], "is_purged": False}
        assert (await door.ask(token, "sessions.get", id=session_id))["code"] == -32001

    door.serve(work)


def test_the_same_key_says_it_once(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        sends = [door.ask(token, "chat.send", text="once", idempotency_key="k1", **TALK) for _ in range(5)]
        answers = await asyncio.gather(*sends)
        assert len({one["message_id"] for one in answers}) == 1
        assert {one["answer"] for one in answers} == {"You said: once"}
        history = await door.ask(token, "chat.history", conversation="trip")
        assert len(history["messages"]) == 2

    door.serve(work)


def test_each_of_several_messages_has_an_answer_of_its_own(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        sends = [door.ask(token, "chat.send", text=f"number {number}", **TALK) for number in range(5)]
        assert {one["answer"] for one in await asyncio.gather(*sends)} == {f"You said: number {n}" for n in range(5)}

    door.serve(work)


def test_an_answer_is_stopped(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        waiting = asyncio.create_task(door.ask(token, "chat.send", text="wait 1000", **TALK))
        await until(lambda: door.store.read(OWNER, lambda tx: tx.inbox.listed(("running",))))
        stopped = await door.ask(token, "chat.abort", conversation="trip")
        assert stopped["text"].startswith("Stopped")
        assert (await waiting)["state"] == "cancelled"

    door.serve(work)


def test_commands_are_carried_out_in_a_conversation_and_begin_it_anew(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        first = await door.ask(token, "chat.send", text="hello", **TALK)
        done = await door.ask(token, "sessions.reset", id=first["session_id"])
        assert done["session_id"] not in (None, first["session_id"])
        again = await door.ask(token, "chat.send", text="hello again", **TALK)
        assert again["session_id"] == done["session_id"]
        lane = await door.ask(token, "lanes.get", key="api:laptop:trip")
        assert lane["session_id"] == done["session_id"]
        assert [reset["from_session"] for reset in lane["resets"]] == [first["session_id"]]

    door.serve(work)


def test_something_is_said_in_a_lane_of_people_and_is_shown_there(door: OpenDoor) -> None:
    """The answer is read by whoever asked and by people in the chat, and the lane goes on being theirs."""
    token = door.token()

    async def work() -> None:
        door.stages["scripted"].say(dm("owner"), "from my phone")
        await door.quiet()
        key = (await door.ask(token, "lanes.list"))["lanes"][0]["key"]
        more: dict[str, Any] = {"wait_seconds": DEADLINE, "idempotency_key": "once"}
        for _ in range(2):
            sent = await door.ask(token, "chat.send", lane_key=key, text="and from my desk", **more)
            assert (sent["lane_key"], sent["answer"]) == (key, "You said: and from my desk")
        await door.quiet()
        assert door.stages["scripted"].posted_to("owner") == [
            "You said: from my phone",
            "The program laptop says:\nand from my desk",
            "You said: and from my desk",
        ]
        door.stages["scripted"].say(dm("owner"), "still there?")
        await door.quiet()
        assert door.stages["scripted"].posted[-1].text == "You said: still there?"
        lane = door.store.read(OWNER, lambda tx: tx.lanes.find(key))
        assert lane is not None
        assert lane.origin is not None
        assert lane.origin.platform == "scripted"

    door.serve(work)


def test_people_see_the_beginning_of_what_a_program_says_also_behind_a_command_and_nothing_where_sending_is_off(
    door: OpenDoor,
) -> None:
    token = door.token()

    async def work() -> None:
        stage, more = door.stages["scripted"], {"wait_seconds": DEADLINE}
        stage.say(dm("owner"), "from my phone")
        await door.quiet()
        key = (await door.ask(token, "lanes.list"))["lanes"][0]["key"]
        for text in ("word " * MAX_SPEECH, "/new from my desk", "/send off", "in silence"):
            await door.ask(token, "chat.send", lane_key=key, text=text, **more)
        await door.quiet()
        shown = [one for one in stage.posted_to("owner") if "The program" in one or "silence" in one]
        assert [one.partition("\n")[0] for one in shown[::2]] == ["The program laptop says:"] * 2
        assert len(shown[0]) < 2 * MAX_SPEECH
        assert shown[1].startswith("The program laptop gave /new.")
        assert shown[2:] == ["The program laptop says:\nfrom my desk"]

    door.serve(work)


def test_commands_of_the_owners_programs_in_a_lane_of_somebody_else_are_carried_out_for_whom_it_belongs_to(
    door: OpenDoor,
) -> None:
    token = door.token()

    async def work() -> None:
        for name in ("owner", "alice"):
            door.stages["scripted"].say(dm(name), f"hello of {name}")
            await door.quiet()
        lanes = (await door.ask(token, "lanes.list"))["lanes"]
        sessions = {one["key"].rpartition(":")[2]: one["session_id"] for one in lanes}
        key = next(one["key"] for one in lanes if one["key"].endswith("alice"))
        more: dict[str, Any] = {"lane_key": key, "wait_seconds": DEADLINE}
        status = await door.ask(token, "chat.send", text="/status", **more)
        assert sessions["alice"] in status["answer"]
        taken = await door.ask(token, "chat.send", text=f"/resume {sessions['owner']}", **more)
        assert taken["answer"].startswith("No conversation has the id"), "nothing of the owner's is shown there"
        again = await door.ask(token, "chat.send", text="and now?", **more)
        assert (again["session_id"], again["answer"]) == (sessions["alice"], "You said: and now?")

    door.serve(work)


def test_people_are_told_of_what_a_program_stops_and_begins_in_their_lane(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        stage = door.stages["scripted"]
        stage.say(dm("owner"), "wait 3600")
        await until(lambda: door.store.read(OWNER, lambda tx: tx.inbox.count(("running",))))
        lane = (await door.ask(token, "lanes.list"))["lanes"][0]
        key = lane["key"]
        assert (await door.ask(token, "chat.abort", lane_key=key))["text"] == "Stopped."
        await door.ask(token, "sessions.reset", id=lane["session_id"])
        await door.ask(token, "chat.send", lane_key=key, text="/status", wait_seconds=DEADLINE)
        await until(lambda: len(stage.posted_to("owner")) > 1)  # not for a title, which this model would wait with, too
        stopped, begun = [one for one in stage.posted_to("owner") if one.startswith("The program")]
        assert stopped == "The program laptop gave /stop. Stopped."
        assert begun.startswith("The program laptop gave /new. A new conversation begins.")

    door.serve(work)


def test_a_token_does_what_its_scope_allows_and_nothing_else(door: OpenDoor) -> None:
    tokens = {level: door.token(level.value, level) for level in Level}

    async def work() -> None:
        for method, (level, token) in itertools.product(METHODS, tokens.items()):
            answer = (await door.post(request(method, unknown=1), token)).json()
            wanted = -32602 if level.allows(METHODS[method].level) else -32003
            assert answer["error"]["code"] == wanted, (method, level)

    door.serve(work)


def test_a_program_of_somebody_sees_nothing_of_others(door: OpenDoor) -> None:
    owner, alice = door.token(), door.token("alice", Level.ADMIN, "telegram:1")

    async def work() -> None:
        mine = await door.ask(owner, "chat.send", text="the owner's secret", **TALK)
        hers = await door.ask(alice, "chat.send", text="hers alone", **TALK)
        session_id, key = mine["session_id"], mine["lane_key"]
        assert hers["session_id"] != session_id
        listed = await door.ask(alice, "sessions.list", every=True)
        assert [row["id"] for row in listed["sessions"]] == [hers["session_id"]]
        assert (await door.ask(alice, "sessions.search", query="secret"))["hits"] == []
        assert [row["key"] for row in (await door.ask(alice, "lanes.list"))["lanes"]] == [hers["lane_key"]]
        status = await door.ask(alice, "status")
        assert (status["sessions"], status["database_bytes"]) == (1, 0)
        theirs: list[tuple[str, dict[str, Any]]] = [
            ("sessions.get", {"id": session_id}),
            ("sessions.preview", {"id": session_id}),
            ("sessions.resolve", {"name": session_id}),
            ("sessions.patch", {"id": session_id, "title": "x"}),
            ("sessions.reset", {"id": session_id}),
            ("sessions.delete", {"id": session_id}),
            ("sessions.compact", {"id": session_id}),
            ("sessions.export", {"id": session_id}),
            ("chat.history", {"session_id": session_id}),
            ("chat.history", {"conversation": "x", "cursor": f"{session_id}:0"}),
            ("chat.history", {"lane_key": key}),
            ("chat.send", {"lane_key": key, "text": "x"}),
            ("chat.send", {"session_id": session_id, "text": "x"}),
            ("chat.abort", {"lane_key": key}),
            ("lanes.get", {"key": key}),
            ("lanes.reset", {"key": key}),
        ]
        for method, params in theirs:
            answer = await door.ask(alice, method, **params)
            assert answer.get("code") == -32001, (method, answer)
        assert (await door.ask(owner, "sessions.get", id=session_id))["session"]["title"] != "x"

    door.serve(work)


def test_an_agent_that_is_not_there_is_told_so(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        answer = await door.ask(token, "chat.send", text="hello", agent="nosuch", **TALK)
        assert (answer["code"], answer["message"]) == (-32005, "There is no agent 'nosuch'; there are main.")

    door.serve(work)


def test_commands_of_owners_are_not_taken_from_others(door: OpenDoor) -> None:
    alice = door.token("alice", Level.ADMIN, "telegram:1")

    async def work() -> None:
        answer = await door.ask(alice, "chat.send", text="/restart", **TALK)
        assert answer["code"] == -32003

    door.serve(work)


def test_several_requests_are_made_together_and_some_want_no_answer(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        silent = {"jsonrpc": "2.0", "method": "health", "params": {}}
        answer = await door.post([request("health") | {"id": "a"}, silent, request("nope") | {"id": 2}, 7], token)
        assert [(one.get("id"), "result" in one) for one in answer.json()] == [("a", True), (2, False), (None, False)]
        assert (await door.post(silent, token)).status_code == 204
        assert (await door.post([silent], token)).status_code == 204

    door.serve(work)


NO_REQUESTS = [
    (b"{", -32700),
    (b"\xff", -32700),
    (b"[]", -32600),
    (b"7", -32600),
    (b'{"jsonrpc": "1.0", "method": "health", "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "method": 7, "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "method": "health", "params": [], "id": 1}', -32602),
    (b'{"jsonrpc": "2.0", "method": "health", "params": {}, "id": {}}', -32600),
    (b'{"jsonrpc": "2.0", "method": "health", "params": {}, "id": 1e999}', -32600),
    (b'{"jsonrpc": "2.0", "method": "health", "params": {}, "id": "\\ud800"}', -32600),
    (b'{"jsonrpc": "2.0", "method": "health", "params": {}, "id": 1, "more": 2}', -32600),
    (b'{"jsonrpc": "2.0", "method": "health", "params": {"more": 2}, "id": 1}', -32602),
    (b'{"jsonrpc": "2.0", "method": "sessions.list", "params": {"limit": "5"}, "id": 1}', -32602),
    (b'{"jsonrpc": "2.0", "method": "sessions.list", "params": {"limit": NaN}, "id": 1}', -32700),
    (b'{"jsonrpc": "2.0", "method": "chat.history", "params": {}, "id": 1}', -32602),
    (b"[" * 70 + b"]" * 70, -32700),
]


def test_what_is_no_request_is_told_so(door: OpenDoor) -> None:
    token = door.token()

    async def work() -> None:
        for said, code in NO_REQUESTS:
            answer = (await door.post(said, token)).json()
            assert answer["error"]["code"] == code, said
            assert "\n" not in answer["error"]["message"], said
            assert "Value error" not in answer["error"]["message"], said

    door.serve(work)


def test_what_the_gateway_answers_is_what_its_rows_say(door: OpenDoor) -> None:
    """Also over a store that something else writes to at the same time."""
    token = door.token()

    async def work() -> None:
        for number in range(3):
            said = Inbound(dm(f"p{number}"), f"m{number}", f"hello {number}")
            await door.receive(said)
        await door.quiet()
        status = await door.ask(token, "status")
        assert (status["sessions"], status["inbox"]["waiting"]) == (3, 0)
        assert status["gateway"]["up"]

    door.serve(work)
