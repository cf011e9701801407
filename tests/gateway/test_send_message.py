"""`send_message`: an owner's agent sends a text to another chat, through the outbox and under the send policy."""

import time
from pathlib import Path
from typing import Any

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.core.errors import LeaseLost
from segue.core.keys import KeyRules
from segue.core.outbox import Letter, OutboxState
from segue.core.routes import Route
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.ports.tool import ToolFailed
from segue.sessions.delivering import Posting
from segue.sessions.outgoing_messages import send_message
from segue.testing import Stage
from segue.testing.platform import TRAITS
from segue.tools.send_message import SendMessage

YOU = SessionSource(platform="scripted", chat_id="owner", user_id="owner", user_name="You")
NEWS = SessionSource(platform="other", chat_id="news", chat_type="group", user_id="owner", user_name="You")
pytestmark = pytest.mark.on_file


def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Served:
    use_obedient_model(monkeypatch)
    home = write_settings(tmp_path / "home", **({"owners": ["scripted:owner", "other:owner"]} | more))
    return Served(home, {"scripted": Stage(), "other": Stage()})


def say(house: Served, *said: tuple[SessionSource, str]) -> None:
    async def work() -> None:
        for source, text in said:
            house.stages[source.platform].say(source, text)
            await house.quiet()

    house.run(work)


def rows_of(house: Served, text: str) -> list[Letter]:
    rows = house.store.read(OWNER, lambda tx: tx.outbox.latest(list(OutboxState), 10))
    return [row for row in rows if row.text == text]


def test_an_owner_has_a_text_sent_to_a_home_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = served(tmp_path, monkeypatch)
    say(house, (NEWS, "/sethome"), (YOU, 'use send_message {"target": "other", "text": "Dinner at *eight*."}'))
    assert house.stages["other"].posted_to("news")[-1] == "Dinner at *eight*."
    assert "is queued" in house.stages["scripted"].posted_to("owner")[-1]
    told = "goes there with send_message. Its targets:\n- other: The home channel of other."
    assert told in str(Obedient.asked[0].system)
    house.close()


def test_the_send_policy_holds_for_the_chat_it_goes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deny = {"send_policy": {"rules": [{"action": "deny", "match": {"platform": "other", "chat_type": "dm"}}]}}
    house = served(tmp_path, monkeypatch, session=deny)
    say(house, (YOU, 'use send_message {"target": "other:bob", "text": "psst"}'))
    assert "was not sent: The send policy denies" in house.stages["scripted"].posted_to("owner")[-1]
    assert not house.stages["other"].posted
    (row,) = house.store.read(
        OWNER, lambda tx: [one for one in tx.outbox.latest(list(OutboxState), 10) if one.text == "psst"]
    )
    assert row.state == OutboxState.SUPPRESSED
    house.close()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("other", "other has no home channel: an owner sets it with /sethome in a chat there."),
        ("discord:5", "Nothing can be sent to discord: it is not connected, or takes no messages."),
        ("cron:x", "is no place to deliver to"),
    ],
)
def test_a_target_that_cannot_be_reached_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, why: str
) -> None:
    house = served(tmp_path, monkeypatch)
    say(house, (YOU, f'use send_message {{"target": "{target}", "text": "x"}}'))
    assert why in house.stages["scripted"].posted_to("owner")[-1]
    house.close()


@pytest.mark.parametrize(
    "source", [dm("stranger"), SessionSource(platform="scripted", chat_id="r", chat_type="group", user_id="owner")]
)
def test_only_an_owner_who_is_alone_has_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: SessionSource
) -> None:
    house = served(tmp_path, monkeypatch)
    say(house, (source, "hello"))
    assert "send_message" not in {tool.name for tool in Obedient.asked[0].tools}
    house.close()


def test_consent_is_asked_for_every_chat_but_home_channels() -> None:
    tool = SendMessage(_not_called)
    assert tool.risk({"target": "telegram", "text": "hi"}) is None
    assert tool.risk({"target": "telegram:5", "text": "hi\n\x1b[2Jthere"}) == "send to telegram:5: hi ⏎ \\x1b[2Jthere"
    assert tool.risk({"target": "cron:5", "text": "hi"}) is None  # refused when it runs


async def _not_called(_session_id: str, _route: Route, _text: str) -> str:
    raise ToolFailed("not reached")


def test_one_turn_sends_the_same_text_once_and_only_while_its_process_has_the_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = served(tmp_path, monkeypatch)
    posting = Posting(lambda *_: TRAITS)

    def twice(run_id: str) -> None:
        lane = house.store.read(OWNER, lambda tx: tx.lanes.find("agent:main:scripted:dm:owner"))
        assert lane is not None
        assert lane.session_id is not None
        for _ in range(2):
            route, at = Route("other", "bob"), time.time()
            house.store.write(
                OWNER, send_message, posting, KeyRules(), {}, run_id, str(lane.session_id), route, "once", at
            )

    async def work() -> None:
        house.stages["scripted"].say(YOU, "wait until " + str(tmp_path / "go"))

        await until(lambda: bool(Obedient.asked))
        assert house._serving is not None
        with pytest.raises(LeaseLost):
            twice("another run")
        twice(house._serving.gateway.presence.run.id)
        (tmp_path / "go").touch()
        await house.quiet()

    house.run(work)
    rows = house.store.read(
        OWNER, lambda tx: [one for one in tx.outbox.latest(list(OutboxState), 10) if one.text == "once"]
    )
    assert [(row.platform, row.chat) for row in rows] == [("other", "bob")]
    house.close()
