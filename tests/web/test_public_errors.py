"""What a program is told of errors whose token is somebody's other than the owner's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from waiting import DEADLINE
from wordy_door import WordyDoor, wordy_door
from wordy_model import Wordy

from segue.core.errors import BadKey, InUse, Invalid, OpenElsewhere, SegueError, Unreachable
from segue.core.events import Note
from segue.gateway.onlookers import Seen
from segue.web.following import told_of
from segue.web.openai import errors
from segue.web.rpc import troubles
from segue.web.rpc.rows import public_gateway, public_lane, public_session

PRIVATE = "acme at 10.0.0.7:9999 does not accept the key in ACME_KEY"
FAIL: list[Any] = [{"role": "user", "content": "fail"}]


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordyDoor]:
    with wordy_door(tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _provider_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Wordy.stream

    async def refusing(self: Wordy, request: Any) -> Any:
        if "fail" in str(request.conversation[-1]["content"]):
            raise BadKey(PRIVATE)
        async for piece in stream(self, request):
            yield piece

    monkeypatch.setattr(Wordy, "stream", refusing)


def test_a_program_of_somebody_else_is_not_told_what_the_provider_said(door: WordyDoor) -> None:
    mine, theirs = door.token("mine"), door.token("theirs", principal="telegram:5")

    async def work() -> None:
        for token, expected in ((mine, PRIVATE), (theirs, BadKey.public_text)):
            sent = await door.ask(token, "chat.send", conversation="desk", text="fail", wait_seconds=DEADLINE)
            assert (sent["state"], sent["reason"]) == ("dead", expected)
            status = await door.ask(token, "chat.send", conversation="desk", text="/status", wait_seconds=DEADLINE)
            assert (PRIVATE in status["answer"]) is (token == mine)
            client = door.client(token)
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(model="main", messages=FAIL)
            assert str(expected) in str(caught.value)
            response = await client.responses.create(model="main", input="fail")
            assert response.error is not None
            assert response.error.message == expected

    door.serve(work)


def test_a_program_of_somebody_else_is_not_told_on_which_machine_a_gateway_runs(door: WordyDoor) -> None:
    theirs = door.token("theirs", principal="telegram:5")

    async def work() -> None:
        await door.ask(theirs, "chat.send", conversation="desk", text="hello", wait_seconds=DEADLINE)
        status = await door.ask(theirs, "status")
        lane = await door.ask(theirs, "lanes.get", key="agent:main:api:theirs:desk")
        exported = await door.ask(theirs, "sessions.export", id=lane["session_id"])
        seen = [*status["gateway"]["runs"], *status["gateway"]["platforms"]]
        assert len(seen) > 1
        assert all(not {"host", "pid"} & one.keys() for one in seen)
        assert exported["session"]["billing_provider"] is None

    door.serve(work)


def test_rows_for_others_name_no_machine_no_error_of_a_platform_and_no_provider() -> None:
    lane = {"key": "a", "at_work": {"program": "segue gateway", "pid": 7, "host": "box"}}
    letters = [{"id": 1, "reason": "Bad Request: 10.0.0.7"}]
    shown = public_lane(lane | {"outbox": letters})
    assert shown == {"key": "a", "at_work": {"program": "segue gateway"}, "outbox": [{"id": 1, "reason": None}]}
    session = {"id": "s", "billing_provider": "acme", "billing_base_url": "http://10.0.0.7"}
    assert public_session(session) == {"id": "s", "billing_provider": None, "billing_base_url": None}
    parts = {name: [{"seq": 1, "provider": "acme"}] for name in ("messages", "usage")}
    assert public_session(session | parts) == public_session(session) | {name: [{"seq": 1}] for name in parts}
    link = {"platform": "telegram", "state": "failed", "trouble": "10.0.0.7 refuses", "pid": 7, "host": "box"}
    gateway = public_gateway({"up": True, "runs": [lane["at_work"]], "platforms": [link], "left_out": {}})
    assert gateway["platforms"] == [{"platform": "telegram", "state": "failed", "trouble": None}]
    assert gateway["runs"] == [{"program": "segue gateway"}]


@pytest.mark.parametrize(
    ("error", "for_others"),
    [
        (Unreachable(PRIVATE), Unreachable.public_text),
        (OpenElsewhere(PRIVATE), OpenElsewhere.public_text),
        (InUse("An answer is being written."), "An answer is being written."),
        (Invalid("limit is too large."), "limit is too large."),
    ],
)
def test_an_error_has_a_text_for_everybody(error: SegueError, for_others: str) -> None:
    assert troubles.trouble_of(error).sentence == for_others
    assert troubles.trouble_of(error, is_owners=True).sentence == str(error)
    assert errors.trouble_of(error).message == for_others


def test_notes_about_providers_are_for_the_owner() -> None:
    seen = [Seen("t", Note(f"{PRIVATE} Going on with b.")), Seen("t", Note("Summarised.", "Summarised."))]
    assert [one["text"] for one in told_of(seen, is_owners=False)] == ["Summarised."]
    assert [one["text"] for one in told_of(seen, is_owners=True)] == [f"{PRIVATE} Going on with b.", "Summarised."]
