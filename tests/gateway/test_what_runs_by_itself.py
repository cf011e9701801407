"""What a job or a hook can get at: no more than those may see who are sent its answer, or who write what it says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings

from segue.core.inbound import Inbound, Receipt
from segue.core.jobs import Job, inbound_of
from segue.core.routes import parse_route
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.platforms.webhook.inbound import Call, inbound_from
from segue.platforms.webhook.settings import read_settings
from segue.sessions import accepting
from segue.sessions.handing import find_home
from segue.testing import Stage

SECRET = "swordfish"
SEARCH = f'use session_search {{"query": "{SECRET}"}}'
MACHINE = {"read_file", "write_file", "terminal", "process", "delegate"}
GIVEN = ["session_search", "read_file", "nonesuch"]
HOOKS: dict[str, dict[str, Any]] = {
    "ci": {"secret": "s" * 20, "deliver": "scripted:club", "template": "{{ title }}"},
    "kept": {"secret": "s" * 20, "template": "{{ title }}"},
    "mine": {"secret": "s" * 20, "deliver": "scripted:owner", "template": "{{ title }}"},
    "trusted": {"secret": "s" * 20, "deliver": "scripted:owner", "template": "{{ title }}", "tools": GIVEN},
    "bare": {"secret": "s" * 20, "deliver": "scripted:owner", "template": "{{ title }}", "tools": []},
}


def group(person: str, room: str = "club") -> SessionSource:
    return SessionSource(platform="scripted", chat_type="group", chat_id=room, user_id=person)


def own_id(person: str) -> SessionSource:
    """A direct chat whose id is not the person's, as on many platforms."""
    return SessionSource(platform="scripted", chat_id=f"D-{person}", user_id=person)


class House:
    """A gateway in which the owner has said in private what is nobody else's, and something else in the club."""

    def __init__(self, home: Path) -> None:
        self.stage = Stage()
        self.served = Served(home, {"scripted": self.stage}, has_programs=True)

    def hear(self, *said: Inbound) -> None:
        async def work() -> None:
            self.stage.say(dm("owner"), f"My PIN at the bank is {SECRET}")
            for source in (own_id("owner"), own_id("bob"), dm("bob")):
                self.stage.say(source, "hello")
            self.stage.say(group("owner"), f"The club's fish is a {SECRET}, too")
            await self.served.quiet()
            for one in said:
                assert await self.served.receive(one) is Receipt.ACCEPTED
                await self.served.quiet()

        self.served.run(work)

    def tools(self) -> set[str]:
        """Those that the last answer was given with."""
        return {tool.name for tool in Obedient.asked[-1].tools}

    def last_audience(self) -> str:
        return self.served.store.read(OWNER, lambda tx: tx.inbox.latest(["done"], 1))[0].audience


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    use_obedient_model(monkeypatch)
    monkeypatch.chdir(tmp_path)
    made = House(write_settings(tmp_path / "home", platforms={"webhook": {"hooks": HOOKS, "port": 0}}))
    yield made
    made.served.close()


def called(name: str, title: str) -> Inbound:
    body = json.dumps({"title": title}).encode()
    hook = read_settings({"hooks": HOOKS}).hooks[name]
    return inbound_from(Call(hook, body, body, None), hook.deliver.source if hook.deliver else None)


def job(deliver: str | SessionSource | None, prompt: str = SEARCH) -> Inbound:
    route = parse_route(deliver).source if isinstance(deliver, str) else deliver
    return inbound_of(Job("tea", "0 7 * * *", "UTC", prompt, 0.0), f"tea@{deliver}", route)


@pytest.mark.parametrize("hook", ["ci", "kept", "mine"])
def test_a_hook_has_no_machine_and_finds_nothing_that_was_said_elsewhere(house: House, hook: str) -> None:
    house.hear(called(hook, "Leeks"), called(hook, SEARCH))
    told = str(Obedient.asked[-1].conversation[-1]["content"])
    assert "PIN" not in told
    assert "fish" not in told.replace(SECRET, "")
    assert not any("PIN" in text for text in house.stage.posted_to("club"))
    assert house.tools() == {"session_search", "memory", "web_fetch"}
    assert house.last_audience() == f"agent:main:hook:{hook}"


def test_a_hook_finds_what_it_was_called_with_before(house: House) -> None:
    house.hear(called("ci", "Leeks are ripe"), called("ci", 'use session_search {"query": "leeks"}'))
    assert house.stage.posted_to("club")[-1].startswith("The tool said:")
    assert not MACHINE & house.tools()


def test_what_a_hook_says_is_in_the_owners_conversations(house: House) -> None:
    house.hear(called("ci", "Leeks are ripe"), Inbound(dm("owner"), "s", 'use session_search {"query": "leeks"}'))
    assert "Leeks" in house.stage.posted_to("owner")[-1]


def test_a_hook_has_those_tools_of_the_owner_that_its_settings_name(house: House) -> None:
    house.hear(called("trusted", SEARCH))
    assert house.tools() == {"session_search", "read_file"}
    assert "PIN" in house.stage.posted_to("owner")[-1]


def test_a_hook_can_be_given_no_tools_at_all(house: House) -> None:
    house.hear(called("bare", "hello"))
    assert house.tools() == set()


@pytest.mark.parametrize("deliver", [None, "scripted:owner", "scripted:D-owner", own_id("owner"), dm("owner")])
def test_a_job_has_what_its_owner_has_when_nobody_else_sees_the_answer(
    house: House, deliver: str | SessionSource | None
) -> None:
    house.hear(job(deliver))
    assert house.tools() >= MACHINE
    assert "PIN" in str(Obedient.asked[-1].conversation[-1]["content"])
    assert house.last_audience() == ""


@pytest.mark.parametrize(
    ("deliver", "room"),
    [
        ("scripted:club", "agent:main:scripted:group:club"),
        (group("owner"), "agent:main:scripted:group:club"),
        ("scripted:bob", "agent:main:scripted:dm:bob"),
        ("scripted:D-bob", "agent:main:scripted:dm:D-bob"),
        ("scripted:nobody-wrote-from-there", "agent:main:scripted:dm:nobody-wrote-from-there"),
    ],
)
def test_a_job_whose_answer_others_see_gets_at_no_more_than_they_may_see(
    house: House, deliver: str | SessionSource, room: str
) -> None:
    house.hear(job(deliver))
    told = str(Obedient.asked[-1].conversation[-1]["content"])
    assert "PIN" not in told
    assert ("club's fish" in told) == (room == "agent:main:scripted:group:club")
    assert house.tools() == {"session_search", "memory", "web_fetch"}
    assert house.last_audience() == room


def test_a_job_that_is_sent_elsewhere_from_now_on_begins_anew_there(house: House) -> None:
    house.hear(job(None), job("scripted:club"), job("scripted:owner", "hello"))
    assert house.tools() >= MACHINE
    assert not any("PIN" in text for text in house.stage.posted_to("club"))


def test_a_home_channel_in_a_group_is_seen_by_the_group(house: House) -> None:
    house.hear(Inbound(group("owner"), "h", "/sethome"))
    home = house.served.store.read(OWNER, find_home, "scripted", {})
    house.hear(job(home))
    assert house.last_audience() == "agent:main:scripted:group:club"
    assert not MACHINE & house.tools()


def test_without_what_is_known_of_a_chat_its_id_alone_decides(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "as_last_seen", lambda chat, _said: chat)
    house.hear(job("scripted:D-owner"))
    assert not MACHINE & house.tools()
